//! The recording of a run's memory, read from the files of its processes in the run folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ghostgpu_attribution::assemble;
use ghostgpu_recording::{CardMemory, Recording};
use ghostgpu_session::ProcessReport;
use ghostgpu_session::memory_log::{HISTORY_PREFIX, MEMORY_LOG_PREFIX};
use ghostgpu_snapshot::Snapshot;

use crate::History;
use crate::findings::Findings;
use crate::recorded_history::replayable_history;

/// The recording of a run's memory, or why there is none.
#[derive(Debug)]
pub enum Memory {
    Recorded(Box<Recording>),
    /// A recording was requested but could not be made, for this reason.
    Unrecorded(String),
    /// No recording was requested.
    Unwanted,
}

impl Memory {
    pub fn recording(&self) -> Option<&Recording> {
        match self {
            Self::Recorded(recording) => Some(recording),
            _ => None,
        }
    }

    /// Why there is no recording, as a sentence ending.
    pub fn missing_because(&self) -> Option<&str> {
        match self {
            Self::Recorded(_) => None,
            Self::Unrecorded(because) => Some(because),
            Self::Unwanted => Some("it was left out (--no-breakdown)"),
        }
    }
}

/// The recording of the process that held most, and its allocator's history. If the job has several ranks, the recording
/// has all of them.
pub fn gather(run_dir: &Path, findings: &Findings) -> (Memory, Option<Box<History>>) {
    let unrecorded = |because: String| (Memory::Unrecorded(because), None);
    let process = findings
        .processes
        .iter()
        .max_by_key(|process| (reserved_bytes(process), std::cmp::Reverse(process.pid)));
    let Some(process) = process else {
        return unrecorded("no process of the script's reported".to_owned());
    };
    if let Some(because) = &process.unrecorded {
        return unrecorded(because.clone());
    }
    let [history, log] = files_of(run_dir, process);
    if !history.exists() || !log.exists() {
        return unrecorded(match findings.used_cuda() {
            true => "the process that used the card ended before it could write it".to_owned(),
            false => "the script never used CUDA".to_owned(),
        });
    }
    match read(&history, &log, process, findings) {
        Ok((mut recording, history)) => {
            if let Some(rank) = rank_of(process) {
                name_rank(&mut recording, rank);
                join_other_ranks(&mut recording, process, run_dir, findings);
            }
            (Memory::Recorded(Box::new(recording)), history.map(Box::new))
        }
        Err(reason) => unrecorded(reason),
    }
}

/// The rank of a process, if the job has several.
fn rank_of(process: &ProcessReport) -> Option<u32> {
    process
        .rank
        .filter(|_| process.world_size.is_some_and(|size| size > 1))
}

/// PyTorch's history lists all cards that the process sees; those of other ranks have nothing of this one.
fn name_rank(recording: &mut Recording, rank: u32) {
    let is_used = |card: &CardMemory| {
        !card.events.is_empty() || !card.allocations.is_empty() || card.outside_bytes > 0
    };
    if recording.cards.iter().any(is_used) {
        recording.cards.retain(is_used);
    }
    for card in &mut recording.cards {
        card.rank = Some(rank);
    }
}

/// Adds what the other ranks recorded. A rank that ended before it could write its history is reported as missing.
fn join_other_ranks(
    recording: &mut Recording,
    main: &ProcessReport,
    run_dir: &Path,
    findings: &Findings,
) {
    let mut known: BTreeSet<u32> = rank_of(main).into_iter().collect();
    let mut missing = Vec::new();
    let others = findings.processes.iter().filter(|one| one.pid != main.pid);
    for process in others {
        let Some(rank) = rank_of(process).filter(|rank| known.insert(*rank)) else {
            continue;
        };
        let [history, log] = files_of(run_dir, process);
        match read_recording(&history, &log, process, findings) {
            Ok((mut of_rank, _, _)) => {
                name_rank(&mut of_rank, rank);
                recording.join(of_rank);
            }
            Err(_) => missing.push(rank.to_string()),
        }
    }
    if !missing.is_empty() {
        recording.warnings.push(format!(
            "the memory of rank {} was not recorded",
            missing.join(", ")
        ));
    }
}

/// PyTorch's history, and the memory log.
fn files_of(run_dir: &Path, process: &ProcessReport) -> [PathBuf; 2] {
    let history = run_dir.join(format!("{HISTORY_PREFIX}{}.pickle", process.pid));
    let log = run_dir.join(format!("{MEMORY_LOG_PREFIX}{}.log", process.pid));
    [history, log]
}

fn read(
    history: &Path,
    log: &Path,
    process: &ProcessReport,
    findings: &Findings,
) -> Result<(Recording, Option<History>), String> {
    let (recording, log, snapshot) = read_recording(history, log, process, findings)?;
    let history = replayable_history(&log, &snapshot, &recording, &process.memory_limits);
    Ok((recording, history))
}

fn read_recording(
    history: &Path,
    log: &Path,
    process: &ProcessReport,
    findings: &Findings,
) -> Result<(Recording, Vec<u8>, Snapshot), String> {
    let snapshot = ghostgpu_snapshot::open(history).map_err(|error| error.to_string())?;
    let log = std::fs::read(log).map_err(|error| error.to_string())?;
    let outside = |device: u32| {
        // Only what this process used: the memory of other processes is not part of its context.
        let on_card = findings.use_of(process.pid, device as usize);
        let reserved = process.peaks.iter().find(|peaks| peaks.device == device);
        match (on_card, reserved) {
            (Some(card), Some(peaks)) => card.peak_bytes.saturating_sub(peaks.peak_reserved_bytes),
            _ => 0,
        }
    };
    let mut recording = assemble(&log, &snapshot, &outside);
    recording.about.torch = process.torch.clone().unwrap_or_default();
    recording.about.steps = u32::try_from(process.steps).unwrap_or(u32::MAX);
    Ok((recording, log, snapshot))
}

fn reserved_bytes(process: &ProcessReport) -> u64 {
    process
        .peaks
        .iter()
        .map(|peaks| peaks.peak_reserved_bytes)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_has_only_the_cards_that_it_used() {
        let card = |index: u32, outside_bytes: u64| CardMemory {
            index,
            outside_bytes,
            ..CardMemory::default()
        };
        let named = |cards: Vec<CardMemory>| {
            let mut recording = Recording {
                cards,
                ..Recording::default()
            };
            name_rank(&mut recording, 3);
            let cards = recording.cards.iter();
            cards
                .map(|card| (card.index, card.rank))
                .collect::<Vec<_>>()
        };
        assert_eq!(named(vec![card(0, 0), card(1, 5)]), [(1, Some(3))]);
        assert_eq!(named(vec![card(0, 0)]), [(0, Some(3))]);
    }
}

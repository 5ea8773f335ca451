//! Everything a run left in its folder, gathered.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ghostgpu_cost::Work;
use ghostgpu_session::card_usage::{CardUse, ProcessUse, read_card_use, read_process_use};
use ghostgpu_session::files::{
    AGENT_REPORT_PREFIX, NOTES_PREFIX, PRELOAD_BLOCKED_FILE, WORK_PREFIX,
};
use ghostgpu_session::{Note, ProcessReport};

use crate::ranks::{self, Unworkable};
use crate::started_ranks::StartedRanks;

/// What the library and the agent saw in all processes of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// In order of process id.
    pub processes: Vec<ProcessReport>,
    pub notes: Vec<Note>,
    /// By process id: the work of a typical optimizer step.
    pub work: BTreeMap<u32, Work>,
    /// What was in use on each card, in device order; empty if that could not be read.
    pub cards: Vec<CardUse>,
    /// What each process has used of each card.
    pub process_use: Vec<ProcessUse>,
    /// The agent ran without the library being loaded; the reason, as far as known.
    pub preload_blocked: Option<String>,
    /// What could not be read, each in one sentence.
    pub damages: Vec<String>,
    /// The ranks that were started, whether or not they came to report anything.
    pub started_ranks: StartedRanks,
    /// Why the ranks are no job that works, although every process may have ended well.
    pub unworkable: Option<Unworkable>,
}

impl Findings {
    /// Reads a run folder. Damaged files are left out and listed in `damages`.
    pub fn gather(run_dir: &Path) -> Self {
        let mut findings = Self::default();
        let mut names: Vec<String> = std::fs::read_dir(run_dir)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        for name in names {
            let path = run_dir.join(&name);
            if name.starts_with(AGENT_REPORT_PREFIX) && name.ends_with(".json") {
                findings.read_process(&name, &path);
            } else if name.starts_with(NOTES_PREFIX) && name.ends_with(".jsonl") {
                findings.read_notes(&name, &path);
            } else if let Some(pid) = process_of_work(&name) {
                findings.read_work(pid, &path);
            }
        }
        findings.processes.sort_by_key(|process| process.pid);
        match read_card_use(run_dir) {
            Ok(cards) => findings.cards = cards,
            Err(error) => findings.damages.push(error.to_string()),
        }
        findings.process_use = read_process_use(run_dir).unwrap_or_default();
        findings.started_ranks = StartedRanks::gather(run_dir);
        findings.notes.extend(ranks::untold_trouble(&findings));
        findings.unworkable = Unworkable::found(&findings, run_dir);
        findings.preload_blocked = std::fs::read(run_dir.join(PRELOAD_BLOCKED_FILE))
            .ok()
            .map(|text| String::from_utf8_lossy(&text).trim().to_owned());
        findings
    }

    fn read_process(&mut self, name: &str, path: &Path) {
        let parsed = std::fs::read(path)
            .map_err(|error| error.to_string())
            .and_then(|text| serde_json::from_slice(&text).map_err(|error| error.to_string()));
        match parsed {
            Ok(process) => self.processes.push(process),
            Err(error) => self.damages.push(format!(
                "the agent's report {name} could not be read: {error}"
            )),
        }
    }

    fn read_notes(&mut self, name: &str, path: &Path) {
        let text = std::fs::read(path).unwrap_or_default();
        for line in String::from_utf8_lossy(&text).lines() {
            if line.trim().is_empty() {
                continue;
            }
            match serde_json::from_str(line) {
                Ok(note) => self.notes.push(note),
                // A process that was killed may have left an incomplete line.
                Err(error) => self
                    .damages
                    .push(format!("a note in {name} could not be read: {error}")),
            }
        }
    }

    /// An incomplete last line, of a process that was killed while writing it, is ignored.
    fn read_work(&mut self, pid: u32, path: &Path) {
        let text = std::fs::read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let steps = text
            .lines()
            .map_while(|line| serde_json::from_str(line).ok());
        if let Some(typical) = Work::typical(steps.collect()) {
            self.work.insert(pid, typical);
        }
    }

    /// The work of a typical step of the main process.
    pub fn main_work(&self) -> Option<&Work> {
        self.work.get(&self.main_process()?.pid)
    }

    /// Whether any process created a context on a card.
    pub fn used_cuda(&self) -> bool {
        self.peak_device_bytes() > 0
            || self
                .processes
                .iter()
                .any(|process| process.peaks.iter().any(|peaks| peaks.allocations > 0))
    }

    pub fn peak_device_bytes(&self) -> u64 {
        let peaks = self.cards.iter().map(|card| card.peak_bytes);
        peaks.max().unwrap_or(0)
    }

    /// What a process has used of a card, with its context and libraries.
    pub fn use_of(&self, pid: u32, device: usize) -> Option<&ProcessUse> {
        self.process_use
            .iter()
            .find(|each| (each.process, each.device) == (pid, device))
    }

    /// What processes other than the largest used of a card when its use was highest.
    pub fn other_processes_bytes(&self, device: usize) -> u64 {
        let Some(main) = self.main_process() else {
            return 0;
        };
        self.process_use
            .iter()
            .filter(|each| each.device == device && each.process != main.pid)
            .map(|each| each.at_card_peak_bytes)
            .sum()
    }

    /// The highest peak allocated memory of any process on any device; `None` if no process reported.
    pub fn peak_allocated_bytes(&self) -> Option<u64> {
        self.highest(|peaks| peaks.peak_allocated_bytes)
    }

    /// The highest peak reserved memory of any process on any device; `None` if no process reported.
    pub fn peak_reserved_bytes(&self) -> Option<u64> {
        self.highest(|peaks| peaks.peak_reserved_bytes)
    }

    fn highest(&self, of: impl Fn(&ghostgpu_session::AllocatorPeaks) -> u64) -> Option<u64> {
        if self.processes.is_empty() {
            return None;
        }
        let peaks = self.processes.iter().flat_map(|process| &process.peaks);
        Some(peaks.map(of).max().unwrap_or(0))
    }

    /// How many processes had memory on a card, including those that could not report.
    pub fn card_user_count(&self) -> usize {
        let pids = self.process_use.iter().map(|each| each.process);
        pids.collect::<BTreeSet<u32>>().len()
    }

    /// The process that reserved the most memory; of equals, one that trained. It represents the job in answers.
    pub fn main_process(&self) -> Option<&ProcessReport> {
        let weight = |process: &&ProcessReport| {
            let peaks = process.peaks.iter();
            let reserved = peaks.map(|peaks| peaks.peak_reserved_bytes).max();
            (reserved, process.steps)
        };
        self.processes
            .iter()
            // The first of equals, so that rank 0 represents its peers.
            .rev()
            .max_by_key(weight)
    }
}

/// The process id in the name of a work file.
fn process_of_work(name: &str) -> Option<u32> {
    let rest = name.strip_prefix(WORK_PREFIX)?;
    rest.strip_suffix(".jsonl")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ghostgpu_session::AllocatorPeaks;
    use ghostgpu_session::card_usage::create_usage_file;

    fn process(pid: u32, reserved: u64) -> ProcessReport {
        ProcessReport {
            pid,
            peaks: vec![AllocatorPeaks {
                peak_allocated_bytes: reserved / 2,
                peak_reserved_bytes: reserved,
                allocations: 1,
                ..AllocatorPeaks::default()
            }],
            ..ProcessReport::default()
        }
    }

    #[test]
    fn a_folder_is_read_and_damage_is_reported() {
        let folder = tempfile::tempdir().expect("folder");
        let write = |name: &str, text: &[u8]| {
            std::fs::write(folder.path().join(name), text).expect("file");
        };
        write(
            "agent-20.json",
            &serde_json::to_vec(&process(20, 8)).expect("json"),
        );
        write("agent-3.json", br#"{"pid": 3, "steps": 2}"#);
        write("agent-4.json", b"{ half a rep");
        write("agent-5.json.tmp", b"not ours to read");
        write(
            "notes-20.jsonl",
            b"{\"kind\":\"assumption\",\"text\":\"x\"}\n\n{\"kind\":\"ref",
        );
        write(
            "work-20.jsonl",
            b"{\"step\":1,\"stretches\":[]}\n{\"step\":2,\"stretches\":[]}\n{\"step\":3,\"str",
        );
        create_usage_file(folder.path(), 1).expect("usage file");
        write("preload-blocked", b"no permission\n");
        let findings = Findings::gather(folder.path());
        let pids: Vec<u32> = findings
            .processes
            .iter()
            .map(|process| process.pid)
            .collect();
        assert_eq!(pids, [3, 20]);
        assert_eq!(findings.notes.len(), 1);
        assert_eq!(findings.main_work().map(|work| work.step), Some(2));
        assert_eq!(findings.damages.len(), 2, "{:?}", findings.damages);
        assert_eq!(findings.preload_blocked.as_deref(), Some("no permission"));
        assert!(findings.used_cuda());
    }

    #[test]
    fn the_first_of_equal_processes_represents_all() {
        let findings = Findings {
            processes: vec![process(1, 5), process(2, 9), process(3, 9)],
            ..Findings::default()
        };
        assert_eq!(findings.main_process().map(|process| process.pid), Some(2));
        assert_eq!(findings.peak_reserved_bytes(), Some(9));
        let launched = Findings {
            processes: vec![
                ProcessReport {
                    pid: 1,
                    ..ProcessReport::default()
                },
                ProcessReport {
                    pid: 2,
                    steps: 3,
                    ..ProcessReport::default()
                },
            ],
            ..Findings::default()
        };
        assert_eq!(launched.main_process().map(|process| process.pid), Some(2));
        assert_eq!(findings.peak_allocated_bytes(), Some(4));
    }

    #[test]
    fn peaks_are_unknown_when_nobody_reported() {
        assert_eq!(Findings::default().peak_allocated_bytes(), None);
        assert!(!Findings::default().used_cuda());
    }
}

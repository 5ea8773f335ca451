//! What each rank of a job had, from what its processes left behind. Pure.

use ghostgpu_recording::RankPeak;
use ghostgpu_session::Note;

use crate::findings::Findings;

/// The ranks of a job of several, in their order; empty for any other.
pub fn ranks(findings: &Findings) -> Vec<RankPeak> {
    let of_several = findings
        .processes
        .iter()
        .filter(|process| process.world_size.is_some_and(|size| size > 1));
    let mut ranks: Vec<RankPeak> = of_several
        .filter_map(|process| {
            let own = process.peaks.iter();
            let largest = own.max_by_key(|peaks| peaks.peak_reserved_bytes);
            let on_cards = findings
                .process_use
                .iter()
                .filter(|each| each.process == process.pid);
            let card = on_cards.max_by_key(|each| each.peak_bytes);
            Some(RankPeak {
                rank: process.rank?,
                world_size: process.world_size?,
                device: card.map_or(0, |card| card.device),
                peak_allocated_bytes: largest.map_or(0, |peaks| peaks.peak_allocated_bytes),
                peak_reserved_bytes: largest.map_or(0, |peaks| peaks.peak_reserved_bytes),
                peak_device_bytes: card.map_or(0, |card| card.peak_bytes),
                steps: process.steps,
                ran_out: process.ooms.iter().any(|oom| oom.is_fatal),
                ..RankPeak::default()
            })
        })
        .collect();
    ranks.sort_by_key(|rank| rank.rank);
    ranks
}

/// Why ranks could not go on together, where that is more than the end of one of them.
pub fn trouble(findings: &Findings) -> Option<&str> {
    findings.notes.iter().find_map(|note| match note {
        Note::Ranks {
            text,
            is_consequence: false,
        } => Some(text.as_str()),
        _ => None,
    })
}

/// Why the ranks could not go on together, where none of them says so itself: one was killed, or one ended in peace
/// while others waited for it.
pub fn untold_trouble(findings: &Findings) -> Option<Note> {
    let has_reason = |process: &ghostgpu_session::ProcessReport| {
        process.rank.is_some()
            && process
                .exception
                .as_deref()
                .is_some_and(|exception| !is_consequence(findings, exception))
    };
    if trouble(findings).is_some() || findings.processes.iter().any(has_reason) {
        return None;
    }
    let silent = findings.notes.iter().filter_map(|note| match note {
        Note::Rank { rank, process } => {
            let has_report = findings.processes.iter().any(|each| each.pid == *process);
            (!has_report).then_some(*rank)
        }
        _ => None,
    });
    let killed = silent.min().map(|rank| {
        format!(
            "rank {rank} ended without a word: it was killed, perhaps for want of this machine's own memory, or \
             ended itself with os._exit"
        )
    });
    let waited_for = || {
        findings.notes.iter().find_map(|note| match note {
            Note::Ranks { text, .. } => Some(text.clone()),
            _ => None,
        })
    };
    Some(Note::Ranks {
        text: killed.or_else(waited_for)?,
        is_consequence: false,
    })
}

/// What PyTorch begins an exception with whose reason NCCL has told; the reason stands further down.
const NCCL_ERROR: &str = "DistBackendError: NCCL error in";

/// Whether an exception only says that another rank has ended.
pub fn is_consequence(findings: &Findings, exception: &str) -> bool {
    findings.notes.iter().any(|note| match note {
        Note::Ranks {
            text,
            is_consequence: true,
        } => exception.contains(text.as_str()) || exception.starts_with(NCCL_ERROR),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ghostgpu_session::card_usage::ProcessUse;
    use ghostgpu_session::{AllocatorPeaks, ProcessReport};

    fn process(pid: u32, rank: Option<u32>, reserved: u64) -> ProcessReport {
        ProcessReport {
            pid,
            rank,
            world_size: rank.map(|_| 2),
            peaks: vec![AllocatorPeaks {
                peak_allocated_bytes: reserved / 2,
                peak_reserved_bytes: reserved,
                ..AllocatorPeaks::default()
            }],
            ..ProcessReport::default()
        }
    }

    #[test]
    fn a_rank_that_left_is_named_unless_one_says_why_the_job_failed() {
        let noted = |rank, process| Note::Rank { rank, process };
        let with = |exception: Option<&str>| {
            let mut other = process(3, Some(0), 60);
            other.exception = exception.map(str::to_owned);
            Findings {
                processes: vec![process(1, None, 0), other],
                notes: vec![
                    noted(0, 3),
                    noted(1, 2),
                    Note::Ranks {
                        text: "rank 1, which has ended".to_owned(),
                        is_consequence: true,
                    },
                ],
                ..Findings::default()
            }
        };
        for exception in [
            None,
            Some("RuntimeError: rank 1, which has ended"),
            Some("DistBackendError: NCCL error in: NCCLUtils.cpp:353, remote process exited"),
        ] {
            let note = untold_trouble(&with(exception));
            let says = matches!(&note, Some(Note::Ranks { text, is_consequence: false })
                if text.starts_with("rank 1 ended without a word"));
            assert!(says, "{exception:?}: {note:?}");
        }
        assert_eq!(untold_trouble(&with(Some("ValueError: no file"))), None);
        let mut reported = with(None);
        reported.processes.push(process(2, Some(1), 80));
        let ended_in_peace = Note::Ranks {
            text: "rank 1, which has ended".to_owned(),
            is_consequence: false,
        };
        assert_eq!(untold_trouble(&reported), Some(ended_in_peace));
        reported.notes.pop();
        assert_eq!(untold_trouble(&reported), None);
    }

    #[test]
    fn ranks_are_in_their_order_each_with_its_own_card_and_launchers_are_none() {
        let on_card = |process, device, peak_bytes| ProcessUse {
            process,
            device,
            peak_bytes,
            used_bytes: 0,
            at_card_peak_bytes: 0,
        };
        let findings = Findings {
            processes: vec![
                process(1, None, 0),
                process(2, Some(1), 80),
                process(3, Some(0), 60),
            ],
            process_use: vec![on_card(2, 0, 5), on_card(2, 1, 90), on_card(3, 0, 70)],
            ..Findings::default()
        };
        let found: Vec<(u32, usize, u64)> = ranks(&findings)
            .iter()
            .map(|rank| (rank.rank, rank.device, rank.peak_device_bytes))
            .collect();
        assert_eq!(found, [(0, 0, 70), (1, 1, 90)]);
        let mut alone = process(2, Some(0), 80);
        alone.world_size = Some(1);
        let findings = Findings {
            processes: vec![alone],
            ..Findings::default()
        };
        assert_eq!(ranks(&findings), []);
    }
}

//! What each rank of a job used, and why ranks failed, from the findings of a run. Pure.

use std::collections::BTreeSet;

use ghostgpu_recording::RankPeak;
use ghostgpu_session::Note;
use ghostgpu_text::counted;

use crate::findings::Findings;

/// The ranks of a job in ascending order; empty if it has only one.
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

/// Why the ranks could not go on together, if the reason is more than that one of them ended.
pub fn trouble(findings: &Findings) -> Option<&str> {
    findings.notes.iter().find_map(|note| match note {
        Note::Ranks {
            text,
            is_consequence: false,
        } => Some(text.as_str()),
        _ => None,
    })
}

/// Why the ranks could not go on together, if none of them reports it: one has no place in the job, their port is taken,
/// there are too few cards, one was killed, or one ended normally while others waited for it.
pub fn untold_trouble(findings: &Findings) -> Option<Note> {
    let text = rank_out_of_range(findings).or_else(|| taken_port(findings));
    if let Some(text) = text.or_else(|| missing_card(findings)) {
        return Some(Note::Ranks {
            text,
            is_consequence: false,
        });
    }
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

/// A sentence if a rank's number is too high for the job, which then failed.
fn rank_out_of_range(findings: &Findings) -> Option<String> {
    let mut failed = findings.processes.iter();
    let (rank, size) = failed.find_map(|process| {
        let (rank, size) = (process.rank?, process.world_size?);
        (rank >= size && process.exception.is_some()).then_some((rank, size))
    })?;
    let has = counted(u64::from(size), "rank", "ranks");
    Some(format!(
        "a process takes part as rank {rank} of a job that has {has}: its world_size must be larger than every rank"
    ))
}

/// PyTorch's message if the store of the ranks cannot listen, and its ways to name the reason (`errno` on Linux).
const CANNOT_LISTEN: &str = "The server socket has failed to listen on any local network address";
const ADDRESS_IN_USE: [&str; 2] = ["EADDRINUSE", "errno: 98"];

/// A sentence if the port of the ranks' store is taken.
fn taken_port(findings: &Findings) -> Option<String> {
    let mut exceptions = findings.processes.iter().flat_map(|each| &each.exception);
    let exception = exceptions.find(|exception| {
        exception.contains(CANNOT_LISTEN)
            && ADDRESS_IN_USE.iter().any(|name| exception.contains(name))
    })?;
    if let Some(rank) = rank_of_two(findings) {
        return Some(format!(
            "two processes take part as rank {rank}, and both would keep the ranks' store"
        ));
    }
    let port =
        port_in(exception).map_or_else(|| "its port".to_owned(), |port| format!("port {port}"));
    Some(format!(
        "the ranks cannot meet: another process of this machine, perhaps one that an earlier run left behind, listens on \
         {port}; choose another (torchrun --master-port, or --standalone)"
    ))
}

/// A rank that two processes claim to be.
fn rank_of_two(findings: &Findings) -> Option<u32> {
    let mut seen = BTreeSet::new();
    let mut ranks = findings.processes.iter().filter_map(|each| each.rank);
    ranks.find(|rank| !seen.insert(*rank))
}

/// CUDA's message for a card that does not exist.
const NO_SUCH_CARD: &str = "invalid device ordinal";

/// A sentence if there are more ranks than cards and one of them asked for its card.
fn missing_card(findings: &Findings) -> Option<String> {
    let cards = findings.cards.len();
    let (rank, ranks) = findings.processes.iter().find_map(|process| {
        let ranks = process.world_size.filter(|ranks| *ranks as usize > cards)?;
        let exception = process.exception.as_deref()?;
        (cards > 0 && exception.contains(NO_SUCH_CARD)).then_some((process.rank?, ranks))
    })?;
    let has = counted(cards as u64, "card", "cards");
    Some(format!(
        "rank {rank} asks for a card that is not there: the job has {ranks} ranks and the machine {has}; use --count {ranks}"
    ))
}

/// `port: 29500` of newer torches, `[::]:29500` of older ones.
fn port_in(exception: &str) -> Option<u16> {
    let behind = ["port: ", "]:", "0.0.0.0:"]
        .iter()
        .find_map(|before| exception.split_once(before))?
        .1;
    let digits = behind.find(|it: char| !it.is_ascii_digit());
    behind[..digits.unwrap_or(behind.len())].parse().ok()
}

/// How PyTorch begins an exception whose reason comes from NCCL; the reason is further down.
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
    use ghostgpu_session::card_usage::{CardUse, ProcessUse};
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
    fn a_port_that_is_taken_is_reported_with_its_number() {
        for exception in [
            "DistNetworkError: The server socket has failed to listen on any local network address. port: 29555, \
             useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
            "RuntimeError: The server socket has failed to listen on any local network address. The server socket has \
             failed to bind to [::]:29555 (errno: 98 - Address already in use).",
        ] {
            let mut launcher = process(1, None, 0);
            launcher.exception = Some(exception.to_owned());
            let findings = Findings {
                processes: vec![launcher],
                ..Findings::default()
            };
            let note = untold_trouble(&findings);
            let says = matches!(&note, Some(Note::Ranks { text, is_consequence: false })
                if text.contains("listens on port 29555; choose another"));
            assert!(says, "{exception}: {note:?}");
            let twins = [process(2, Some(0), 0), process(3, Some(0), 0)];
            let mut findings = findings;
            findings.processes.extend(twins);
            let note = untold_trouble(&findings);
            let says = matches!(&note, Some(Note::Ranks { text, is_consequence: false })
                if text.starts_with("two processes take part as rank 0"));
            assert!(says, "{exception}: {note:?}");
        }
    }

    #[test]
    fn a_rank_without_a_card_is_told_how_many_there_are() {
        let mut second = process(2, Some(1), 0);
        second.exception = Some("AcceleratorError: CUDA error: invalid device ordinal".to_owned());
        let unused = CardUse {
            used_bytes: 0,
            peak_bytes: 0,
        };
        let with_cards = |count| Findings {
            processes: vec![process(1, Some(0), 80), second.clone()],
            cards: vec![unused; count],
            ..Findings::default()
        };
        assert_eq!(untold_trouble(&with_cards(2)), None);
        let note = untold_trouble(&with_cards(1));
        let says = matches!(&note, Some(Note::Ranks { text, is_consequence: false })
            if text == "rank 1 asks for a card that is not there: the job has 2 ranks and the machine 1 card; use --count 2");
        assert!(says, "{note:?}");
    }

    #[test]
    fn a_rank_that_the_job_has_no_place_for_is_told_so() {
        let mut second = process(2, Some(1), 0);
        second.world_size = Some(1);
        let with = |second: &ProcessReport| Findings {
            processes: vec![process(1, Some(0), 80), second.clone()],
            ..Findings::default()
        };
        assert_eq!(untold_trouble(&with(&second)), None);
        second.exception = Some("DistBackendError: Connection was likely closed".to_owned());
        let note = untold_trouble(&with(&second));
        let says = matches!(&note, Some(Note::Ranks { text, is_consequence: false })
            if text.starts_with("a process takes part as rank 1 of a job that has 1 rank: its world_size"));
        assert!(says, "{note:?}");
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

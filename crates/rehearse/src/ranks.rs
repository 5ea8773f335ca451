//! What each rank of a job used, and why ranks failed, from the findings of a run. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ghostgpu_recording::RankPeak;
use ghostgpu_rendezvous::find_circle;
use ghostgpu_session::{Note, ProcessReport};
use ghostgpu_text::counted;

use crate::findings::Findings;
use crate::started_ranks::fatal_signal;

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
    let has_reason = |process: &ProcessReport| {
        process.rank.is_some()
            && process
                .exception
                .as_deref()
                .is_some_and(|exception| !is_consequence(findings, exception))
    };
    if trouble(findings).is_some() || findings.processes.iter().any(has_reason) {
        return None;
    }
    let waited_for = || {
        findings.notes.iter().find_map(|note| match note {
            Note::Ranks { text, .. } => Some(text.clone()),
            _ => None,
        })
    };
    Some(Note::Ranks {
        text: died(findings).or_else(waited_for)?,
        is_consequence: false,
    })
}

/// A sentence about a rank that ended without a report, which only happens to a process that was killed.
fn died(findings: &Findings) -> Option<String> {
    let has_report = |pid: u32| findings.processes.iter().any(|each| each.pid == pid);
    let noted = findings.notes.iter().filter_map(|note| match note {
        Note::Rank { rank, process } => Some((*rank, *process)),
        _ => None,
    });
    let noted: BTreeSet<(u32, u32)> = noted.filter(|(_, pid)| !has_report(*pid)).collect();
    let started = findings.started_ranks.by_variables.iter();
    let started = started.map(|(&rank, &pid)| (rank, pid));
    let silent = || {
        let started = started.clone().filter(|(_, pid)| !has_report(*pid));
        noted.iter().copied().chain(started)
    };
    let fault = silent().find_map(|(rank, pid)| {
        let what = fatal_signal(findings.started_ranks.faults.get(&pid)?)?;
        Some(format!("rank {rank} died of {what}"))
    });
    let killed = || {
        // A launcher ends the ranks that are left by SIGTERM.
        let mut signals = silent().filter_map(|(rank, pid)| {
            let signal = signal_that_ended(findings, pid)?;
            (signal != SIGTERM).then_some((rank, signal))
        });
        signals.next().map(|(rank, signal)| match signal {
            SIGKILL => format!(
                "rank {rank} was killed by SIGKILL: the system does that when this machine's own memory runs out, \
                 and so do batch systems"
            ),
            _ => format!("rank {rank} was ended by {}", signal_name(signal)),
        })
    };
    let unknown = || {
        let (rank, _) = noted.first()?;
        Some(format!(
            "rank {rank} ended without a word: it was killed, perhaps for want of this machine's own memory, or \
             ended itself with os._exit"
        ))
    };
    fault.or_else(killed).or_else(unknown)
}

const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

/// The signal that ended a process, if its launcher says so.
fn signal_that_ended(findings: &Findings, pid: u32) -> Option<i32> {
    let mut exits = findings.processes.iter().flat_map(|each| &each.child_exits);
    let exit = exits.find(|exit| exit.pid == pid)?;
    (exit.exit_code < 0).then_some(-exit.exit_code)
}

fn signal_name(number: i32) -> String {
    const NAMES: [(i32, &str); 12] = [
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (3, "SIGQUIT"),
        (4, "SIGILL"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (10, "SIGUSR1"),
        (11, "SIGSEGV"),
        (12, "SIGUSR2"),
        (24, "SIGXCPU"),
        (31, "SIGSYS"),
    ];
    let known = NAMES.iter().find(|(known, _)| *known == number);
    known.map_or_else(
        || format!("signal {number}"),
        |(_, name)| (*name).to_owned(),
    )
}

/// Why ranks are no job that works, although each of them ended well, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unworkable {
    /// None of them made a process group, however long they were rehearsed.
    NeverMet(String),
    /// Some made a group without the others, or they called what waits for each other.
    Hangs(String),
}

impl Unworkable {
    /// What the ranks of a run that has ended left in its folder, if it shows that they do not work together.
    pub fn found(findings: &Findings, run_dir: &Path) -> Option<Self> {
        let circle = || find_circle(run_dir).map(|circle| Self::Hangs(circle.to_string()));
        Self::by_reports(findings).or_else(circle)
    }

    fn by_reports(findings: &Findings) -> Option<Self> {
        // A report that cannot be read may be that of a rank which did everything right.
        if !findings.used_cuda() || !findings.damages.is_empty() {
            return None;
        }
        let apart = never_met(findings).map(Self::NeverMet);
        apart.or_else(|| never_joined(findings).map(Self::Hangs))
    }

    pub fn sentence(&self) -> &str {
        match self {
            Self::NeverMet(sentence) | Self::Hangs(sentence) => sentence,
        }
    }
}

/// A sentence if several ranks were started and none of them made a process group.
fn never_met(findings: &Findings) -> Option<String> {
    let started = &findings.started_ranks;
    let mut processes = findings.processes.iter();
    let has_met = started.has_communicators || processes.any(|each| each.world_size.is_some());
    let ranks: Vec<u32> = started.by_variables.keys().copied().collect();
    (ranks.len() > 1 && !has_met).then(|| {
        format!(
            "{} were started together and none of them called init_process_group: each works by itself, and nothing is \
             distributed (to rehearse one alone, start the script without its launcher)",
            listed(&ranks)
        )
    })
}

/// A sentence if some ranks made a group and others, which belong to it, ended without that.
fn never_joined(findings: &Findings) -> Option<String> {
    let started = &findings.started_ranks;
    let of_job = findings.processes.iter().filter_map(|process| {
        let size = process.world_size.filter(|size| *size > 1)?;
        Some((process.rank?, size))
    });
    let of_job: BTreeMap<u32, u32> = of_job.collect();
    let size = of_job.values().copied().max()?;
    let are_all_here = started.here.is_some_and(|here| here >= size);
    let expected: Vec<u32> = match started.by_variables.is_empty() {
        true if are_all_here => (0..size).collect(),
        _ => started.by_variables.keys().copied().collect(),
    };
    let missing: Vec<u32> = expected
        .into_iter()
        .filter(|rank| *rank < size && !of_job.contains_key(rank))
        .collect();
    if missing.is_empty() || of_job.len() >= size as usize {
        return None;
    }
    let joined: Vec<u32> = of_job.into_keys().collect();
    Some(format!(
        "{} ended without joining the job of {size} ranks that {} began: a real job would hang at the first call that \
         needs all of them",
        listed(&missing),
        listed(&joined)
    ))
}

/// What ranks did when they were ended, if one of them waited for another: `rank 0 waits in all_reduce at train.py:9,
/// rank 1 is at train.py:7`. Who waits comes first.
pub fn in_the_end(findings: &Findings) -> Option<String> {
    const MOST: usize = 4;
    let waiting = &findings.started_ranks.waiting;
    let noted = findings.notes.iter().filter_map(|note| match note {
        Note::Rank { rank, process } => Some((*rank, *process)),
        _ => None,
    });
    let reported = findings.processes.iter();
    let reported = reported.filter_map(|process| Some((process.rank?, process.pid)));
    let ranks: BTreeSet<(u32, u32)> = noted.chain(reported).collect();
    let place = |(rank, pid): (u32, u32)| {
        if let Some(call) = waiting.get(&pid) {
            return Some((false, rank, format!("rank {rank} waits in {call}")));
        }
        let process = findings.processes.iter().find(|each| each.pid == pid)?;
        let interrupted = process.exception_at.as_ref().filter(|_| {
            let exception = process.exception.as_deref();
            exception.is_some_and(|name| name.starts_with("KeyboardInterrupt"))
        });
        let line = process.terminated_at.as_ref().or(interrupted)?;
        Some((true, rank, format!("rank {rank} is at {line}")))
    };
    let mut places: Vec<(bool, u32, String)> = ranks.into_iter().filter_map(place).collect();
    places.sort();
    let is_waiting = places.first().is_some_and(|(is_busy, ..)| !is_busy);
    // Those who wait are many and alike.
    let busy = places.iter().filter(|(is_busy, ..)| *is_busy);
    let waiting = places.iter().filter(|(is_busy, ..)| !is_busy).take(1);
    let words: Vec<String> = waiting
        .chain(busy)
        .take(MOST)
        .map(|it| it.2.clone())
        .collect();
    is_waiting.then(|| words.join(", "))
}

/// `rank 3`, `ranks 0 and 1`, `ranks 0, 1, 2 and 61 more`.
fn listed(ranks: &[u32]) -> String {
    const MOST: usize = 8;
    let words: Vec<String> = ranks.iter().take(MOST).map(u32::to_string).collect();
    match (words.split_last(), ranks.len()) {
        (Some((only, [])), _) => format!("rank {only}"),
        (Some((last, others)), count) if count <= MOST => {
            format!("ranks {} and {last}", others.join(", "))
        }
        (_, count) => format!(
            "ranks {} and {} more",
            words.join(", "),
            count - MOST.min(count)
        ),
    }
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
    use crate::started_ranks::StartedRanks;
    use ghostgpu_session::card_usage::{CardUse, ProcessUse};
    use ghostgpu_session::{AllocatorPeaks, ChildExit};

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

    /// Ranks that were started as these processes, on this machine.
    fn started(ranks: &[(u32, u32)]) -> StartedRanks {
        StartedRanks {
            by_variables: ranks.iter().copied().collect(),
            here: Some(ranks.len() as u32),
            ..StartedRanks::default()
        }
    }

    fn on_card(processes: Vec<ProcessReport>, started_ranks: StartedRanks) -> Findings {
        Findings {
            processes,
            started_ranks,
            cards: vec![CardUse {
                used_bytes: 0,
                peak_bytes: 5,
            }],
            ..Findings::default()
        }
    }

    fn unworkable(findings: &Findings) -> Option<String> {
        Unworkable::by_reports(findings).map(|it| it.sentence().to_owned())
    }

    #[test]
    fn ranks_that_make_no_group_are_told_that_nothing_is_distributed() {
        let apart = |pid| ProcessReport {
            pid,
            ..ProcessReport::default()
        };
        let both = started(&[(0, 2), (1, 3)]);
        let findings = on_card(vec![apart(2), apart(3)], both.clone());
        let told = unworkable(&findings).expect("a sentence");
        assert!(
            told.starts_with(
                "ranks 0 and 1 were started together and none of them called init_process_group"
            ),
            "{told}"
        );
        // One rank alone is a script whose variables say nothing, and so is one that leaves the card alone.
        assert_eq!(
            unworkable(&on_card(vec![apart(2)], started(&[(0, 2)]))),
            None
        );
        let mut elsewhere = findings.clone();
        elsewhere.cards.clear();
        assert_eq!(unworkable(&elsewhere), None);
        let mut by_other_means = findings;
        by_other_means.started_ranks.has_communicators = true;
        assert_eq!(unworkable(&by_other_means), None);
        let alone = |pid| ProcessReport {
            world_size: Some(1),
            ..process(pid, Some(0), 5)
        };
        assert_eq!(unworkable(&on_card(vec![alone(2), alone(3)], both)), None);
    }

    #[test]
    fn a_rank_that_never_joins_is_named() {
        let both = started(&[(0, 2), (1, 3)]);
        let spawned = StartedRanks {
            here: Some(2),
            ..StartedRanks::default()
        };
        for started in [both.clone(), spawned] {
            let told = unworkable(&on_card(vec![process(2, Some(0), 5)], started));
            let expected = "rank 1 ended without joining the job of 2 ranks that rank 0 began: a real job would hang at \
                            the first call that needs all of them";
            assert_eq!(told.as_deref(), Some(expected));
        }
        let together = vec![process(2, Some(0), 5), process(3, Some(1), 5)];
        assert_eq!(unworkable(&on_card(together.clone(), both)), None);
        // The third is not part of a job of two, and the second of these runs on another machine.
        let three = started(&[(0, 2), (1, 3), (2, 4)]);
        assert_eq!(unworkable(&on_card(together, three)), None);
        let first = vec![process(2, Some(0), 5)];
        assert_eq!(unworkable(&on_card(first, started(&[(0, 2)]))), None);
    }

    #[test]
    fn ranks_whose_time_is_up_are_told_with_where_they_are() {
        let busy = ProcessReport {
            exception: Some("KeyboardInterrupt".to_owned()),
            exception_at: Some("train.py:7".to_owned()),
            ..process(3, Some(1), 5)
        };
        let mut findings = on_card(vec![busy], started(&[(0, 2), (1, 3), (2, 4)]));
        assert_eq!(in_the_end(&findings), None);
        findings.notes = [(0, 2), (2, 4)]
            .map(|(rank, process)| Note::Rank { rank, process })
            .to_vec();
        let waits = |pid| (pid, "barrier at train.py:9".to_owned());
        findings.started_ranks.waiting = [2, 4].map(waits).into();
        let told = in_the_end(&findings);
        let expected = "rank 0 waits in barrier at train.py:9, rank 1 is at train.py:7";
        assert_eq!(told.as_deref(), Some(expected));
    }

    #[test]
    fn a_rank_that_died_is_told_by_its_signal_and_only_a_kill_is_about_memory() {
        let died = |fault: Option<&str>, exit_code: Option<i32>| {
            let mut started = started(&[(0, 2), (1, 3)]);
            started.faults = fault.map(|text| (3, text.to_owned())).into_iter().collect();
            let exits = [(2, -15), (3, exit_code.unwrap_or(1))];
            let launcher = ProcessReport {
                child_exits: exits
                    .map(|(pid, exit_code)| ChildExit { pid, exit_code })
                    .to_vec(),
                ..process(1, None, 0)
            };
            let mut findings = on_card(vec![launcher], started);
            findings.notes = [(0, 2), (1, 3)]
                .map(|(rank, process)| Note::Rank { rank, process })
                .to_vec();
            match untold_trouble(&findings) {
                Some(Note::Ranks { text, .. }) => text,
                other => panic!("{other:?}"),
            }
        };
        let fault = "Fatal Python error: Segmentation fault\n\n  File \"/home/me/train.py\", line 9 in <module>\n";
        assert_eq!(
            died(Some(fault), Some(-11)),
            "rank 1 died of a segmentation fault (SIGSEGV) at train.py:9"
        );
        assert_eq!(died(None, Some(-11)), "rank 1 was ended by SIGSEGV");
        assert!(
            died(None, Some(-9))
                .starts_with("rank 1 was killed by SIGKILL: the system does that when")
        );
        assert!(died(None, None).contains("ended without a word"));
    }
}

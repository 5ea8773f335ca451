use std::cell::RefCell;
use std::rc::Rc;

use ghostgpu_session::card_usage::ProcessUse;
use ghostgpu_session::{AllocatorPeaks, Coverage, MemoryLimit, StepPeaks};

use super::*;
use crate::fake_runner::{FakeRunner, does_not_fit, fails, fits, interrupted, times_out};

const MIB: u64 = 1 << 20;

/// A completed run that allocated and reserved these bytes, beside a context of 100 MiB.
fn ends_with(allocated: u64, reserved: u64) -> Result<Run, Stop> {
    let mut run = fits(reserved)?;
    run.findings.processes[0].peaks[0].peak_allocated_bytes = allocated;
    run.findings.processes[0].steps = 3;
    run.findings.cards[0].peak_bytes = reserved + 100 * MIB;
    run.memory = Memory::Unrecorded("its allocator keeps no history".to_owned());
    Ok(run)
}

/// The memory of a rehearsal's cards, if it sets one.
fn memory_of(rehearsal: &Rehearsal) -> Option<u64> {
    rehearsal.changes.iter().find_map(|change| match change {
        Change::Memory(bytes) => Some(*bytes),
        _ => None,
    })
}

/// A job that needs a card of `least` bytes and reserves up to 2,000 MiB, and the list of memory sizes it is rehearsed with.
fn job(least: u64) -> (FakeRunner, Rc<RefCell<Vec<u64>>>) {
    let rehearsed = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&rehearsed);
    let runner = FakeRunner::new(move |rehearsal| {
        let Some(memory) = memory_of(rehearsal) else {
            return ends_with(1000 * MIB, 2000 * MIB);
        };
        assert_eq!(rehearsal.records, Records::Nothing);
        seen.borrow_mut().push(memory);
        match memory >= least {
            true => ends_with(990 * MIB, (memory - 100 * MIB).min(2000 * MIB)),
            false => does_not_fit(),
        }
    });
    (runner, rehearsed)
}

fn proposal(smallest_bytes: u64) -> Proposal {
    Proposal {
        smallest_bytes,
        below_gap_bytes: None,
        comfortable_bytes: 2000 * MIB,
        outside_bytes: 100 * MIB,
        takes_smaller_workspaces: true,
        flushes: 7,
        limit: None,
        is_estimate: false,
    }
}

fn confirmed(least: u64, proposal: &Proposal) -> (Smallest, Vec<u64>) {
    let (mut runner, rehearsed) = job(least);
    let run = ends_with(1000 * MIB, 2000 * MIB).expect("a run");
    let smallest = Search::new(&mut runner, &[], &run)
        .confirm(proposal)
        .expect("no stop");
    (smallest, rehearsed.take())
}

#[test]
fn a_proposal_that_is_enough_takes_one_rehearsal() {
    let (smallest, rehearsed) = confirmed(1300 * MIB, &proposal(1200 * MIB));
    assert_eq!(rehearsed, [1300 * MIB]);
    assert_eq!(
        smallest,
        Smallest {
            device_bytes: 1300 * MIB,
            reserved_bytes: Some(1200 * MIB),
            allocated_bytes: Some(990 * MIB),
            comfortable_device_bytes: Some(2100 * MIB),
            flushes: Some(0),
            takes_smaller_workspaces: true,
            steps: 3,
            growth_bytes: 0,
            is_confirmed: true,
        }
    );
}

#[test]
fn an_unconfirmed_need_is_what_the_replay_proposes() {
    let (mut runner, rehearsed) = job(1300 * MIB);
    let run = ends_with(1000 * MIB, 2000 * MIB).expect("a run");
    let smallest = Search::new(&mut runner, &[], &run).unconfirmed(&proposal(1200 * MIB));
    assert_eq!(rehearsed.take(), [] as [u64; 0]);
    assert_eq!(smallest.device_bytes, 1300 * MIB);
    assert_eq!(smallest.reserved_bytes, Some(1200 * MIB));
    assert_eq!(smallest.flushes, Some(7));
    assert!(!smallest.is_confirmed);
}

#[test]
fn a_script_that_takes_half_of_a_card_needs_one_of_twice_the_size() {
    let limited = Proposal {
        limit: Some(MemoryLimit {
            device: 0,
            limit_bytes: 3000 * MIB,
            total_bytes: 6000 * MIB,
        }),
        ..proposal(1200 * MIB)
    };
    let card = limited.card_for(1200 * MIB);
    assert_eq!(card, 2400 * MIB + 1);
    assert_eq!(limited.reserved_on(card), 1200 * MIB);
    // The smallest memory for PyTorch is still 1,200 MiB.
    let (smallest, rehearsed) = confirmed(card, &limited);
    assert_eq!(rehearsed, [card]);
    assert_eq!(smallest.reserved_bytes, Some(1200 * MIB));
    // If the script may take nearly all of the card, the context is what limits it.
    let nearly_all = Proposal {
        limit: Some(MemoryLimit {
            device: 0,
            limit_bytes: 5999 * MIB,
            total_bytes: 6000 * MIB,
        }),
        ..proposal(1200 * MIB)
    };
    assert_eq!(nearly_all.card_for(1200 * MIB), 1300 * MIB);
}

#[test]
fn a_proposal_that_is_not_enough_is_raised_until_the_job_completes() {
    for more in [1, 3, 10, 30, 80] {
        let least = (1300 + more) * MIB;
        let (smallest, rehearsed) = confirmed(least, &proposal(1200 * MIB));
        assert!(smallest.is_confirmed, "{more}: {rehearsed:?}");
        assert!(rehearsed.len() <= 5, "{more}: {rehearsed:?}");
        let excess = smallest.device_bytes - least;
        assert!(
            excess <= least / 40,
            "{more}: {excess} too much, {rehearsed:?}"
        );
    }
}

#[test]
fn if_no_rehearsal_confirms_less_the_need_is_the_peak_of_the_run() {
    let (smallest, rehearsed) = confirmed(u64::MAX, &proposal(1200 * MIB));
    assert_eq!(rehearsed.len(), 5);
    assert_eq!(smallest.device_bytes, 2100 * MIB);
    assert_eq!(smallest.reserved_bytes, Some(2000 * MIB));
    assert!(!smallest.is_confirmed);
}

#[test]
fn an_estimate_that_is_enough_is_lowered_while_the_job_completes() {
    let estimate = Proposal {
        is_estimate: true,
        ..proposal(1200 * MIB)
    };
    let (smallest, rehearsed) = confirmed(1290 * MIB, &estimate);
    assert_eq!(rehearsed, [1300 * MIB, 1288 * MIB]);
    assert_eq!(smallest.device_bytes, 1300 * MIB);
    let (smallest, rehearsed) = confirmed(1000 * MIB, &estimate);
    assert_eq!(rehearsed.len(), 3);
    assert_eq!(smallest.device_bytes, rehearsed[2]);
    assert!(smallest.is_confirmed);
}

#[test]
fn less_than_the_proposal_is_enough_below_a_gap_that_only_the_replay_has() {
    let gap = Proposal {
        below_gap_bytes: Some(1100 * MIB),
        ..proposal(1200 * MIB)
    };
    let (smallest, rehearsed) = confirmed(1150 * MIB, &gap);
    assert_eq!(rehearsed, [1298 * MIB, 1200 * MIB]);
    assert_eq!(smallest.reserved_bytes, Some(1100 * MIB));
    assert!(smallest.is_confirmed);
    let (smallest, rehearsed) = confirmed(1250 * MIB, &gap);
    assert_eq!(rehearsed, [1298 * MIB, 1200 * MIB]);
    assert_eq!(smallest.reserved_bytes, Some(1198 * MIB));
    // The job fails in it, too.
    let (smallest, rehearsed) = confirmed(1299 * MIB, &gap);
    assert_eq!(rehearsed, [1298 * MIB, 1300 * MIB]);
    assert_eq!(smallest.reserved_bytes, Some(1200 * MIB));
}

#[test]
fn a_rehearsal_at_its_time_limit_is_not_repeated_with_more_memory() {
    let mut runner = FakeRunner::new(|_| times_out());
    let run = ends_with(1000 * MIB, 2000 * MIB).expect("a run");
    let smallest = Search::new(&mut runner, &[], &run)
        .confirm(&proposal(1200 * MIB))
        .expect("no stop");
    assert_eq!(runner.seen.len(), 1);
    assert_eq!(smallest.device_bytes, 2100 * MIB);
    assert!(!smallest.is_confirmed);
}

#[test]
fn without_a_history_bisection_finds_the_need_closely() {
    for least in [1101, 1234, 1500, 1900, 2099] {
        let (mut runner, rehearsed) = job(least * MIB);
        let run = ends_with(1000 * MIB, 2000 * MIB).expect("a run");
        let Need::Found(smallest) = need(&mut runner, &[], &run).expect("no stop").need else {
            panic!("it ended");
        };
        let found = smallest.device_bytes;
        assert!(found >= least * MIB, "{least}");
        assert!(found - least * MIB <= found / 50, "{least}: {found}");
        assert!((1..=6).contains(&rehearsed.borrow().len()), "{least}");
    }
}

#[test]
fn a_job_that_ran_out_of_memory_is_rehearsed_with_unlimited_memory_first() {
    let (mut runner, rehearsed) = job(1500 * MIB);
    let run = does_not_fit().expect("a run");
    let measured = need(&mut runner, &[], &run).expect("no stop");
    assert_eq!(runner.seen[0].0, Purpose::Need);
    assert_eq!(runner.seen.len(), 1 + rehearsed.borrow().len());
    assert!(matches!(measured.memory, Memory::Unrecorded(_)));
    let Need::Found(smallest) = measured.need else {
        panic!("it ended with unlimited memory");
    };
    assert!(smallest.is_confirmed);
    assert!(smallest.device_bytes < 1530 * MIB);
}

#[test]
fn a_job_that_ended_unrecorded_is_rehearsed_again_for_its_history() {
    let mut runner = FakeRunner::new(|rehearsal| {
        if memory_of(rehearsal).is_none() {
            assert_eq!(rehearsal.records, Records::History);
        }
        ends_with(1000 * MIB, 1000 * MIB)
    });
    let mut run = ends_with(1000 * MIB, 1000 * MIB).expect("a run");
    run.memory = Memory::Unwanted;
    need(&mut runner, &[], &run).expect("no stop");
    assert_eq!(runner.seen[0].0, Purpose::Need);
}

#[test]
fn a_script_that_used_no_card_needs_none() {
    let mut runner = FakeRunner::new(|_| panic!("there is nothing to rehearse"));
    let run = Run::new(Ending::Exited(0), Default::default());
    let Need::Found(smallest) = need(&mut runner, &[], &run).expect("no stop").need else {
        panic!("it ended");
    };
    assert_eq!(smallest.device_bytes, 0);
    assert!(smallest.is_confirmed);
}

#[test]
fn a_rehearsal_with_unlimited_memory_that_fails_says_why_the_need_is_unknown() {
    let unknown = |mut runner: FakeRunner| {
        let run = does_not_fit().expect("a run");
        match need(&mut runner, &[], &run).map(|measured| measured.need) {
            Ok(Need::Unknown(because)) => because.to_string(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        unknown(FakeRunner::new(|_| fails("KeyError: 'x'"))),
        "ended with KeyError: 'x'"
    );
    assert_eq!(
        unknown(FakeRunner::new(|_| times_out())),
        "did not end in time"
    );
    assert_eq!(
        unknown(FakeRunner::new(|_| does_not_fit())),
        "ran out of memory too"
    );
}

#[test]
fn an_interrupt_is_passed_on() {
    let mut runner = FakeRunner::new(|_| interrupted());
    let run = does_not_fit().expect("a run");
    let stopped = need(&mut runner, &[], &run);
    assert!(matches!(stopped, Err(Stop::Interrupted(2))), "{stopped:?}");
}

#[test]
fn what_distinct_ranks_need_is_not_rehearsed_and_is_enough_for_the_others() {
    let (mut runner, rehearsed) = job(1300 * MIB);
    let mut run = ends_with(1000 * MIB, 2000 * MIB).expect("a run");
    let main = &mut run.findings.processes[0];
    (main.rank, main.world_size) = (Some(0), Some(4));
    let mut other = main.clone();
    other.pid += 1;
    other.rank = Some(1);
    other.peaks[0].peak_reserved_bytes = 1500 * MIB;
    run.findings.process_use = vec![
        on_card(run.findings.processes[0].pid, 0, 2100 * MIB),
        on_card(other.pid, 1, 1600 * MIB),
    ];
    run.findings.processes.push(other);
    for (proposed, needed) in [(1700 * MIB, 1800 * MIB), (1200 * MIB, 1600 * MIB)] {
        let found =
            Search::new(&mut runner, &[], &run).unconfirmed_beside_others(&proposal(proposed));
        assert_eq!(found.device_bytes, needed);
        assert_eq!(found.reserved_bytes, Some(needed - 100 * MIB));
        assert!(!found.is_confirmed);
    }
    assert!(rehearsed.take().is_empty());
}

fn on_card(process: u32, device: usize, peak_bytes: u64) -> ProcessUse {
    ProcessUse {
        process,
        device,
        peak_bytes,
        used_bytes: 0,
        at_card_peak_bytes: peak_bytes,
    }
}

#[test]
fn what_grows_in_epochs_that_were_shortened_is_part_of_the_need() {
    let need_with = |left_out_steps: Option<u64>| {
        let grows = move |memory: Option<u64>| {
            let mut run = ends_with(1000 * MIB, 1000 * MIB)?;
            run.findings.cards[0].peak_bytes = memory.unwrap_or(1100 * MIB);
            let process = &mut run.findings.processes[0];
            process.step_peaks = (1..=20).map(|step| peak_of_step(step * 3 * MIB)).collect();
            process.coverage = Some(Coverage {
                is_training_shortened: true,
                left_out_steps,
                ..Coverage::default()
            });
            Ok(run)
        };
        let mut runner = FakeRunner::new(move |rehearsal| grows(memory_of(rehearsal)));
        let run = runner.rehearse(&Rehearsal::as_it_is()).expect("a run");
        match need(&mut runner, &[], &run).expect("no stop").need {
            Need::Found(smallest) => smallest,
            Need::Unknown(because) => panic!("{because:?}"),
        }
    };
    // For ever: the need is that of the rehearsed part.
    let so_far = need_with(None);
    assert_eq!(so_far.growth_bytes, 0);
    let whole = need_with(Some(101));
    // 303 MiB and a hundredth, in whole segments.
    assert_eq!(whole.growth_bytes, 308 * MIB);
    assert_eq!(whole.device_bytes, so_far.device_bytes + 308 * MIB);
    assert!(!whole.is_confirmed);
}

/// A step whose peak on the only card is this.
fn peak_of_step(bytes: u64) -> StepPeaks {
    StepPeaks {
        step: 0,
        devices: vec![AllocatorPeaks {
            peak_allocated_bytes: bytes,
            ..AllocatorPeaks::default()
        }],
    }
}

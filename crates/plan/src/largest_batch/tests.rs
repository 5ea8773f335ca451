use ghostgpu_rehearse::{Failure, Outcome, Purpose, Reason, Rehearsal, Run, SizePointReport, Stop};

use super::*;
use crate::fake_runner::{
    FakeRunner, Holds, batch_of, does_not_fit, fails, fits, fits_with, interrupted, on_card,
    times_out,
};
use ghostgpu_session::{ProcessReport, TrainingData};

const MIB: u64 = 1 << 20;
const CAPACITY: u64 = 1000 * MIB;

fn goal(point: SizePoint) -> Goal {
    Goal {
        point,
        given: None,
        at_most: None,
        whole_because: None,
        capacity_bytes: CAPACITY,
        margin_bytes: 0,
        first_steps: Some(3),
    }
}

fn at_loader() -> SizePointReport {
    SizePointReport {
        is_found: true,
        place: "the DataLoader at train.py:9".to_owned(),
        batch: Some(8),
        ..SizePointReport::default()
    }
}

/// A job that takes 100 MiB, and 10 MiB for every sample.
fn training(rehearsal: &Rehearsal) -> Result<Run, Stop> {
    let batch = batch_of(rehearsal).unwrap_or(8);
    on_card((100 + 10 * batch) * MIB, CAPACITY)
}

fn found(result: Result<LargestBatch, Stop>) -> Found {
    match result {
        Ok(LargestBatch::Found(found)) => *found,
        other => panic!("{other:?}"),
    }
}

fn not_found(result: Result<LargestBatch, Stop>) -> NotFound {
    match result {
        Ok(LargestBatch::NotFound(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_script_that_waits_is_searched_in_forks_and_confirmed_by_a_whole_run() {
    let mut runner = FakeRunner::new(training).holding(Holds::Waits(at_loader()));
    let mut found = found(find(&mut runner, &goal(SizePoint::TrainingLoader)));
    assert_eq!(found.batch, 90);
    assert_eq!(found.whole_because, None);
    assert!(matches!(
        found.outcomes.get(&91),
        Some(Outcome::DoesNotFit(_))
    ));
    assert!(runner.seen.iter().all(|(_, is_forked)| *is_forked));
    let (confirmation, _) =
        confirm(&mut runner, &goal(SizePoint::TrainingLoader), &mut found).expect("a run");
    assert_eq!(confirmation, Confirmation::Equal);
    assert_eq!(
        runner.seen.last(),
        Some(&(Purpose::Confirmation { batch: 90 }, false))
    );
}

#[test]
fn a_whole_run_that_does_not_fit_or_end_contradicts_the_forks() {
    for whole in [does_not_fit, times_out] {
        let answer = move |rehearsal: &Rehearsal| match rehearsal.purpose {
            Purpose::Confirmation { .. } => whole(),
            _ => training(rehearsal),
        };
        let mut runner = FakeRunner::new(answer).holding(Holds::Waits(at_loader()));
        let mut found = found(find(&mut runner, &goal(SizePoint::TrainingLoader)));
        let (confirmation, _) =
            confirm(&mut runner, &goal(SizePoint::TrainingLoader), &mut found).expect("a run");
        assert_eq!(confirmation, Confirmation::Contradicts);
    }
}

#[test]
fn an_interrupt_while_a_batch_is_confirmed_is_passed_on() {
    let answer = |rehearsal: &Rehearsal| match rehearsal.purpose {
        Purpose::Confirmation { .. } => interrupted(),
        _ => training(rehearsal),
    };
    let mut runner = FakeRunner::new(answer).holding(Holds::Waits(at_loader()));
    let mut found = found(find(&mut runner, &goal(SizePoint::TrainingLoader)));
    let result = confirm(&mut runner, &goal(SizePoint::TrainingLoader), &mut found);
    assert!(matches!(result, Err(Stop::Interrupted(2))), "{result:?}");
}

#[test]
fn what_cannot_be_forked_is_searched_in_whole_runs_and_says_why() {
    let unforkable = SizePointReport {
        unforkable: Some("the script runs threads (loader)".to_owned()),
        ..at_loader()
    };
    let process = ProcessReport {
        size_point: Some(at_loader()),
        ..ProcessReport::default()
    };
    let answer = move |rehearsal: &Rehearsal| {
        let batch = batch_of(rehearsal).unwrap_or(8);
        match 100 + 10 * batch <= 1000 {
            true => fits_with((100 + 10 * batch) * MIB, process.clone()),
            false => does_not_fit(),
        }
    };
    let mut runner = FakeRunner::new(answer).holding(Holds::Ends(unforkable));
    let mut found = found(find(&mut runner, &goal(SizePoint::TrainingLoader)));
    assert_eq!(found.batch, 90);
    let because = found.whole_because.clone().expect("a reason");
    assert_eq!(
        because,
        WholeBecause::Unforkable("the script runs threads (loader)".to_owned())
    );
    assert!(runner.seen.iter().all(|(_, is_forked)| !is_forked));
    let count = runner.seen.len();
    let (confirmation, _) = confirm(&mut runner, &goal(SizePoint::TrainingLoader), &mut found)
        .expect("the run that fits");
    assert_eq!(confirmation, Confirmation::FoundByRuns);
    assert_eq!(runner.seen.len(), count);
}

#[test]
fn a_broken_connection_leads_to_whole_runs() {
    let mut runner = FakeRunner::new(|rehearsal| match rehearsal.purpose {
        Purpose::Size { count: 2, .. } if batch_of(rehearsal) == Some(16) => {
            Err(Stop::Failed(Failure::new("a fork did not end in time")))
        }
        _ => training(rehearsal),
    })
    .holding(Holds::Waits(at_loader()));
    let mut goal = goal(SizePoint::Option("--batch-size".to_owned()));
    goal.at_most = Some(8);
    goal.given = Some(4);
    let found = found(find(&mut runner, &goal));
    assert_eq!(found.batch, 8);
    let mut runner = FakeRunner::new(|_| Err(Stop::Failed(Failure::new("no line"))))
        .holding(Holds::Waits(at_loader()));
    // If forks do not work, the search goes on; if whole runs do not work, it stops.
    let result = find(&mut runner, &goal);
    assert!(matches!(result, Err(Stop::Failed(_))), "{result:?}");
    assert_eq!(
        runner.seen.iter().map(|seen| seen.1).collect::<Vec<_>>(),
        [true, false]
    );
}

#[test]
fn a_signal_ends_the_search_in_forks_and_in_whole_runs() {
    for is_forked in [true, false] {
        let mut runner = FakeRunner::new(|_| interrupted()).holding(Holds::Waits(at_loader()));
        let mut goal = goal(SizePoint::TrainingLoader);
        goal.whole_because = (!is_forked).then_some(WholeBecause::Asked);
        let result = find(&mut runner, &goal);
        assert!(matches!(result, Err(Stop::Interrupted(2))), "{result:?}");
        assert_eq!(runner.seen.len(), 1);
    }
}

#[test]
fn a_time_limit_ends_the_search() {
    let mut runner = FakeRunner::new(|_| times_out()).holding(Holds::Waits(at_loader()));
    let result = find(&mut runner, &goal(SizePoint::TrainingLoader));
    assert!(matches!(result, Err(Stop::TimedOut(_))), "{result:?}");
}

#[test]
fn a_script_without_gradients_is_held_at_its_first_loader() {
    let seen = SizePointReport {
        has_other_loader: true,
        ..SizePointReport::default()
    };
    let mut runner = FakeRunner::new(|_| fits(1)).holding(Holds::Ends(seen));
    let reason = not_found(find(&mut runner, &goal(SizePoint::TrainingLoader)));
    assert!(matches!(reason, NotFound::NoLoader { .. }), "{reason:?}");
    assert_eq!(
        runner.held,
        [SizePoint::TrainingLoader, SizePoint::FirstLoader]
    );
}

#[test]
fn a_script_that_fails_in_forks_and_in_a_whole_run_is_reported_as_failing() {
    let mut runner = FakeRunner::new(|_| fails("KeyError: 'x'")).holding(Holds::Waits(at_loader()));
    let point = SizePoint::Option("--batch-size".to_owned());
    let reason = not_found(find(&mut runner, &goal(point)));
    let NotFound::Fails { batch, reason, .. } = reason else {
        panic!("{reason:?}");
    };
    assert_eq!(batch, Some(8));
    assert_eq!(reason, Reason::Exception("KeyError: 'x'".to_owned()));
    assert_eq!(runner.seen.len(), 2, "once forked, once whole");
}

#[test]
fn a_batch_of_one_that_does_not_fit_is_the_answer() {
    let mut runner = FakeRunner::new(|_| does_not_fit()).holding(Holds::Waits(at_loader()));
    let reason = not_found(find(&mut runner, &goal(SizePoint::TrainingLoader)));
    assert!(
        matches!(reason, NotFound::NotEvenOne { batch: 1, .. }),
        "{reason:?}"
    );
}

fn steps_of(rehearsal: &Rehearsal) -> Option<u64> {
    rehearsal.changes.iter().find_map(|change| match change {
        Change::Steps(steps) => Some(*steps),
        _ => None,
    })
}

/// The report of a process whose loader has this many samples.
fn trained(samples: u64, batch: Option<u64>, total_allocated_bytes: u64) -> ProcessReport {
    ProcessReport {
        training_data: Some(TrainingData { samples, batch }),
        total_allocated_bytes,
        ..ProcessReport::default()
    }
}

#[test]
fn the_first_steps_are_searched_first_and_the_answer_fits_with_everything_after_them() {
    // The ends of epochs take more than the first steps: 90 fit for three steps, 80 for everything.
    let answer = |rehearsal: &Rehearsal| {
        let batch = batch_of(rehearsal).expect("a batch");
        let later = match steps_of(rehearsal) {
            Some(_) => 0,
            None => 100,
        };
        on_card((100 + later + 10 * batch) * MIB, CAPACITY)
    };
    for holds in [
        Holds::Waits(at_loader()),
        Holds::Ends(SizePointReport {
            unforkable: Some("it has threads".to_owned()),
            ..at_loader()
        }),
    ] {
        let point = SizePoint::Option("--batch-size".to_owned());
        let mut runner = FakeRunner::new(answer).holding(holds);
        let mut found = found(find(&mut runner, &goal(point.clone())));
        assert_eq!(found.batch, 80);
        assert!(found.outcomes[&80].peaks().is_some());
        assert!(matches!(found.outcomes[&81], Outcome::DoesNotFit(_)));
        let (_, run) = confirm(&mut runner, &goal(point), &mut found).expect("a run");
        assert_eq!(run.peaks().device_bytes, 1000 * MIB);
        assert!(runner.seen.len() < 24, "{:?}", runner.seen);
    }
}

#[test]
fn a_round_batch_above_one_that_does_not_fit_is_rehearsed_with_everything() {
    // 90 fit for three steps; after them 70 and 71 do not fit, 72 does, and 73 does not.
    let answer = |rehearsal: &Rehearsal| {
        let batch = batch_of(rehearsal).unwrap_or(8);
        match steps_of(rehearsal) {
            None if batch > 69 && batch != 72 => does_not_fit(),
            _ => on_card((100 + 10 * batch) * MIB, CAPACITY),
        }
    };
    for is_forked in [true, false] {
        let mut goal = goal(SizePoint::Option("--batch-size".to_owned()));
        goal.whole_because = (!is_forked).then_some(WholeBecause::Asked);
        let mut runner = FakeRunner::new(answer).holding(Holds::Waits(at_loader()));
        let found = found(find(&mut runner, &goal));
        assert_eq!((found.batch, found.gap), (72, Some(70)));
    }
}

#[test]
fn no_batch_is_larger_than_the_data() {
    // An argument may set several of the loader's batches at once.
    for (per_step, most) in [(1, 50), (4, 200)] {
        for own in [4, 600] {
            let answer = move |rehearsal: &Rehearsal| {
                let batch = batch_of(rehearsal).expect("a batch");
                let process = trained(50, Some((batch / per_step).max(1)), batch * MIB);
                fits_with(batch.min(most) * MIB, process)
            };
            let mut runner = FakeRunner::new(answer).holding(Holds::Waits(SizePointReport {
                batch: Some(own),
                ..at_loader()
            }));
            let point = SizePoint::Option("--batch-size".to_owned());
            let found = found(find(&mut runner, &goal(point)));
            assert_eq!((found.batch, found.samples), (most, Some(most)));
        }
    }
}

#[test]
fn an_argument_that_does_nothing_is_found_out() {
    let ignored = |loader_batch: Option<u64>| {
        move |_: &Rehearsal| fits_with(MIB, trained(5_000, loader_batch, 77))
    };
    for (loader_batch, rehearsals) in [(Some(8), 2), (None, 4)] {
        let mut runner = FakeRunner::new(ignored(loader_batch)).holding(Holds::Waits(at_loader()));
        let point = SizePoint::Option("--seed".to_owned());
        let reason = not_found(find(&mut runner, &goal(point)));
        assert!(
            matches!(reason, NotFound::NoEffect { smaller: 8, .. }),
            "{reason:?}"
        );
        assert_eq!(runner.seen.len(), rehearsals);
    }
}

#[test]
fn a_small_bound_does_not_hide_that_an_argument_does_nothing() {
    let mut goal = goal(SizePoint::Option("--seed".to_owned()));
    goal.at_most = Some(64);
    let same = |_: &Rehearsal| {
        fits_with(
            MIB,
            ProcessReport {
                total_allocated_bytes: 77,
                ..ProcessReport::default()
            },
        )
    };
    let mut runner = FakeRunner::new(same).holding(Holds::Waits(at_loader()));
    let reason = not_found(find(&mut runner, &goal));
    assert!(matches!(reason, NotFound::NoEffect { .. }), "{reason:?}");
}

#[test]
fn the_size_of_unknown_data_shows_where_larger_batches_do_the_same() {
    let answer = |rehearsal: &Rehearsal| {
        let batch = batch_of(rehearsal).expect("a batch").min(50);
        let process = ProcessReport {
            total_allocated_bytes: batch,
            ..ProcessReport::default()
        };
        fits_with(MIB, process)
    };
    let mut runner = FakeRunner::new(answer).holding(Holds::Waits(at_loader()));
    let point = SizePoint::Option("--batch-size".to_owned());
    let found = found(find(&mut runner, &goal(point)));
    assert!(found.is_all_there_is);
    assert!((50..=4096).contains(&found.batch), "{}", found.batch);
}

#[test]
fn a_margin_is_left_free_in_forks_in_whole_runs_and_in_the_confirmation() {
    for is_forked in [true, false] {
        let answer = move |rehearsal: &Rehearsal| {
            let batch = batch_of(rehearsal).expect("a batch");
            // A fork has the card of its script.
            let is_whole = !is_forked || matches!(rehearsal.purpose, Purpose::Confirmation { .. });
            let margin = rehearsal.changes.contains(&Change::LessMemory(200 * MIB));
            assert_eq!(margin, is_whole);
            on_card((100 + 10 * batch) * MIB, CAPACITY - 200 * MIB)
        };
        let mut goal = goal(SizePoint::Option("--batch-size".to_owned()));
        goal.margin_bytes = 200 * MIB;
        goal.whole_because = (!is_forked).then_some(WholeBecause::Asked);
        let mut runner = FakeRunner::new(answer).holding(Holds::Waits(at_loader()));
        let mut found = found(find(&mut runner, &goal));
        assert_eq!(found.batch, 70);
        confirm(&mut runner, &goal, &mut found).expect("a run");
    }
}

#[test]
fn a_batch_with_which_no_step_is_made_is_no_answer() {
    // Loaders that drop their last batch have none of more than 250 samples.
    let mut runner = FakeRunner::new(|rehearsal: &Rehearsal| {
        let batch = batch_of(rehearsal).unwrap_or(8);
        let has_data = batch <= 250;
        let mut run = on_card(if has_data { 10 * batch } else { 10 } * MIB, CAPACITY)?;
        if let Some(process) = run.findings.processes.first_mut() {
            process.steps = if has_data { 3 } else { 0 };
        }
        Ok(run)
    })
    .holding(Holds::Waits(at_loader()));
    let found = found(find(&mut runner, &goal(SizePoint::TrainingLoader)));
    assert_eq!(found.batch, 100);
    let mut roomy = FakeRunner::new(|rehearsal: &Rehearsal| {
        let has_data = batch_of(rehearsal).unwrap_or(8) <= 250;
        let mut run = fits(10 * MIB)?;
        run.findings.processes[0].steps = if has_data { 3 } else { 0 };
        run.findings.processes[0].total_allocated_bytes = batch_of(rehearsal).unwrap_or(8) * MIB;
        Ok(run)
    })
    .holding(Holds::Waits(at_loader()));
    let found = self::found(find(&mut roomy, &goal(SizePoint::TrainingLoader)));
    assert_eq!(found.batch, 250);
    assert!(matches!(
        found.outcomes.get(&251),
        Some(Outcome::Fails {
            reason: Reason::NoStep,
            ..
        })
    ));
}

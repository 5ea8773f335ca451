use ghostgpu_rehearse::{Dimension, Rehearsal, Run, SizePointReport, Stop};
use ghostgpu_session::ProcessReport;

use super::*;
use crate::fake_runner::{
    FakeRunner, Holds, batch_of, fails, fits, fits_with, interrupted, sequence_of,
};

const MIB: u64 = 1 << 20;

fn at_loader() -> SizePointReport {
    SizePointReport {
        is_found: true,
        place: "the DataLoader at train.py:9".to_owned(),
        batch: Some(8),
        seq: Some(128),
        seq_place: "input_ids".to_owned(),
        ..SizePointReport::default()
    }
}

fn training(rehearsal: &Rehearsal) -> Result<Run, Stop> {
    let (batch, tokens) = (batch_of(rehearsal), sequence_of(rehearsal));
    let bytes = (100 + batch.unwrap_or(8) * tokens.unwrap_or(128) / 16) * MIB;
    let process = ProcessReport {
        size_point: Some(at_loader()),
        ..ProcessReport::default()
    };
    fits_with(bytes, process)
}

fn goal(batch: SizePoint) -> Goal {
    Goal {
        batch,
        sequence: SequencePoint::InBatches,
        words: vec!["train.py".into()],
    }
}

#[test]
fn sizes_below_and_above_the_own_one_are_measured_up_to_the_largest_possible() {
    assert_eq!(around(32, None), [8, 16, 32, 48, 64]);
    assert_eq!(around(512, Some(512)), [128, 256, 512]);
    assert_eq!(around(1, None), [1, 2]);
    assert_eq!(around(8, Some(4)), [2, 4]);
}

#[test]
fn a_script_that_waits_is_rehearsed_in_forks_and_one_that_cannot_in_whole_runs() {
    let unforkable = SizePointReport {
        unforkable: Some("the script runs threads".to_owned()),
        ..at_loader()
    };
    for (holds, is_forked) in [
        (Holds::Waits(at_loader()), true),
        (Holds::Ends(unforkable), false),
    ] {
        let mut runner = FakeRunner::new(training).holding(holds);
        let scaling = measure(&mut runner, &goal(SizePoint::TrainingLoader)).expect("runs");
        let batch = scaling.batch.growth().expect("a line");
        assert_eq!(batch.bytes_each, 8 * MIB as i64);
        let sequence = scaling.sequence.growth().expect("a line");
        assert_eq!(sequence.bytes_each, MIB as i64 / 2);
        assert_eq!(runner.sizes(Dimension::Batch), [2, 4, 8, 12, 16]);
        assert_eq!(runner.sizes(Dimension::Sequence), [32, 64, 96, 128]);
        assert!(runner.seen.iter().all(|seen| seen.1 == is_forked));
    }
}

#[test]
fn a_signal_ends_the_measurement() {
    let mut runner = FakeRunner::new(|_| interrupted()).holding(Holds::Waits(at_loader()));
    let result = measure(&mut runner, &goal(SizePoint::TrainingLoader));
    assert!(matches!(result, Err(Stop::Interrupted(2))), "{result:?}");
    assert_eq!(runner.seen.len(), 1);
}

#[test]
fn a_size_that_fails_is_kept_beside_those_that_do_not() {
    let mut runner = FakeRunner::new(|rehearsal| match batch_of(rehearsal) {
        Some(16) => fails("RuntimeError: shape"),
        _ => training(rehearsal),
    })
    .holding(Holds::Waits(at_loader()));
    let scaling = measure(&mut runner, &goal(SizePoint::TrainingLoader)).expect("runs");
    let Series::Measured { outcomes, .. } = &scaling.batch else {
        panic!("{scaling:?}");
    };
    assert!(matches!(outcomes.last(), Some((16, Outcome::Fails { .. }))));
    assert!(scaling.batch.growth().is_some());
}

#[test]
fn a_size_that_cannot_be_set_says_why() {
    let ended = |seen| FakeRunner::new(|_| fits(1)).holding(Holds::Ends(seen));
    let cases = [
        (SizePointReport::default(), NoSeries::NoLoader),
        (
            SizePointReport {
                problem: Some("its sampler decides".to_owned()),
                ..SizePointReport::default()
            },
            NoSeries::Problem("its sampler decides".to_owned()),
        ),
    ];
    for (seen, because) in cases {
        let mut runner = ended(seen);
        let scaling = measure(&mut runner, &goal(SizePoint::TrainingLoader)).expect("runs");
        assert_eq!(scaling.batch, Series::Unknown(because));
    }
    let option = "--batch-size".to_owned();
    let mut runner = ended(SizePointReport::default());
    let scaling = measure(&mut runner, &goal(SizePoint::Option(option.clone())));
    let scaling = scaling.expect("runs");
    assert_eq!(
        scaling.batch,
        Series::Unknown(NoSeries::NotArgparse { option })
    );
}

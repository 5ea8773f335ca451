use ghostgpu_explain::{Candidate, Effect};
use ghostgpu_rehearse::{Change, Dimension, Purpose, Rehearsal, Run, SizePointReport, Stop};
use ghostgpu_session::{ChangeReport, Coverage, NotReached, ProcessReport, TrainingPart};

use super::*;
use crate::fake_runner::{
    FakeRunner, Holds, batch_of, does_not_fit, fits, fits_with, interrupted, sequence_of, times_out,
};

const GIB: u64 = 1 << 30;

fn advice(what: &str, candidate: Option<Candidate>) -> Advice {
    Advice {
        name: what.to_owned(),
        what: what.to_owned(),
        command: String::new(),
        why: String::new(),
        effect: Effect::Precision,
        candidate,
        not_rehearsed_because: None,
    }
}

fn script(text: &str) -> Script {
    Script {
        name: "train.py".to_owned(),
        contents: Ok(text.as_bytes().to_vec()),
    }
}

fn ask(runner: &mut FakeRunner, advice: &[Advice], text: &str) -> Result<Candidates, Stop> {
    ask_knowing(runner, advice, text, &[])
}

fn ask_knowing(
    runner: &mut FakeRunner,
    advice: &[Advice],
    text: &str,
    known: &[KnownTrick],
) -> Result<Candidates, Stop> {
    let as_it_is = as_it_is(runner)?;
    let question = Question {
        advice,
        script: &script(text),
        words: &[],
        batch: SizePoint::TrainingLoader,
        capacity_bytes: 10 * GIB,
        first_steps: Some(3),
        known,
    };
    Ok(rehearse_advice(runner, &question, as_it_is))
}

#[test]
fn a_trick_that_is_known_to_be_enough_is_not_rehearsed_again() {
    let all = [
        advice("checkpointing", Some(Candidate::Checkpointing)),
        advice("autocast", Some(Candidate::Autocast)),
    ];
    let known = KnownTrick {
        peaks: Peaks {
            allocated_bytes: 5 * GIB,
            reserved_bytes: 5 * GIB,
            device_bytes: 6 * GIB,
        },
        report: ChangeReport {
            name: "checkpointing".to_owned(),
            did: Some("12 blocks".to_owned()),
            ..ChangeReport::default()
        },
    };
    let mut runner = too_large(|_| None);
    let found = ask_knowing(&mut runner, &all, "", &[known]).expect("runs");
    let [checkpointing, autocast] = found.candidates.as_slice() else {
        panic!("{found:?}");
    };
    assert!(matches!(
        &checkpointing.outcome,
        CandidateOutcome::Works { made: Made::Code { did: Some(did), .. }, peaks, .. }
            if did == "12 blocks" && peaks.device_bytes == 6 * GIB
    ));
    assert!(matches!(autocast.outcome, CandidateOutcome::Not(_)));
    let rehearsed = |what: &str| {
        let purpose = Purpose::Candidate(what.to_owned());
        runner.seen.iter().any(|(seen, _)| *seen == purpose)
    };
    assert!(rehearsed("autocast") && !rehearsed("checkpointing"));
}

fn is_unlimited(rehearsal: &Rehearsal) -> bool {
    rehearsal.changes.contains(&Change::UnlimitedMemory)
}

/// A script that needs 14 GiB and fits with some changes.
fn too_large(helps: impl Fn(&Rehearsal) -> Option<Result<Run, Stop>> + 'static) -> FakeRunner {
    FakeRunner::new(move |rehearsal| match helps(rehearsal) {
        Some(result) => result,
        None if is_unlimited(rehearsal) => fits(14 * GIB),
        None => does_not_fit(),
    })
}

#[test]
fn each_piece_of_advice_works_or_fails_or_says_why_it_was_not_rehearsed() {
    let all = [
        advice("checkpointing", Some(Candidate::Checkpointing)),
        advice("autocast", Some(Candidate::Autocast)),
        advice("segments", Some(Candidate::ExpandableSegments)),
        advice("another card", Some(Candidate::LargerCard)),
        advice("losses", Some(Candidate::FixedLosses)),
        advice("8 bits", None),
    ];
    let mut runner = too_large(|rehearsal| match rehearsal.changes.as_slice() {
        [Change::Trick(request)] if request.name == "checkpointing" => {
            let process = ProcessReport {
                changes: vec![ChangeReport {
                    did: Some("12 blocks".to_owned()),
                    ..ChangeReport::default()
                }],
                ..ProcessReport::default()
            };
            Some(fits_with(6 * GIB, process))
        }
        [Change::Card(_)] => Some(fits(14 * GIB)),
        [Change::Word(word)] => {
            assert_eq!(word, "--amp");
            Some(fits(7 * GIB))
        }
        _ => None,
    });
    let text = "p.add_argument('--amp', action='store_true')";
    let found = ask(&mut runner, &all, text).expect("runs");
    assert!(matches!(
        found.as_it_is,
        AsItIs::DoesNotFit {
            needed_bytes: Some(bytes),
            ..
        } if bytes == 14 * GIB
    ));
    let outcome: Vec<&CandidateOutcome> =
        found.candidates.iter().map(|each| &each.outcome).collect();
    let [
        checkpointing,
        autocast,
        segments,
        card,
        losses,
        bits,
        switch,
    ] = outcome.as_slice()
    else {
        panic!("{outcome:?}");
    };
    assert!(
        matches!(checkpointing, CandidateOutcome::Works { made: Made::Code { did: Some(did), .. }, .. } if did == "12 blocks")
    );
    assert!(matches!(
        autocast,
        CandidateOutcome::Not(NotRehearsed::NothingToChangeBefore(_))
    ));
    assert!(matches!(
        segments,
        CandidateOutcome::Fails {
            because: Failed::OutOfMemory(_),
            ..
        }
    ));
    assert!(
        matches!(card, CandidateOutcome::Works { made: Made::Card(card), .. } if card.total_bytes >= 14 * GIB)
    );
    assert!(matches!(
        losses,
        CandidateOutcome::Not(NotRehearsed::NoFix(_))
    ));
    assert!(matches!(
        bits,
        CandidateOutcome::Not(NotRehearsed::Impossible)
    ));
    assert!(matches!(
        switch,
        CandidateOutcome::Works {
            made: Made::Switch(_),
            ..
        }
    ));
    assert_eq!(found.candidates[6].effect, Effect::Precision);
}

#[test]
fn sizes_are_rehearsed_in_forks() {
    let all = [
        advice("batch", Some(Candidate::SmallerBatch)),
        advice("shorter", Some(Candidate::ShorterSamples)),
    ];
    let at_loader = SizePointReport {
        is_found: true,
        batch: Some(8),
        seq: Some(128),
        ..SizePointReport::default()
    };
    let process = ProcessReport {
        size_point: Some(at_loader.clone()),
        ..ProcessReport::default()
    };
    let mut runner = too_large(move |rehearsal| {
        if let Some(64) = sequence_of(rehearsal) {
            return Some(fits(7 * GIB));
        }
        match batch_of(rehearsal) {
            Some(batch) => (batch <= 5).then(|| fits(2 * batch * GIB)),
            None if matches!(rehearsal.changes.as_slice(), [Change::Sizes { .. }]) => {
                Some(fits_with(GIB, process.clone()))
            }
            None => None,
        }
    })
    .holding(Holds::Waits(at_loader));
    let found = ask(&mut runner, &all, "").expect("runs");
    let made: Vec<&Made> = found
        .candidates
        .iter()
        .filter_map(|each| match &each.outcome {
            CandidateOutcome::Works { made, .. } => Some(made),
            _ => None,
        })
        .collect();
    assert!(
        matches!(
            made.as_slice(),
            [
                Made::Batch {
                    batch: 5,
                    own: Some(8),
                    ..
                },
                Made::CutBatches {
                    tokens: 64,
                    of: 128
                },
            ]
        ),
        "{made:?}"
    );
    assert!(!runner.sizes(Dimension::Batch).is_empty());
    let is_size = |purpose: &Purpose| matches!(purpose, Purpose::Size { .. });
    let mut sizes = runner.seen.iter().filter(|seen| is_size(&seen.0));
    assert!(sizes.all(|(_, is_forked)| *is_forked));
}

#[test]
fn a_signal_while_the_need_is_measured_ends_everything() {
    let mut runner = FakeRunner::new(|rehearsal| match is_unlimited(rehearsal) {
        true => interrupted(),
        false => does_not_fit(),
    });
    let all = [advice("segments", Some(Candidate::ExpandableSegments))];
    let result = ask(&mut runner, &all, "");
    assert!(matches!(result, Err(Stop::Interrupted(2))), "{result:?}");
    assert_eq!(runner.seen.len(), 2);
}

#[test]
fn a_signal_leaves_what_was_rehearsed_before_it() {
    let all = [
        advice("segments", Some(Candidate::ExpandableSegments)),
        advice("split", Some(Candidate::MaxSplitSize)),
        advice("autocast", Some(Candidate::Autocast)),
    ];
    let mut runner = too_large(|rehearsal| match rehearsal.changes.as_slice() {
        [Change::Variable { value, .. }] if value.starts_with("expandable") => Some(fits(GIB)),
        [Change::Variable { .. }] => Some(interrupted()),
        _ => None,
    });
    let found = ask(&mut runner, &all, "").expect("the script as it is was rehearsed");
    let works = |each: &RehearsedCandidate| matches!(each.outcome, CandidateOutcome::Works { .. });
    assert_eq!(found.candidates.len(), 1);
    assert!(works(&found.candidates[0]));
    assert!(matches!(found.stop, Some(Stop::Interrupted(2))));
}

#[test]
fn a_candidate_at_its_time_limit_fails_and_the_next_is_rehearsed() {
    let all = [
        advice("segments", Some(Candidate::ExpandableSegments)),
        advice("split", Some(Candidate::MaxSplitSize)),
    ];
    let mut runner = too_large(|rehearsal| match rehearsal.changes.as_slice() {
        [Change::Variable { value, .. }] if value.starts_with("expandable") => Some(times_out()),
        [Change::Variable { .. }] => Some(fits(GIB)),
        _ => None,
    });
    let found = ask(&mut runner, &all, "").expect("runs");
    assert!(matches!(
        &found.candidates[0].outcome,
        CandidateOutcome::Fails {
            because: Failed::Script(ghostgpu_rehearse::Reason::TimedOut),
            ..
        }
    ));
    assert!(matches!(
        &found.candidates[1].outcome,
        CandidateOutcome::Works { .. }
    ));
}

#[test]
fn a_script_that_fits_needs_no_help() {
    let mut runner = FakeRunner::new(|_| fits(GIB));
    let all = [
        advice("segments", Some(Candidate::ExpandableSegments)),
        advice("8 bits", None),
    ];
    let found = ask(&mut runner, &all, "").expect("a run");
    assert_eq!(runner.seen.len(), 1);
    assert_eq!(found.candidates.len(), 1);
}

#[test]
fn a_change_works_only_if_the_whole_training_was_rehearsed() {
    let coverage = Coverage {
        not_reached: vec![NotReached {
            part: TrainingPart::Evaluation,
            because: "train.py:61 was not reached in time".to_owned(),
        }],
        ..Coverage::default()
    };
    let process = ProcessReport {
        coverage: Some(coverage),
        ..ProcessReport::default()
    };
    let mut runner = too_large(move |rehearsal| match rehearsal.changes.as_slice() {
        [Change::Variable { .. }] => Some(fits_with(6 * GIB, process.clone())),
        _ => None,
    });
    let all = [advice("segments", Some(Candidate::ExpandableSegments))];
    let found = ask(&mut runner, &all, "").expect("runs");
    let outcome = &found.candidates[0].outcome;
    assert!(
        matches!(outcome, CandidateOutcome::Fails { because: Failed::NotReached(because), .. } if because.contains("train.py:61")),
        "{outcome:?}"
    );
}

#[test]
fn a_change_that_alters_the_results_of_this_script_is_marked_as_such() {
    for (other_results, effect) in [
        (None, Effect::Precision),
        (Some("its statistics move twice"), Effect::Training),
    ] {
        let process = ProcessReport {
            changes: vec![ChangeReport {
                did: Some("4 blocks".to_owned()),
                other_results: other_results.map(str::to_owned),
                ..ChangeReport::default()
            }],
            ..ProcessReport::default()
        };
        let mut runner = too_large(move |rehearsal| match rehearsal.changes.as_slice() {
            [Change::Trick(_)] => Some(fits_with(6 * GIB, process.clone())),
            _ => None,
        });
        let all = [advice("checkpointing", Some(Candidate::Checkpointing))];
        let found = ask(&mut runner, &all, "").expect("runs");
        assert_eq!(found.candidates[0].effect, effect);
    }
}

use std::cell::RefCell;
use std::rc::Rc;

use ghostgpu_device::{Catalogue, DeviceSheet};
use ghostgpu_rehearse::TrickRequest;
use ghostgpu_session::card_usage::CardUse;
use ghostgpu_session::{
    AllocatorPeaks, ChangeReport, Coverage, Covered, OomReport, ProcessReport, TrainingData,
    TrainingPart,
};

use super::*;
use crate::fake_runner::{FakeRunner, fails, interrupted};
use crate::verdict::Margin;
use ghostgpu_rehearse::{Ending, Findings};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// A fake training: its memory by kind, in MiB.
#[derive(Clone, Copy)]
struct Training {
    parameters: u64,
    gradients: u64,
    state: u64,
    activations: u64,
    logits: u64,
    evaluation: u64,
    /// What the optimizer's step needs besides its state, after activations are freed.
    in_optimizer_step: u64,
    batch: u64,
}

const GPT: Training = Training {
    parameters: 500,
    gradients: 500,
    state: 1_000,
    activations: 9_000,
    logits: 2_000,
    evaluation: 1_000,
    in_optimizer_step: 0,
    batch: 16,
};

/// A training whose optimizer step needs more than its backward pass.
const LARGE_DECODER: Training = Training {
    parameters: 6_000,
    gradients: 6_000,
    state: 12_000,
    activations: 5_000,
    logits: 500,
    evaluation: 1_000,
    in_optimizer_step: 6_000,
    batch: 16,
};

impl Training {
    /// The memory of a training step and of evaluation with tricks; `None` if a trick refuses this script.
    fn with(&self, tricks: &[&TrickRequest]) -> Option<(u64, u64)> {
        let mut job = *self;
        let mut batch = self.batch;
        for trick in tricks {
            let number = |option: &str| trick.value(option).and_then(|it| it.parse::<u64>().ok());
            match trick.name.as_str() {
                "checkpointing" if trick.value("keep") == Some("matmuls") => {
                    job.activations = job.activations * 6 / 10;
                }
                "checkpointing" => {
                    // A tenth of the checkpointed activations is left; the number of blocks is unknown here.
                    job.activations /= number("blocks").map_or(10, |_| 2);
                }
                "chunking" => {
                    let chunks = number("chunks").expect("a number");
                    job.activations /= chunks;
                    job.logits /= chunks;
                }
                "loss-head" => job.logits /= 8,
                "offload-activations" => job.activations /= 5,
                "offload-optimizer" => job.state = 0,
                "optimizer-in-backward" => job.gradients /= 10,
                "early-zero-grad" => job.gradients = job.gradients * 9 / 10,
                "autocast" => job.activations = job.activations * 6 / 10,
                "adafactor" => job.state /= 10,
                "no-grad-evaluation" => job.evaluation /= 10,
                "smaller-batch" => batch = number("batch").expect("a number"),
                "accumulation" => {}
                "lora" if job.in_optimizer_step > 0 => {
                    job.gradients /= 100;
                    job.state /= 100;
                    job.in_optimizer_step /= 100;
                }
                "eight-bit-optimizer" | "lora" => return None,
                _ => {}
            }
        }
        let lasting = job.parameters + job.gradients + job.state;
        let backward = (job.activations + job.logits) * batch / self.batch;
        let step = backward.max(job.in_optimizer_step);
        Some((lasting + step, lasting + job.evaluation))
    }

    fn has_place_for(trick: &str) -> bool {
        !matches!(trick, "inplace-activations" | "optimizer-form")
    }

    fn run(&self, rehearsal: &Rehearsal, card: &DeviceSheet) -> Result<Run, Stop> {
        let tricks: Vec<&TrickRequest> = rehearsal
            .changes
            .iter()
            .filter_map(|change| match change {
                Change::Trick(request) => Some(request),
                _ => None,
            })
            .collect();
        let Some((step, evaluation)) = self.with(&tricks) else {
            return fails("SystemExit: 2");
        };
        let mut capacity = Some(card.total_bytes);
        for change in &rehearsal.changes {
            match change {
                Change::UnlimitedMemory => capacity = None,
                Change::LessMemory(bytes) => capacity = capacity.map(|it| it - bytes),
                Change::Card(card) => capacity = Some(card.total_bytes),
                _ => {}
            }
        }
        let changes = tricks.iter().map(|trick| ChangeReport {
            name: trick.name.clone(),
            did: Self::has_place_for(&trick.name).then(|| "something".to_owned()),
            ..ChangeReport::default()
        });
        let mut process = ProcessReport {
            changes: changes.collect(),
            training_data: Some(TrainingData {
                samples: 1_000,
                batch: Some(self.batch),
            }),
            coverage: Some(Coverage {
                covered: vec![Covered {
                    part: TrainingPart::LargestBatch,
                    detail: "16×512".to_owned(),
                }],
                ..Coverage::default()
            }),
            ..ProcessReport::default()
        };
        let overhead = 400;
        let room = capacity.unwrap_or(u64::MAX) / MIB;
        let failed = [(step, "backward"), (evaluation, "evaluation")]
            .into_iter()
            .find(|(needed, _)| needed + overhead > room);
        let reserved = step.max(evaluation) * MIB;
        let (ending, peak) = match failed {
            Some((_, stage)) => {
                process.ooms = vec![OomReport {
                    device: 0,
                    requested_bytes: 1,
                    message: String::new(),
                    step: 1,
                    stage: stage.to_owned(),
                    stack: Vec::new(),
                    is_fatal: true,
                    moment: None,
                }];
                (Ending::Exited(1), 0)
            }
            None => (Ending::Exited(0), reserved),
        };
        process.peaks = vec![AllocatorPeaks {
            peak_allocated_bytes: peak,
            peak_reserved_bytes: peak,
            allocations: 1,
            ..AllocatorPeaks::default()
        }];
        process.code_architectures = vec!["sm_75".to_owned(), "sm_86".to_owned()];
        let mut run = Run::new(
            ending,
            Findings {
                processes: vec![process],
                cards: vec![CardUse {
                    used_bytes: 0,
                    peak_bytes: peak + overhead * MIB,
                }],
                ..Findings::default()
            },
        );
        run.capacity_bytes = capacity;
        Ok(run)
    }
}

fn card(gib: u64) -> DeviceSheet {
    let card = Catalogue::builtin().find("3060").expect("a card");
    card.sheet_with_total(gib * GIB)
}

fn question(sheet: &DeviceSheet) -> Question<'_> {
    Question {
        card: OnCard {
            sheet,
            count: 1,
            uncertainty: None,
            reserve_bytes: 0,
            margin: Some(Margin::Bytes(200 * MIB)),
            torch: None,
        },
        allowed: Allowed::default(),
        most_rehearsals: 100,
    }
}

fn runner(training: Training, sheet: &DeviceSheet) -> FakeRunner {
    let sheet = sheet.clone();
    FakeRunner::new(move |rehearsal| training.run(rehearsal, &sheet))
}

fn searched(training: Training, question: &Question) -> Searched {
    let mut runner = runner(training, question.card.sheet);
    match find(&mut runner, question).expect("no stop") {
        MemoryPlan::Searched(searched) => *searched,
        other => panic!("{other:?}"),
    }
}

fn words(searched: &Searched) -> Vec<String> {
    let fitting = searched
        .rehearsed
        .iter()
        .filter(|rehearsed| rehearsed.fits());
    fitting
        .map(|rehearsed| rehearsed.combination.in_words())
        .collect()
}

#[test]
fn a_job_that_fits_needs_no_plan() {
    let sheet = card(24);
    let mut runner = runner(GPT, &sheet);
    let plan = find(&mut runner, &question(&sheet)).expect("no stop");
    assert!(matches!(plan, MemoryPlan::Fits { .. }), "{plan:?}");
    assert_eq!(runner.seen.len(), 1);
}

#[test]
fn every_way_that_is_said_to_fit_fits_with_the_margin() {
    for gib in [3, 4, 6, 8, 10, 12] {
        let sheet = card(gib);
        let question = question(&sheet);
        let found = searched(GPT, &question);
        assert!(found.recommended().is_some(), "{gib} GiB");
        for rehearsed in found
            .rehearsed
            .iter()
            .filter(|rehearsed| rehearsed.fits_with_room())
        {
            let requests: Vec<&TrickRequest> = rehearsed.combination.requests().iter().collect();
            let (step, evaluation) = GPT.with(&requests).expect("possible");
            let needed = (step.max(evaluation) + 400) * MIB;
            assert!(needed + 200 * MIB <= sheet.total_bytes, "{rehearsed:?}");
            let CombinationOutcome::Fits { headroom_bytes, .. } = rehearsed.outcome else {
                panic!("{rehearsed:?}");
            };
            assert_eq!(headroom_bytes, sheet.total_bytes - needed);
        }
        assert!(matches!(found.stopped, Stopped::NothingLeft), "{gib} GiB");
    }
}

#[test]
fn what_costs_nothing_comes_before_what_costs_a_pass() {
    let sheet = card(12);
    // 13 000 MiB and 400 are 13.1 GiB: chunking the loss alone saves enough.
    let found = searched(GPT, &question(&sheet));
    assert_eq!(
        found.recommended().expect("a plan").combination.in_words(),
        "--chunk-loss 8"
    );
    assert!(words(&found).contains(&"--chunks 2".to_owned()));
}

#[test]
fn no_more_chunks_are_made_than_are_needed() {
    let sheet = card(5);
    let found = searched(GPT, &question(&sheet));
    let chunks: Vec<u64> = found
        .rehearsed
        .iter()
        .filter(|rehearsed| rehearsed.fits() && rehearsed.combination.requests().len() == 1)
        .filter_map(|rehearsed| {
            rehearsed
                .combination
                .get("chunking")?
                .value("chunks")?
                .parse()
                .ok()
        })
        .collect();
    // 2 000 for the rest, 400 of overhead and 200 to spare leave 2 520 of 11 000.
    assert_eq!(chunks.iter().min(), Some(&5), "{chunks:?}");
}

#[test]
fn numbers_change_only_if_that_is_allowed() {
    let sheet = card(8);
    let mut asked = question(&sheet);
    let found = searched(GPT, &asked);
    assert!(
        found
            .rehearsed
            .iter()
            .all(|rehearsed| rehearsed.combination.keeps_numbers())
    );
    asked.allowed.changes = [Allowance::Precision, Allowance::Optimizer].into();
    let found = searched(GPT, &asked);
    let changed = found
        .rehearsed
        .iter()
        .any(|rehearsed| rehearsed.combination.has("autocast"));
    assert!(changed, "{:?}", words(&found));
    assert!(
        !found
            .rehearsed
            .iter()
            .any(|rehearsed| rehearsed.combination.has("smaller-batch"))
    );
    let recommended = found.recommended().expect("a plan");
    assert!(recommended.combination.keeps_numbers(), "{recommended:?}");
}

#[test]
fn accumulation_keeps_the_samples_of_a_step() {
    let sheet = card(5);
    let mut asked = question(&sheet);
    asked.allowed.changes = [Allowance::Batch].into();
    let found = searched(GPT, &asked);
    let smaller: Vec<&RehearsedCombination> = found
        .rehearsed
        .iter()
        .filter(|rehearsed| rehearsed.fits() && rehearsed.combination.has("smaller-batch"))
        .collect();
    assert!(!smaller.is_empty());
    for rehearsed in smaller {
        let number = |name: &str, option: &str| -> u64 {
            let request = rehearsed.combination.get(name).expect("both");
            request
                .value(option)
                .and_then(|it| it.parse().ok())
                .expect("a number")
        };
        assert_eq!(
            number("smaller-batch", "batch") * number("accumulation", "steps"),
            16
        );
    }
}

#[test]
fn evaluation_that_runs_out_of_memory_is_helped() {
    let training = Training {
        activations: 2_000,
        evaluation: 9_000,
        ..GPT
    };
    let sheet = card(8);
    let found = searched(training, &question(&sheet));
    let recommended = found.recommended().expect("a plan");
    assert_eq!(recommended.combination.in_words(), "--eval-no-grad");
}

#[test]
fn if_nothing_fits_more_is_allowed_and_a_card_is_named() {
    let sheet = card(1);
    let mut asked = question(&sheet);
    let found = searched(GPT, &asked);
    assert!(found.recommended().is_none());
    assert!(found.allowed_more);
    let misses = found.rehearsed.iter().filter(|rehearsed| {
        matches!(
            rehearsed.outcome,
            CombinationOutcome::DoesNotFit {
                needed: Some(_),
                ..
            }
        )
    });
    assert!(misses.count() >= 3);
    for card in &found.cards {
        assert!(card.card.total_bytes > sheet.total_bytes);
        assert!(card.peaks.device_bytes <= card.card.total_bytes);
    }
    assert_eq!(
        found.cards.len(),
        2,
        "with the closest combination, and as it is"
    );
    assert!(found.cards[0].card.total_bytes <= found.cards[1].card.total_bytes);
    let kinds: Vec<SmallerKind> = found.smaller_data.iter().map(|it| it.kind).collect();
    assert_eq!(
        kinds,
        [
            SmallerKind::Batch { from: 16, to: 8 },
            SmallerKind::Tokens { from: 512, to: 384 }
        ]
    );
    asked.allowed.keeps_numerics = true;
    let kept = searched(GPT, &asked);
    assert!(!kept.allowed_more);
    assert!(
        kept.rehearsed
            .iter()
            .all(|rehearsed| rehearsed.combination.keeps_numbers())
    );
}

#[test]
fn nothing_is_rehearsed_twice_on_the_same_card() {
    for gib in [1, 4, 8] {
        let sheet = card(gib);
        let seen: Rc<RefCell<Vec<Rehearsal>>> = Rc::default();
        let noted = Rc::clone(&seen);
        let own = sheet.clone();
        let mut runner = FakeRunner::new(move |rehearsal| {
            noted.borrow_mut().push(rehearsal.clone());
            GPT.run(rehearsal, &own)
        });
        find(&mut runner, &question(&sheet)).expect("no stop");
        let seen = seen.borrow();
        for (place, rehearsal) in seen.iter().enumerate() {
            let is_same = |other: &Rehearsal| other.changes == rehearsal.changes;
            assert!(!seen[..place].iter().any(is_same), "{gib}: {rehearsal:?}");
        }
    }
}

#[test]
fn the_limit_on_rehearsals_is_kept_and_reported() {
    let sheet = card(4);
    let mut asked = question(&sheet);
    asked.most_rehearsals = 9;
    let found = searched(GPT, &asked);
    assert!(
        matches!(found.stopped, Stopped::Spent),
        "{:?}",
        found.stopped
    );
    assert!(found.rehearsals >= 9);
}

#[test]
fn an_interrupt_leaves_the_best_so_far() {
    let sheet = card(8);
    let own = sheet.clone();
    let mut count = 0;
    let mut runner = FakeRunner::new(move |rehearsal| {
        count += 1;
        match count {
            0..=12 => GPT.run(rehearsal, &own),
            13 => interrupted(),
            _ => panic!("nothing is rehearsed after an interrupt"),
        }
    });
    let plan = find(&mut runner, &question(&sheet)).expect("an answer");
    let MemoryPlan::Searched(found) = plan else {
        panic!("searched");
    };
    let is_told = matches!(found.stopped, Stopped::Interrupted(Stop::Interrupted(2)));
    assert!(is_told, "{:?}", found.stopped);
    assert!(!found.rehearsed.is_empty());
}

#[test]
fn a_script_that_fails_has_no_plan() {
    let sheet = card(8);
    let mut runner = FakeRunner::new(|_| fails("KeyError: 'x'"));
    let plan = find(&mut runner, &question(&sheet)).expect("an answer");
    let MemoryPlan::NoQuestion { reason, .. } = plan else {
        panic!("{plan:?}");
    };
    assert_eq!(reason, Some(Reason::Exception("KeyError: 'x'".to_owned())));
}

#[test]
fn tricks_without_a_place_are_in_no_plan() {
    for gib in [4, 8] {
        let sheet = card(gib);
        let found = searched(GPT, &question(&sheet));
        for rehearsed in found.rehearsed.iter().filter(|rehearsed| rehearsed.fits()) {
            assert!(
                !rehearsed.combination.has("inplace-activations"),
                "{rehearsed:?}"
            );
        }
    }
}

#[test]
fn a_trick_that_saves_nothing_alone_is_tried_again_with_adapters() {
    let sheet = card(9);
    let mut question = question(&sheet);
    question.allowed.changes = [Allowance::Lora].into();
    let searched = searched(LARGE_DECODER, &question);
    let best = searched.recommended().expect("a plan");
    let names: Vec<&str> = best
        .combination
        .requests()
        .iter()
        .map(|request| request.name.as_str())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(best.combination.has("lora") && best.combination.has("checkpointing"));
}

fn is_brief(rehearsal: &Rehearsal) -> bool {
    rehearsal.changes.contains(&Change::Briefly)
}

fn has_trick(rehearsal: &Rehearsal, name: &str) -> bool {
    let mut changes = rehearsal.changes.iter();
    changes.any(|change| matches!(change, Change::Trick(request) if request.name == name))
}

/// The plan for a training that needs more memory in some rehearsals, and all rehearsals.
fn found_with_more(
    gib: u64,
    more: impl Fn(&Rehearsal) -> u64 + 'static,
) -> (Searched, Vec<Rehearsal>) {
    let sheet = card(gib);
    let seen: Rc<RefCell<Vec<Rehearsal>>> = Rc::default();
    let (noted, own) = (Rc::clone(&seen), sheet.clone());
    let mut runner = FakeRunner::new(move |rehearsal| {
        noted.borrow_mut().push(rehearsal.clone());
        let training = Training {
            parameters: GPT.parameters + more(rehearsal),
            ..GPT
        };
        training.run(rehearsal, &own)
    });
    let plan = find(&mut runner, &question(&sheet)).expect("an answer");
    let MemoryPlan::Searched(found) = plan else {
        panic!("{plan:?}");
    };
    let seen = seen.take();
    (*found, seen)
}

#[test]
fn combinations_are_rehearsed_briefly_and_the_recommended_one_thoroughly() {
    let (found, seen) = found_with_more(8, |_| 0);
    let best = found.recommended().expect("a plan");
    assert!(best.is_thorough);
    let thorough: Vec<&Rehearsal> = seen.iter().filter(|it| !is_brief(it)).collect();
    // The job as it is, the job with unlimited memory, and the recommended combination.
    assert_eq!(thorough.len(), 3, "{thorough:?}");
    assert_eq!(thorough[2].changes, best.combination.changes());
}

#[test]
fn a_combination_that_fits_only_briefly_is_not_recommended() {
    let (usual, _) = found_with_more(12, |_| 0);
    let best = usual.recommended().expect("a plan").combination.in_words();
    assert_eq!(best, "--chunk-loss 8");
    // Chunking the loss needs more memory in a later epoch.
    let (found, _) = found_with_more(12, |rehearsal| {
        match has_trick(rehearsal, "loss-head") && !is_brief(rehearsal) {
            true => 8_000,
            false => 0,
        }
    });
    let best = found.recommended().expect("another plan");
    assert!(!best.combination.has("loss-head"), "{best:?}");
    assert!(best.is_thorough && best.fits_with_room());
}

#[test]
fn a_job_whose_later_epochs_need_more_is_rehearsed_thoroughly_throughout() {
    let (found, seen) = found_with_more(8, |rehearsal| u64::from(!is_brief(rehearsal)) * 100);
    assert!(
        found
            .rehearsed
            .iter()
            .all(|rehearsed| rehearsed.is_thorough)
    );
    let brief: Vec<&Rehearsal> = seen.iter().filter(|it| is_brief(it)).collect();
    assert_eq!(brief.len(), 1, "the one that showed it: {brief:?}");
}

#[test]
fn after_many_combinations_much_slower_ones_are_left_out() {
    let sheet = card(5);
    let mut asked = question(&sheet);
    asked.allowed.changes = Allowance::ALL.into();
    let found = searched(GPT, &asked);
    assert!(found.rehearsed.len() >= 24, "{}", found.rehearsed.len());
    assert!(found.left_out.slower > 0, "{:?}", found.left_out);
    let few = searched(GPT, &question(&card(12)));
    assert!(few.rehearsed.len() < 24);
    assert_eq!(few.left_out.slower, 0, "{:?}", few.left_out);
}

#[test]
fn nothing_is_rehearsed_twice_and_what_is_made_ahead_counts() {
    let sheet = card(8);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let noted = Rc::clone(&seen);
    let own = sheet.clone();
    let mut runner = FakeRunner::new(move |rehearsal| {
        noted.borrow_mut().push(rehearsal.changes.clone());
        GPT.run(rehearsal, &own)
    });
    let MemoryPlan::Searched(searched) = find(&mut runner, &question(&sheet)).expect("no stop")
    else {
        panic!("it does not fit");
    };
    let seen = seen.borrow();
    for (place, changes) in seen.iter().enumerate() {
        assert!(!seen[..place].contains(changes), "{changes:?} twice");
    }
    // Three are of the job as it is: on the card, with unlimited memory, and briefly with unlimited memory.
    assert_eq!(searched.rehearsals, seen.len() - 3);
}

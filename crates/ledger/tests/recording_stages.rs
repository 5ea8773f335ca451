//! What was allocated, freed and kept in each stage of a simulated training.

use ghostgpu_ledger::{CardLedger, StageFlow, Stages, TrainingPart};
use ghostgpu_recording::made_up::{MadeUp, recording, recording_at_random};
use ghostgpu_recording::{Category, Recording, Stage};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

fn stages(recording: &Recording) -> Stages {
    CardLedger::new(recording, &recording.cards[0]).stages()
}

fn flow(stages: &Stages, part: TrainingPart, stage: Stage) -> &StageFlow {
    let mut flows = stages.flows.iter();
    flows
        .find(|flow| (flow.part, flow.stage) == (part, stage))
        .expect("a row")
}

#[test]
fn each_stage_has_what_came_what_went_and_what_stayed() {
    let stages = stages(&recording(MadeUp {
        layers: 4,
        steps: 3,
    }));
    let moving = flow(&stages, TrainingPart::Setup, Stage::Moving);
    assert_eq!(moving.stayed.get(Category::Parameter), 16 * MIB);
    assert_eq!(moving.went.total(), 0);
    let forward = flow(&stages, TrainingPart::FirstStep, Stage::Forward);
    assert_eq!(forward.came.get(Category::Workspace), 4 * 8 * MIB);
    assert_eq!(forward.stayed.get(Category::Workspace), 0);
    assert_eq!(
        forward.stayed.get(Category::Activation),
        4 * (9 * MIB + 512)
    );
    let backward = flow(&stages, TrainingPart::FirstStep, Stage::Backward);
    assert_eq!(backward.went.get(Category::Activation), 4 * (9 * MIB + 512));
    assert_eq!(backward.stayed.get(Category::Gradient), 16 * MIB);
}

#[test]
fn the_first_step_allocates_the_optimizers_state_and_a_later_one_does_not() {
    let stages = stages(&recording(MadeUp {
        layers: 4,
        steps: 3,
    }));
    assert_eq!(stages.optimizer_state_in_first_step_bytes, 32 * MIB);
    assert_eq!(stages.later_step, Some(2));
    let later = flow(&stages, TrainingPart::LaterStep(2), Stage::OptimizerStep);
    assert_eq!(later.came.total(), 0);
    let first = flow(&stages, TrainingPart::FirstStep, Stage::OptimizerStep);
    assert_eq!(first.came.get(Category::OptimizerState), 32 * MIB);
}

#[test]
fn evaluation_is_a_part_of_its_own() {
    let stages = stages(&recording(MadeUp {
        layers: 2,
        steps: 1,
    }));
    let evaluation = flow(&stages, TrainingPart::Evaluation, Stage::Evaluation);
    assert_eq!(evaluation.came.total(), 2 * MIB);
    assert_eq!(stages.later_step, None);
}

proptest! {
    #[test]
    fn in_every_row_what_came_is_at_least_what_stayed_and_the_highest_row_has_the_peak(
        seed: u64,
        events in 0_usize..300,
    ) {
        let recording = recording_at_random(seed, events);
        for card in &recording.cards {
            let ledger = CardLedger::new(&recording, card);
            let stages = ledger.stages();
            for flow in &stages.flows {
                for category in Category::ALL {
                    prop_assert!(flow.stayed.get(category) <= flow.came.get(category));
                }
                prop_assert!(flow.peak_allocated_bytes <= ledger.peak().allocated_bytes);
                let at_peak = ledger.accounts(flow.peak);
                prop_assert_eq!(at_peak.allocated_bytes, flow.peak_allocated_bytes);
            }
            let steps = ledger.steps().iter().map(|step| step.peak_allocated_bytes);
            prop_assert_eq!(steps.max(), Some(ledger.peak().allocated_bytes));
        }
    }
}

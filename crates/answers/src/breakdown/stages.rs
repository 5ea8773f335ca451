//! What was allocated, freed and kept in each stage.

use ghostgpu_ledger::{CardLedger, StageFlow, TrainingPart};
use ghostgpu_recording::{Category, Stage};

use super::lines::short_title;
use ghostgpu_text::{Sheet, Table, human, human_in_few};

/// Minor rows are shown if they allocate or free at least one part in this many of the peak.
const SMALL_FLOW: u64 = 100;

/// Width of the table with its last column.
const WITH_MOSTLY: usize = 83;

pub(super) fn add(sheet: &mut Sheet, ledger: &CardLedger) {
    let stages = ledger.stages();
    let peak = ledger.peak().allocated_bytes;
    let headings = ["", ">came", ">went", ">stayed", ">peak", "mostly"];
    // Narrow lines have no room for the last column.
    let columns = if sheet.text_width() < WITH_MOSTLY {
        5
    } else {
        6
    };
    let mut table = Table::new(&headings[..columns]);
    let mut has_rows = false;
    for flow in stages.flows.iter().filter(|flow| is_shown(flow, peak)) {
        has_rows = true;
        let most = flow.stayed.largest();
        table.push(vec![
            title(flow),
            short(flow.came.total()),
            short(flow.went.total()),
            short(flow.stayed.total()),
            short(flow.peak_allocated_bytes),
            most.map_or("", |(category, _)| short_title(category))
                .to_owned(),
        ]);
    }
    if !has_rows {
        return;
    }
    sheet.table("stages", &table);
    if stages.optimizer_state_in_first_step_bytes > 0 && stages.later_step.is_some() {
        let sentence = format!(
            "The first step allocates the optimizer's state ({}); later steps reuse it.",
            human(stages.optimizer_state_in_first_step_bytes)
        );
        sheet.paragraph("", &sentence);
    }
}

fn is_shown(flow: &StageFlow, peak: u64) -> bool {
    let moved = flow.came.total().max(flow.went.total());
    match flow.stage {
        Stage::Forward | Stage::Backward | Stage::OptimizerStep => true,
        Stage::Moving | Stage::Evaluation => moved > 0,
        Stage::Script | Stage::ZeroGrad => moved > peak / SMALL_FLOW,
    }
}

fn title(flow: &StageFlow) -> String {
    let stage = flow.stage.title();
    match flow.part {
        TrainingPart::Setup if flow.stage == Stage::Script => {
            match flow.stayed.get(Category::Parameter) {
                0 => "before the first step".to_owned(),
                _ => "building the model".to_owned(),
            }
        }
        TrainingPart::Setup | TrainingPart::Evaluation => stage.to_owned(),
        TrainingPart::FirstStep => format!("step 1, {stage}"),
        TrainingPart::LaterStep(step) => format!("step {}, {stage}", u64::from(step) + 1),
    }
}

fn short(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        bytes => human_in_few(bytes),
    }
}

//! A plan as a report page: the recommended combination, rehearsed once more with a recording, next to the others.

use ghostgpu_answers::fits::{self, Need};
use ghostgpu_answers::plan::PlanAnswer;
use ghostgpu_plan::StepGrowth;
use ghostgpu_plan::verdict::{OnCard, judge, need_seen_in};
use ghostgpu_rehearse::{
    Change, Completion, Memory, Prepared, Purpose, Records, Rehearsal, Rehearse, Run, Stop,
};

use super::super::recorded::{complete, write_recording};
use crate::output::Output;

/// Rehearses the recommended combination, or the job with unlimited memory if nothing fits, and writes its page.
pub fn write(
    runner: &mut dyn Rehearse,
    prepared: &Prepared,
    on_card: &OnCard,
    plan: &PlanAnswer,
    page: Output,
) -> anyhow::Result<()> {
    let mut run = recorded(runner, plan)?;
    let need = (run.completion() == Completion::Completed).then(|| need_seen_in(&run));
    let growth = StepGrowth::of(&run);
    let judgement = judge(&run, need.as_ref(), growth.as_ref(), on_card);
    let need = match need {
        Some(need) => Need::Found(need),
        None => Need::Unknown {
            because: "the script did not run to its end".to_owned(),
        },
    };
    let circumstances = fits::Circumstances::of(prepared);
    let mut answer = fits::answer(&run, judgement, need, &circumstances);
    answer.plan = Some(plan.on_page(&run));
    let mut memory = std::mem::replace(&mut run.memory, Memory::Unwanted);
    complete(&mut memory, &answer, prepared);
    write_recording(&memory, Some(page), None)
}

fn recorded(runner: &mut dyn Rehearse, plan: &PlanAnswer) -> Result<Run, Stop> {
    let rehearsal = match plan.best() {
        Some(best) => Rehearsal {
            purpose: Purpose::Candidate(best.in_words.clone()),
            changes: best.tricks.iter().cloned().map(Change::Trick).collect(),
            records: Records::Memory,
        },
        None => Rehearsal {
            purpose: Purpose::Need,
            changes: vec![Change::UnlimitedMemory],
            records: Records::Memory,
        },
    };
    Run::even_if_timed_out(runner.rehearse(&rehearsal))
}

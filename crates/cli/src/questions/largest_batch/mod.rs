//! What is the largest batch that fits? Found by rehearsals, and confirmed by a whole run.

mod not_found;

use std::sync::Arc;

use ghostgpu_answers::fits::{Circumstances, Need};
use ghostgpu_answers::largest_batch::MaxBatch;
use ghostgpu_plan::StepGrowth;
use ghostgpu_plan::largest_batch::{Goal, LargestBatch, WholeBecause, confirm, find};
use ghostgpu_plan::verdict::{Margin, OnCard, judge, need_seen_in};
use ghostgpu_rehearse::{Completion, Job, SizePoint, WholeRuns, present_value};

use super::announce;
use crate::commands::AnswerOptions;
use crate::progress::Rehearsing;

/// The question, and where the answer goes in addition to standard output.
pub struct WhichBatch<'a> {
    pub job: Job,
    pub output: &'a AnswerOptions,
    /// Where the batch is set.
    pub point: SizePoint,
    pub at_most: Option<u64>,
    /// How much of the card must stay free.
    pub margin: Option<Margin>,
    /// Why the script must be started anew for each batch; `None` lets it be forked where that is sound.
    pub whole_because: Option<WholeBecause>,
}

pub fn answer(question: &WhichBatch) -> anyhow::Result<u8> {
    let output = question.output.prepare()?;
    let prepared = question.job.prepare()?;
    announce(
        &prepared,
        "looking for the largest batch",
        "nothing is computed",
    );
    let goal = Goal {
        point: question.point.clone(),
        given: match &question.point {
            SizePoint::Option(option) => present_value(&prepared.words, option),
            _ => None,
        },
        at_most: question.at_most,
        whole_because: question.whole_because.clone(),
        capacity_bytes: OnCard::of(&prepared, None).capacity_bytes(),
        margin_bytes: question
            .margin
            .map_or(0, |margin| margin.bytes_of(prepared.card().total_bytes)),
        first_steps: question.job.extent.first_steps(),
    };
    let mut runner = WholeRuns::new(prepared.clone(), Arc::new(Rehearsing::default()));
    let mut found = match find(&mut runner, &goal)? {
        LargestBatch::Found(found) => found,
        LargestBatch::NotFound(reason) => {
            return not_found::tell(reason, &prepared, output, &mut runner);
        }
    };
    let (confirmation, run) = confirm(&mut runner, &goal, &mut found)?;
    let need = match run.completion() {
        Completion::Completed => Need::NotLookedFor {
            took: need_seen_in(&run),
            because: "a batch was looked for".to_owned(),
        },
        _ => Need::Unknown {
            because: "a batch was looked for".to_owned(),
        },
    };
    let run_answer = ghostgpu_answers::fits::answer(
        &run,
        judge(
            &run,
            need.smallest(),
            StepGrowth::of(&run).as_ref(),
            &OnCard::of(&prepared, None),
        ),
        need,
        &Circumstances::of(&prepared),
    );
    let answer = MaxBatch::new(&found, confirmation, goal.margin_bytes, run_answer);
    let text = answer.text(output.style(None));
    output.publish(&text, &answer)?;
    Ok(answer.exit_code)
}

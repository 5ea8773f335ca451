//! Advice on a virtual card: which job that is, and on which card.

use std::path::Path;
use std::sync::Arc;

use ghostgpu_answers::explain::{Rehearsed, Typed, rehearsed};
use ghostgpu_explain::{Explanation, Log, Situation, Stage};
use ghostgpu_plan::candidates::{Question, Script, rehearse_advice};
use ghostgpu_rehearse::{CodeChange, Extent, Job, WholeRuns};

use super::arguments::Arguments;
use super::card::guess;
use crate::progress::Rehearsing;
use crate::questions::announce;

/// What grows needs more steps than others to be seen.
const STEPS_OF_GROWTH: u64 = 20;

/// Rehearses the advice with the user's script, on the card that the log is about.
pub fn rehearse(
    arguments: &Arguments,
    script: &Path,
    explanation: &Explanation,
    log: &Log,
) -> anyhow::Result<Rehearsed> {
    let guess = guess(
        arguments.gpu.as_deref(),
        arguments.memory,
        &explanation.finding,
        log,
    )?;
    // Steps alone would not lead to the evaluation.
    let is_evaluating = arguments.steps.is_none() && explanation.stage == Some(Stage::Evaluation);
    let words = std::iter::once(script.as_os_str().to_owned());
    let job = Job {
        command: words.chain(arguments.words.iter().cloned()).collect(),
        card: Some(guess.name),
        memory_bytes: guess.memory,
        extent: extent(arguments, explanation, is_evaluating),
        python: arguments.python.clone(),
        timeout: arguments.timeout,
        records_memory: false,
        changes: match is_evaluating {
            true => vec![CodeChange::ShortPasses],
            false => Vec::new(),
        },
        ..Job::default()
    };
    let prepared = job.prepare()?;
    announce(&prepared, "rehearsing what may help", "nothing is computed");
    let card = prepared.card().clone();
    let mut assumptions = vec![format!("the card is a {}: {}", card.name, guess.because)];
    assumptions.extend(prepared.assumptions.iter().cloned());
    if is_evaluating {
        assumptions.push(
            "passes over the training data were cut to 3 batches, so that the script comes to its \
             evaluation; --steps iterates all of them"
                .to_owned(),
        );
    }
    let text = Script {
        name: {
            let name = script.file_name().unwrap_or(script.as_os_str());
            name.to_string_lossy().into_owned()
        },
        contents: std::fs::read(script).map_err(|error| error.to_string()),
    };
    let question = Question {
        advice: &explanation.advice,
        script: &text,
        words: &arguments.words,
        batch: arguments.batch.point(),
        capacity_bytes: card.total_bytes,
    };
    let mut runner = WholeRuns::new(prepared, Arc::new(Rehearsing::default()));
    let candidates = rehearse_advice(&mut runner, &question)?;
    let typed = Typed {
        script,
        words: &arguments.words,
    };
    Ok(rehearsed(candidates, &card, assumptions, &typed))
}

fn extent(arguments: &Arguments, explanation: &Explanation, is_evaluating: bool) -> Extent {
    let mut situations = explanation.situations.iter();
    let is_growing = situations.any(|each| each.situation == Situation::Growth);
    match (arguments.steps, is_evaluating, is_growing) {
        (Some(0), ..) | (None, true, _) => Extent::Whole,
        (Some(steps), ..) => Extent::Steps(steps),
        (None, false, true) => Extent::Steps(STEPS_OF_GROWTH),
        (None, false, false) => Extent::Steps(Job::STEPS),
    }
}

//! Advice on a virtual card: which job that is, and on which card.

use std::path::Path;
use std::sync::Arc;

use ghostgpu_answers::explain::{Rehearsed, Typed, rehearsed};
use ghostgpu_explain::{Catalogue, Explanation, Log};
use ghostgpu_plan::candidates::{Question, Script, rehearse_advice};
use ghostgpu_rehearse::{Job, WholeRuns};

use super::arguments::Arguments;
use super::card::guess;
use crate::progress::Rehearsing;
use crate::questions::announce;

/// Rehearses the advice with the user's script, on the card that the log is about.
pub fn rehearse(
    arguments: &Arguments,
    script: &Path,
    explanation: &Explanation,
    log: &Log,
    catalogue: &Catalogue,
) -> anyhow::Result<Rehearsed> {
    let guess = guess(
        arguments.gpu.as_deref(),
        arguments.memory,
        &explanation.finding,
        log,
    )?;
    let words = std::iter::once(script.as_os_str().to_owned());
    let job = Job {
        command: words.chain(arguments.words.iter().cloned()).collect(),
        card: Some(guess.name),
        memory_bytes: guess.memory,
        extent: arguments.extent.extent(),
        python: arguments.python.clone(),
        timeout: arguments.timeout,
        values: arguments.values.policy(),
        records_memory: false,
        ..Job::default()
    };
    let prepared = job.prepare()?;
    announce(&prepared, "rehearsing what may help", "nothing is computed");
    let card = prepared.card().clone();
    let mut assumptions = vec![format!("the card is a {}: {}", card.name, guess.because)];
    assumptions.extend(prepared.assumptions.iter().cloned());
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
        first_steps: job.extent.first_steps(),
    };
    let mut runner = WholeRuns::new(prepared, Arc::new(Rehearsing::default()));
    let candidates = rehearse_advice(&mut runner, &question)?;
    let typed = Typed {
        script,
        words: &arguments.words,
    };
    Ok(rehearsed(candidates, &card, assumptions, &typed, catalogue))
}

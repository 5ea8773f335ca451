//! `ghostgpu explain`: what an out-of-memory error in a log means, and what to do about it.

mod arguments;
mod candidates;
mod candidates_in_words;
mod card;
mod input;
mod picture;
mod short;
mod text;
mod trials;

pub use arguments::Arguments;
use ghostgpu_explain::{Explanation, Log, explain_on};
use serde::Serialize;

use crate::failure::{EXIT_DOES_NOT_FIT, Failure};
use crate::terminal::Look;
use candidates::rehearse;
use trials::Trials;

/// A field that is added keeps the version; `docs/explain-json.md` describes them.
const SCHEMA: &str = "ghostgpu.explain/1";

/// The JSON document; the text shows the same.
#[derive(Debug, Serialize)]
struct Document<'a> {
    schema: &'static str,
    #[serde(flatten)]
    explanation: &'a Explanation,
    log: LogSummary<'a>,
    trials: Option<&'a Trials>,
    exit_code: u8,
}

/// What else the log says.
#[derive(Debug, Serialize)]
struct LogSummary<'a> {
    bytes: u64,
    /// Failures that were counted, but not kept.
    left_out: u64,
    environment: &'a ghostgpu_explain::Environment,
    memory_prints: &'a [ghostgpu_explain::Series],
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let output = arguments.answer.prepare()?;
    let log = input::read_log(arguments.file.as_deref())?;
    let card = |finding: &_| {
        let guess = card::guess(arguments.gpu.as_deref(), None, finding, &log);
        guess.ok().map(|guess| guess.name)
    };
    let Some(explanation) = explain_on(&log, card) else {
        return Err(nothing_found(arguments, &log).into());
    };
    let trials = match &arguments.script {
        Some(script) => Some(rehearse(arguments, script, &explanation, &log)?),
        None => None,
    };
    let exit_code = match &trials {
        Some(trials) if !trials.has_answer() => EXIT_DOES_NOT_FIT,
        _ => 0,
    };
    let text = |look: Look<'_>| {
        text::text(
            &text::Answer {
                log: &log,
                explanation: &explanation,
                trials: trials.as_ref(),
            },
            look,
        )
    };
    let document = || as_json(&explanation, &log, trials.as_ref(), exit_code);
    output.answer(text, document)?;
    Ok(exit_code)
}

fn as_json(
    explanation: &Explanation,
    log: &Log,
    trials: Option<&Trials>,
    exit_code: u8,
) -> anyhow::Result<String> {
    let document = Document {
        schema: SCHEMA,
        explanation,
        log: LogSummary {
            bytes: log.bytes,
            left_out: log.left_out,
            environment: &log.environment,
            memory_prints: &log.memory_prints,
        },
        trials,
        exit_code,
    };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn nothing_found(arguments: &Arguments, log: &Log) -> Failure {
    let name = input::name_of(arguments.file.as_deref());
    if log.bytes == 0 {
        return Failure::new(format!("{name} is empty"))
            .with_hint("errors go to standard error: `python train.py 2>&1 | ghostgpu explain`");
    }
    Failure::new(format!("{name} has no message about memory that ran out")).with_hint(
        "PyTorch (CUDA, ROCm, XPU, MPS, CPU), cuBLAS, cuDNN, NCCL, DataLoader, the Linux kernel, Slurm, \
         JAX, TensorFlow, vLLM and llama.cpp are recognised; the message may stand in another file, such as that of \
         another rank",
    )
}

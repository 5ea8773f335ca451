//! `ghostgpu explain`: what an out-of-memory error in a log means, and what to do about it.

mod arguments;
mod candidates;
mod card;
mod input;

pub use arguments::Arguments;
use ghostgpu_answers::explain::Answer;
use ghostgpu_explain::{Language, Log, explain_on};

use crate::failure::Failure;
use candidates::rehearse;

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    arguments
        .batch
        .needs("--script", arguments.script.is_some())?;
    refuse_options_of_rehearsing(arguments)?;
    let output = arguments.answer.prepare()?;
    let log = input::read_log(arguments.file.as_deref())?;
    let card = |finding: &_| {
        let guess = card::guess(arguments.gpu.as_deref(), None, finding, &log);
        guess.ok().map(|guess| guess.name)
    };
    let language = arguments
        .lang
        .unwrap_or_else(|| Language::of_environment(|name| std::env::var(name).ok()));
    let catalogue = language.catalogue();
    let Some(explanation) = explain_on(&log, card, catalogue) else {
        return Err(nothing_found(arguments, &log).into());
    };
    let (rehearsed, stop) = match &arguments.script {
        Some(script) => {
            let (rehearsed, stop) = rehearse(arguments, script, &explanation, &log, catalogue)?;
            (Some(rehearsed), stop)
        }
        None => (None, None),
    };
    let exit_code = match (&stop, &rehearsed) {
        (Some(stop), _) => stop.exit_code(),
        (None, Some(rehearsed)) => rehearsed.exit_code(),
        (None, None) => 0,
    };
    let answer = Answer {
        catalogue,
        log: &log,
        explanation: &explanation,
        rehearsed: rehearsed.as_ref(),
    };
    output.answer(|style| answer.text(style), || answer.json(exit_code))?;
    match stop {
        Some(stop) => Err(stop.into()),
        None => Ok(exit_code),
    }
}

/// Refuses options that would have no effect.
fn refuse_options_of_rehearsing(arguments: &Arguments) -> Result<(), Failure> {
    let words = arguments.extent.words();
    match (words.first(), &arguments.script) {
        (Some(option), None) => Err(Failure::new(format!("`{option}` belongs to --script"))
            .with_hint("without --script nothing is run")),
        _ => Ok(()),
    }
}

fn nothing_found(arguments: &Arguments, log: &Log) -> Failure {
    let name = input::name_of(arguments.file.as_deref());
    if log.bytes == 0 {
        return Failure::new(format!("{name} is empty"))
            .with_hint("errors go to standard error: `python train.py 2>&1 | ghostgpu explain`");
    }
    Failure::new(format!("{name} has no message about memory that ran out")).with_hint(
        "PyTorch (CUDA, ROCm, XPU, NPU, MPS, CPU), cuBLAS, cuDNN, NCCL, DataLoader, the Linux kernel, Slurm, \
         Windows, JAX, TensorFlow, vLLM, SGLang, llama.cpp and others are recognised; the message may be in another file, such as another rank's",
    )
}

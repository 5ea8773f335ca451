//! `Trainer` of Lightning. Models, optimizers and loaders are the script's own code there.

use ghostgpu_lint::python::ExprCall;
use ghostgpu_tricks::Request;

use super::{times, with_keywords};
use crate::outcome::Outcome;
use crate::script::Script;

pub fn write(script: &Script<'_>, request: &Request) -> Option<Outcome> {
    let is_trainer = |name: &str| {
        matches!(
            name,
            "lightning.Trainer"
                | "lightning.pytorch.Trainer"
                | "pytorch_lightning.Trainer"
                | "lightning.pytorch.trainer.Trainer"
        )
    };
    let uses = ["lightning", "pytorch_lightning"]
        .iter()
        .any(|it| script.facts.imports.uses(it));
    if !uses {
        return None;
    }
    let calls: Vec<&ExprCall> = script
        .calls_of(is_trainer)
        .map(|(call, _)| call.node)
        .collect();
    let value = |option: &str| request.value(option).unwrap_or_default();
    let wanted = matches!(request.name.as_str(), "accumulation" | "autocast");
    let [call] = &*calls else {
        return wanted.then(|| {
            Err(match calls.len() {
                0 => "the loop is in a library (lightning), and its Trainer is not made here"
                    .to_owned(),
                _ => "several Trainers are made here".to_owned(),
            })
        });
    };
    let keyword = match request.name.as_str() {
        "accumulation" => {
            let name = "accumulate_grad_batches";
            match times(script, call, name, value("steps")) {
                Ok(count) => (name, count),
                Err(reason) => return Some(Err(reason)),
            }
        }
        "autocast" => (
            "precision",
            match value("dtype") {
                "fp16" => "\"16-mixed\"".to_owned(),
                _ => "\"bf16-mixed\"".to_owned(),
            },
        ),
        // Optimizer steps in backward, chunks and the like would conflict with the library's own loop.
        "chunking"
        | "surviving-oom"
        | "optimizer-in-backward"
        | "offload-optimizer"
        | "evaluation-chunks"
        | "early-zero-grad"
        | "drop-gradients"
        | "no-grad-evaluation" => {
            return Some(Err("the loop is in a library (lightning)".to_owned()));
        }
        _ => return None,
    };
    Some(with_keywords(script, call, &[keyword]))
}

//! `TrainingArguments` of transformers, and those of libraries that build on it.

use ghostgpu_lint::python::ExprCall;
use ghostgpu_tricks::Request;

use super::{times, with_keywords};
use crate::outcome::Outcome;
use crate::script::Script;

pub fn write(script: &Script<'_>, request: &Request) -> Option<Outcome> {
    let trains = script
        .calls_of(|name| name.ends_with("Trainer") && is_of(name))
        .next()
        .is_some();
    let calls: Vec<&ExprCall> = script
        .calls_of(|name| is_of(name) && is_arguments(name))
        .map(|(call, _)| call.node)
        .collect();
    match &*calls {
        [call] => written(script, call, request),
        [] if trains && has_argument(request) => Some(Err(
            "the trainer's arguments are made somewhere else than in this file".to_owned(),
        )),
        [] => None,
        _ => Some(Err(
            "several sets of training arguments are made here".to_owned()
        )),
    }
}

fn is_of(name: &str) -> bool {
    name.starts_with("transformers.") || name.starts_with("trl.")
}

fn is_arguments(name: &str) -> bool {
    let class = name.rsplit('.').next().unwrap_or(name);
    class.ends_with("TrainingArguments") || name.starts_with("trl.") && class.ends_with("Config")
}

/// Whether the trainer, and not the script, must apply a trick.
fn has_argument(request: &Request) -> bool {
    matches!(
        request.name.as_str(),
        "accumulation"
            | "adafactor"
            | "autocast"
            | "checkpointing"
            | "drop-last"
            | "eight-bit-optimizer"
            | "optimizer-form"
            | "small-evaluation-batch"
            | "smaller-batch"
    )
}

fn written(script: &Script<'_>, call: &ExprCall, request: &Request) -> Option<Outcome> {
    let value = |option: &str| request.value(option).unwrap_or_default().to_owned();
    let yes = || "True".to_owned();
    let keywords: Vec<(&str, String)> = match request.name.as_str() {
        "accumulation" => {
            let name = "gradient_accumulation_steps";
            match times(script, call, name, &value("steps")) {
                Ok(count) => vec![(name, count)],
                Err(reason) => return Some(Err(reason)),
            }
        }
        "autocast" => {
            let (on, off) = match value("dtype").as_str() {
                "fp16" => ("fp16", "bf16"),
                _ => ("bf16", "fp16"),
            };
            let mut keywords = vec![(on, yes())];
            if call.arguments.find_keyword(off).is_some() {
                keywords.push((off, "False".to_owned()));
            }
            keywords
        }
        "checkpointing" if value("blocks") == "auto" && value("keep") == "nothing" => vec![
            ("gradient_checkpointing", yes()),
            (
                "gradient_checkpointing_kwargs",
                "{\"use_reentrant\": False}".to_owned(),
            ),
        ],
        "checkpointing" => {
            return Some(Err("the trainer checkpoints all layers or none".to_owned()));
        }
        "adafactor" => vec![("optim", "\"adafactor\"".to_owned())],
        "eight-bit-optimizer" => vec![("optim", "\"adamw_bnb_8bit\"".to_owned())],
        "optimizer-form" => match value("form").as_str() {
            "fused" => vec![("optim", "\"adamw_torch_fused\"".to_owned())],
            "foreach" => vec![("optim", "\"adamw_torch\"".to_owned())],
            _ => {
                return Some(Err(
                    "the trainer has no optimizer in for-loop form".to_owned()
                ));
            }
        },
        "drop-last" => vec![("dataloader_drop_last", yes())],
        "smaller-batch" => vec![("per_device_train_batch_size", value("batch"))],
        "small-evaluation-batch" => vec![("per_device_eval_batch_size", value("batch"))],
        _ => return None,
    };
    Some(with_keywords(script, call, &keywords))
}

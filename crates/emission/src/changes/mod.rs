//! The edits of each trick.

mod accumulation;
mod allocator;
mod autocast;
mod batch_size;
mod channels_last;
mod checkpointing;
mod evaluation;
mod fitting;
mod gradients;
mod optimizers;
mod settings;
mod weights;

use ghostgpu_tricks::Request;

use crate::frameworks;
use crate::outcome::Outcome;
use crate::script::Script;

/// Writes one trick into a script: as an argument of the library that it trains with, or into its own
/// loop.
pub fn write(script: &Script<'_>, request: &Request) -> Outcome {
    if let Some(outcome) = frameworks::write(script, request) {
        return outcome;
    }
    match request.name.as_str() {
        "accumulation" => accumulation::write(script, request),
        "adafactor" | "eight-bit-optimizer" => optimizers::replace(script, request),
        "allocator" => allocator::write(script, request),
        "autocast" => autocast::write(script, request),
        "bfloat16-weights" => weights::bfloat16(script),
        "channels-last" => channels_last::write(script),
        "checkpointing" => checkpointing::write(script, request),
        "drop-gradients" => gradients::drop_before_evaluation(script),
        "drop-last" => batch_size::drop_last(script),
        "early-zero-grad" => gradients::zero_early(script),
        "leave-room" => settings::leave_room(script),
        "lora" => weights::lora(script, request),
        "no-cudnn-benchmark" => settings::no_benchmark(script),
        "no-grad-evaluation" => evaluation::write(script),
        "no-limit" => settings::no_limit(script),
        "optimizer-form" => optimizers::form(script, request),
        "small-evaluation-batch" => batch_size::of_evaluation(script, request),
        "smaller-batch" => batch_size::of_training(script, request),
        "chunking"
        | "evaluation-chunks"
        | "surviving-oom"
        | "offload-activations"
        | "optimizer-in-backward"
        | "offload-optimizer" => fitting::write(script, request),
        "inplace-activations" => {
            Err("which activations may be written over is proved on the running model".to_owned())
        }
        "loss-head" => Err("the model computes its own logits and loss".to_owned()),
        "sharding" => {
            Err("checkpoints have to be gathered, wherever the script writes them".to_owned())
        }
        "shorter-sequences" => Err("sequences are cut where a model is called".to_owned()),
        "empty-cache" => {
            Err("where training and evaluation change places shows when it runs".to_owned())
        }
        _ => Err("nobody has written down how".to_owned()),
    }
}

/// An option of a trick, given or by default.
fn option<'a>(request: &'a Request, name: &str) -> &'a str {
    request.value(name).unwrap_or_default()
}

//! What the program was doing, as far as the traceback tells.

use serde::Serialize;

use crate::finding::Finding;
use crate::program::shows_training;
use crate::reader::Log;
use crate::traceback::Frame;

/// The stage of a training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    LoadingTheModel,
    Optimizer,
    Backward,
    Evaluation,
    Training,
    /// A model is used, and not trained.
    Inference,
}

/// Decides from the innermost call outwards: training calls evaluation, never the reverse.
pub fn stage(finding: &Finding, log: &Log) -> Option<Stage> {
    let frames = finding
        .traceback
        .as_ref()
        .map(|found| found.frames.as_slice());
    let frames = frames.unwrap_or_default();
    let any = |test: fn(&Frame) -> bool| frames.iter().any(test);
    if any(is_loading) {
        return Some(Stage::LoadingTheModel);
    }
    if any(is_optimizer) {
        return Some(Stage::Optimizer);
    }
    if any(is_backward) {
        return Some(Stage::Backward);
    }
    let trains = any(is_training);
    for frame in frames.iter().rev() {
        if is_evaluation(frame) {
            return Some(Stage::Evaluation);
        }
        // Samples that a training draws are part of its evaluation.
        if is_inference(frame) {
            return Some(match trains {
                true => Stage::Evaluation,
                false => Stage::Inference,
            });
        }
        if is_training(frame) {
            return Some(Stage::Training);
        }
    }
    if any(shows_training) {
        return Some(Stage::Training);
    }
    if log.environment.is_model_missing && frames.is_empty() {
        return Some(Stage::LoadingTheModel);
    }
    let progress = finding.progress.as_ref()?;
    if progress.is_loading() && frames.is_empty() {
        return Some(Stage::LoadingTheModel);
    }
    progress.is_evaluation().then_some(Stage::Evaluation)
}

fn is_loading(frame: &Frame) -> bool {
    let function = frame.function.as_str();
    let by_function = [
        "_apply",
        "load_state_dict",
        "from_pretrained",
        "_load_pretrained_model",
        "_load_state_dict_into_meta_model",
        "load_model",
        "load_checkpoint",
        "load_weights",
        "create_weights",
        "dispatch_model",
        "set_module_tensor_to_device",
        "restore_location",
        "persistent_load",
        "_cuda_deserialize",
        "init_weights",
    ]
    .iter()
    .any(|name| function == *name || function.ends_with(&format!(".{name}")));
    let code = frame.code.as_str();
    let moves = code.contains(".cuda(") || code.contains(".to(") || code.contains(".half(");
    let is_model = [
        "model", "net.", "net =", "module.", "pipe", "unet", "encoder.",
    ]
    .iter()
    .any(|word| code.to_lowercase().contains(word));
    // `x = model(batch.to(device))` moves data, not the model.
    let is_call = code.contains("model(") || code.contains("net(");
    by_function
        || (moves && is_model && !is_call && frame.is_user_code())
        || ["torch.load(", "load_model(", "from_pretrained("]
            .iter()
            .any(|call| code.contains(call))
}

fn is_optimizer(frame: &Frame) -> bool {
    let file = frame.file.replace('\\', "/");
    let in_optimizer = (file.contains("torch/optim/") || file.contains("bitsandbytes/optim/"))
        && !frame.function.contains("zero_grad");
    let code = &frame.code;
    // Wrappers of DeepSpeed, ColossalAI and Megatron allocate the state when they are created.
    let name = file.rsplit('/').next().unwrap_or_default();
    let is_wrapper = [
        "_optim.py",
        "_optimizer.py",
        "stage3.py",
        "stage_1_and_2.py",
    ]
    .iter()
    .any(|end| name.ends_with(end));
    let allocates = ["__init__", "step", "initialize_optimizer_states"];
    let in_wrapper = is_wrapper && allocates.contains(&frame.function.as_str());
    in_wrapper
        || in_optimizer
        || code.contains("exp_avg")
        || code.contains("optimizer.step(")
        || code.contains("optim.step(")
        || code.contains("opt.step(")
}

fn is_backward(frame: &Frame) -> bool {
    frame.code.contains(".backward(")
        || frame.code.contains("run_backward(")
        || frame.function == "run_backward"
        || frame.function == "_engine_run_backward"
}

fn is_evaluation(frame: &Frame) -> bool {
    // A unit test is not an evaluation.
    if frame.function.starts_with("test_") && frame.code.contains("torch.") {
        return false;
    }
    words_of(frame).any(|word| {
        matches!(
            word.as_str(),
            "eval"
                | "evaluate"
                | "evaluation"
                | "evaluator"
                | "val"
                | "valid"
                | "validate"
                | "validation"
                | "test"
                | "testing"
                | "metrics"
        )
    })
}

fn is_inference(frame: &Frame) -> bool {
    words_of(frame).any(|word| {
        matches!(
            word.as_str(),
            "predict"
                | "prediction"
                | "inference"
                | "infer"
                | "generate"
                | "sample"
                | "transcribe"
                | "chat"
                | "pipe"
                | "pipeline"
        )
    })
}

fn is_training(frame: &Frame) -> bool {
    // A notebook has no functions to go by.
    let has_loss = frame.is_user_code() && frame.code.trim_start().starts_with("loss =");
    has_loss
        || words_of(frame)
            .any(|word| matches!(word.as_str(), "train" | "training" | "fit" | "trainer"))
}

/// The words of the function's name, and of the functions that its line calls.
fn words_of(frame: &Frame) -> impl Iterator<Item = String> + '_ {
    let is_own = frame.is_user_code();
    // Libraries have functions of any name: in their code, only the loops of trainers count.
    let is_loop = frame.function.ends_with("_loop") || frame.function.ends_with("_step");
    let function = (is_own || is_loop).then_some(frame.function.as_str());
    let calls = frame.code.split('(').rev().skip(1).filter(move |_| is_own);
    let calls = calls.filter_map(|call| call.rsplit([' ', '=', '.', ',']).next());
    let names = function.into_iter().chain(calls);
    names.flat_map(|name| {
        name.split(|character: char| !character.is_ascii_alphabetic())
            .map(str::to_ascii_lowercase)
            .collect::<Vec<_>>()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;
    use crate::reader::Reader;

    fn stage_of(frames: &[(&str, &str, &str)]) -> Option<Stage> {
        let mut text = "Traceback (most recent call last):\n".to_owned();
        for (file, function, code) in frames {
            text.push_str(&format!(
                "  File \"{file}\", line 1, in {function}\n    {code}\n"
            ));
        }
        text.push_str("RuntimeError: CUDA out of memory. Tried to allocate 2.00 MiB (GPU 0; 1.00 GiB total capacity)\n");
        let mut reader = Reader::default();
        reader.push(text.as_bytes());
        let log = reader.finish();
        assert_eq!(log.findings[0].kind, Kind::CudaAllocator);
        stage(&log.findings[0], &log)
    }

    #[test]
    fn the_stage_is_read_off_the_innermost_telling_call() {
        let torch = "/v/lib/python3.11/site-packages/torch/nn/modules/module.py";
        for (frames, expected) in [
            (
                vec![
                    ("t.py", "main", "model.to(device)"),
                    (torch, "_apply", "fn(t)"),
                ],
                Some(Stage::LoadingTheModel),
            ),
            (
                vec![("t.py", "train", "out = model(x.to(device))")],
                Some(Stage::Training),
            ),
            (
                vec![("t.py", "train", "loss.backward()")],
                Some(Stage::Backward),
            ),
            (
                vec![
                    ("t.py", "train", "validate(model)"),
                    ("t.py", "validate", "out = model(x)"),
                ],
                Some(Stage::Evaluation),
            ),
            (
                vec![("t.py", "train", "optimizer.step()")],
                Some(Stage::Optimizer),
            ),
            (
                vec![("t.py", "main", "out = model.generate(ids)")],
                Some(Stage::Inference),
            ),
            (
                vec![
                    ("t.py", "train", "show_samples(model)"),
                    ("t.py", "show_samples", "images = sample(model)"),
                ],
                Some(Stage::Evaluation),
            ),
            (vec![("t.py", "main", "y = f(x)")], None),
            (vec![("retrieval.py", "interval", "y = f(x)")], None),
        ] {
            assert_eq!(stage_of(&frames), expected, "{frames:?}");
        }
    }
}

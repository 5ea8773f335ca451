//! Which program ran out of memory, and what it was for: advice for a training is of no use to somebody who
//! draws pictures.

use serde::Serialize;

use crate::finding::{Finding, LIBRARY};
use crate::kind::Kind;
use crate::reader::Log;
use crate::said;
use crate::situation::{Stage, stage};
use crate::traceback::Frame;

/// What a program was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    Training,
    Inference,
    /// The log does not tell.
    Unknown,
}

/// A program whose memory is saved in ways of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    ComfyUi,
    InvokeAi,
    Fooocus,
    WebUi,
    /// Oobabooga's `text-generation-webui`.
    TextWebUi,
    Whisper,
    Vllm,
    Sglang,
    Tgi,
    Diffusers,
    Transformers,
}

/// What shows that a tool runs: in the path of a call, or in any line of the log. What builds on another tool
/// comes before it.
const SIGNS: [(Tool, &[&str]); 11] = [
    (
        Tool::ComfyUi,
        &[
            "comfyui",
            "/comfy/",
            // What it adds below PyTorch's message.
            "this error means you ran out of memory on your gpu",
            "tips: if the workflow worked before",
            "got an oom, unloading all loaded models",
            "prompt executed in ",
        ],
    ),
    (Tool::InvokeAi, &["invokeai"]),
    (Tool::Fooocus, &["fooocus"]),
    (Tool::TextWebUi, &["text-generation-webui"]),
    (
        Tool::WebUi,
        &[
            "stable-diffusion-webui",
            "sd.webui",
            "sd-webui",
            "stable diffusion model failed to load",
            " gb, sys: ",
            "modules/processing.py",
            "stable diffusion webui",
            "[gpu setting] you will use",
            "hires. fix",
            "hires fix",
            "highres fix",
            "127.0.0.1:7860",
            "localhost:7860",
        ],
    ),
    (Tool::Whisper, &["whisper", "ggml-large-v"]),
    (Tool::Sglang, &["sglang/", "sglang."]),
    (Tool::Tgi, &["text_generation_server", "text-generation-"]),
    (Tool::Vllm, &["vllm/", "vllm.", "enginecore_", "vllmworker"]),
    (Tool::Diffusers, &["diffusers/"]),
    (Tool::Transformers, &["transformers/generation"]),
];

impl Tool {
    /// The tool that a path or a line of a log speaks of.
    pub fn in_text(text: &str) -> Option<Self> {
        let text = text.replace('\\', "/").to_lowercase();
        // Another program's packages may be installed in a tool's folder.
        let words = text.split_inclusive(' ');
        let text: String = words.map(without_environment).collect();
        let found = SIGNS
            .iter()
            .find(|(_, signs)| signs.iter().any(|sign| text.contains(sign)));
        found.map(|(tool, _)| *tool)
    }
}

/// A path from its package on.
fn without_environment(path: &str) -> &str {
    let packages = ["site-packages/", "dist-packages/"];
    let package = packages.iter().find_map(|name| path.rsplit_once(name));
    package.map_or(path, |(_, package)| package)
}

/// The tool that failed: as the calls show it, else as the log does.
pub fn tool(finding: &Finding, log: &Log) -> Option<Tool> {
    let in_calls = SIGNS.iter().map(|(tool, _)| *tool).find(|tool| {
        let mut frames = frames(finding).iter();
        frames.any(|frame| Tool::in_text(&frame.file) == Some(*tool))
    });
    let is_pipeline =
        |frame: &Frame| frame.code.contains("pipe.to(") || frame.code.contains("pipeline.to(");
    let pipeline = frames(finding).iter().any(is_pipeline);
    let pipeline = pipeline.then_some(Tool::Diffusers);
    in_calls.or(log.environment.tool).or(pipeline)
}

pub fn purpose(finding: &Finding, log: &Log) -> Purpose {
    let is_training = matches!(
        stage(finding, log),
        Some(Stage::Training | Stage::Backward | Stage::Optimizer | Stage::Evaluation)
    );
    let environment = &log.environment;
    let has_epochs = finding
        .progress
        .as_ref()
        .is_some_and(|progress| progress.epoch.is_some());
    let has_trainer = frames(finding).iter().any(shows_training);
    if is_training || has_trainer || has_epochs || environment.trains {
        return Purpose::Training;
    }
    let serves = matches!(
        finding.kind,
        Kind::VllmNoCache
            | Kind::VllmSequence
            | Kind::VllmNotFree
            | Kind::VllmSampler
            | Kind::SglangNoCache
            | Kind::TgiWarmup
            | Kind::LlamaCpp
            | Kind::LlamaCppHost
            | Kind::OllamaMemory
            | Kind::Jetson
    );
    let library = finding.figures.text_named(LIBRARY);
    let only_infers = matches!(
        library,
        Some("CTranslate2" | "LMDeploy" | "TensorRT-LLM" | "TensorRT" | "ONNX Runtime")
    );
    let is_llama = said::is_ggml(finding);
    let is_app = frames(finding).iter().any(shows_inference);
    let is_program = is_llama || is_app || environment.infers;
    if serves || only_infers || is_program || tool(finding, log).is_some() {
        return Purpose::Inference;
    }
    match stage(finding, log) {
        Some(Stage::Inference) => Purpose::Inference,
        _ => Purpose::Unknown,
    }
}

/// Libraries that only train.
pub fn shows_training(frame: &Frame) -> bool {
    let file = frame.file.replace('\\', "/").to_lowercase();
    [
        "/trl/",
        "unsloth/",
        "transformers/trainer.py",
        "pytorch/trainer/",
        "pytorch_lightning/trainer",
        "engine/train_loop.py",
        "ultralytics/engine/trainer.py",
    ]
    .iter()
    .any(|sign| file.contains(sign))
}

/// A demo page, a pipeline that is loaded, or a script named for what it does.
fn shows_inference(frame: &Frame) -> bool {
    let file = frame.file.replace('\\', "/").to_lowercase();
    let name = file.rsplit('/').next().unwrap_or_default();
    let words = ["infer", "predict", "generate", "demo", "sample", "txt2img"];
    let is_script = frame.is_user_code() && words.iter().any(|word| name.starts_with(word));
    let is_loaded = frame.code.contains("pipe.to(") || frame.code.contains("pipeline.to(");
    let function = frame.function.to_lowercase();
    let is_function = frame.is_user_code()
        && ["infer", "inference", "predict", "generate"].contains(&function.as_str());
    is_script || is_loaded || is_function || file.contains("gradio/")
}

fn frames(finding: &Finding) -> &[Frame] {
    let traceback = finding.traceback.as_ref();
    traceback.map_or(&[], |traceback| traceback.frames.as_slice())
}

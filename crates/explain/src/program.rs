//! Which program ran out of memory, and what it was for: advice for a training is of no use to somebody who
//! draws pictures.

use serde::Serialize;

use crate::finding::{Finding, LIBRARY};
use crate::kind::Kind;
use crate::reader::Log;
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
    WebUi,
    Whisper,
    Vllm,
    Sglang,
    Tgi,
    Diffusers,
    Transformers,
}

/// What shows that a tool runs: in the path of a call, or in any line of the log. What builds on another tool
/// comes before it.
const SIGNS: [(Tool, &[&str]); 8] = [
    (Tool::ComfyUi, &["comfyui", "/comfy/"]),
    (
        Tool::WebUi,
        &[
            "stable-diffusion-webui",
            "sd.webui",
            "sd-webui",
            "stable diffusion model failed to load",
            " gb, sys: ",
            "modules/processing.py",
        ],
    ),
    (Tool::Whisper, &["whisper"]),
    (Tool::Sglang, &["sglang/", "sglang."]),
    (Tool::Tgi, &["text_generation_server", "text-generation-"]),
    (Tool::Vllm, &["/vllm/", "vllm."]),
    (Tool::Diffusers, &["diffusers/"]),
    (Tool::Transformers, &["transformers/generation"]),
];

impl Tool {
    /// The tool that a path or a line of a log speaks of.
    pub fn in_text(text: &str) -> Option<Self> {
        let text = text.replace('\\', "/").to_lowercase();
        let found = SIGNS
            .iter()
            .find(|(_, signs)| signs.iter().any(|sign| text.contains(sign)));
        found.map(|(tool, _)| *tool)
    }
}

/// The tool that failed: as the calls show it, else as the log does.
pub fn tool(finding: &Finding, log: &Log) -> Option<Tool> {
    let in_calls = SIGNS.iter().map(|(tool, _)| *tool).find(|tool| {
        let mut frames = frames(finding).iter();
        frames.any(|frame| Tool::in_text(&frame.file) == Some(*tool))
    });
    in_calls.or(log.environment.tool)
}

pub fn purpose(finding: &Finding, log: &Log) -> Purpose {
    let is_training = matches!(
        stage(finding, log),
        Some(Stage::Training | Stage::Backward | Stage::Optimizer | Stage::Evaluation)
    );
    if is_training {
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
    );
    let library = finding.figures.text_named(LIBRARY);
    let only_infers = matches!(
        library,
        Some("CTranslate2" | "LMDeploy" | "TensorRT-LLM" | "TensorRT" | "ONNX Runtime")
    );
    let is_llama = finding.text.contains("ggml");
    if serves || only_infers || is_llama || tool(finding, log).is_some() {
        return Purpose::Inference;
    }
    match stage(finding, log) {
        Some(Stage::Inference) => Purpose::Inference,
        _ => Purpose::Unknown,
    }
}

fn frames(finding: &Finding) -> &[Frame] {
    let traceback = finding.traceback.as_ref();
    traceback.map_or(&[], |traceback| traceback.frames.as_slice())
}

//! The environment of a training as its log shows it: cards, PyTorch release, operating system.

use serde::Serialize;

use crate::families::cased_pattern;
use crate::program::Tool;

/// Where the training ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Environment {
    /// Names of cards, in order of appearance.
    pub cards: Vec<String>,
    /// The PyTorch release, such as `2.1`.
    pub torch: Option<String>,
    /// The log was written on Windows.
    pub is_windows: bool,
    /// In Windows' Linux subsystem.
    pub is_wsl: bool,
    /// The first tool that the log speaks of.
    pub tool: Option<Tool>,
    /// The program says that its model failed to load.
    pub is_model_missing: bool,
    /// An AMD card, whatever PyTorch calls it.
    pub is_rocm: bool,
    /// An NVIDIA board whose CPU and GPU share one memory.
    pub is_jetson: bool,
    /// Weights or optimizer state are kept in RAM.
    pub offloads: bool,
    /// What the command lines and loggers say the program is for.
    pub trains: bool,
    pub infers: bool,
}

pub const NEEDLES: [&str; 95] = [
    "GeForce",
    "Tesla ",
    "NVIDIA A",
    "NVIDIA B",
    "NVIDIA H",
    "NVIDIA L",
    "NVIDIA R",
    "NVIDIA T",
    "Quadro",
    "Radeon",
    "Instinct",
    "orch version",
    "torch==",
    "torch 1.",
    "torch 2.",
    ":\\",
    "/mnt/c",
    "/mnt/d",
    "WSL2",
    " WSL ",
    "microsoft-standard",
    "ComfyUI",
    "diffusion-webui",
    "sd.webui",
    "model failed to load",
    "Failed to load model",
    "GB, Sys:",
    "whisper",
    "diffusers/",
    "sglang.",
    "text-generation-",
    "rocm",
    "amdgpu",
    "PYTORCH_HIP",
    "Jetson",
    "tegra",
    "NvMap",
    "offload_optimizer",
    "offload_param",
    "cpu_offload",
    "ZeRoOffload",
    "DeepSpeedCPUAdam",
    "_offload",
    "InvokeAI",
    "fooocus",
    "127.0.0.1:7860",
    "localhost:7860",
    "workflow worked before",
    "ran out of memory on your GPU",
    "txt2img",
    "img2img",
    "inference.py",
    "infer.py",
    "predict.py",
    "generate.py",
    "train_batch_size",
    "autotrain.trainers",
    "sd-scripts",
    "onetrainer",
    "--do_train",
    "unsloth",
    "/vllm/",
    "EngineCore",
    "VllmWorker",
    "sglang/",
    "Diffusion WebUI",
    "[GPU Setting]",
    "res fix",
    ": Orin",
    ": Xavier",
    "unloading all loaded models",
    "Prompt executed in",
    "python train",
    "python3 train",
    "Training progress",
    "/Adam/",
    "训练时",
    "训练的时候",
    "训练到",
    "训练过程",
    "训练报错",
    "微调时",
    "推理",
    "/inference/",
    "\\inference\\",
    "run inference",
    "running inference",
    "mlx_lm",
    "llama-cli",
    "llama-server",
    "xinference",
    "TRT-LLM]",
    "ggml-large-v",
    "..\\c10",
    "run_backward(",
];

/// No more matching lines than this are read: names repeat.
const MOST_LINES: u32 = 400;
const MOST_CARDS: usize = 8;

cased_pattern!(
    CARD,
    r"(?:NVIDIA )?(?:GeForce (?:RTX|GTX)? ?\d{3,4}(?: ?(?:Ti|SUPER))*(?: Laptop GPU| D)?|Tesla [A-Z]\d{1,4}[A-Z]*(?:-[\w-]+)?|Quadro [\w ]{2,12}\d|RTX (?:PRO )?A?\d{4}(?: Ada)?|[ABHLT]\d{1,4}[A-Z]{0,2}(?:-[\w]+)*(?: \d+GB)?)"
);
cased_pattern!(
    TORCH,
    r"(?i)torch(?: version)?['\x22]?\s?(?:==|[:= ])\s?['\x22]?v?([12]\.\d{1,2})(?:\.\d+)?"
);
cased_pattern!(WSL, r"/mnt/[c-f]/|\bWSL2?\b|microsoft-standard");
cased_pattern!(
    WINDOWS,
    r#"File "[A-Za-z]:\\|^[A-Za-z]:\\\S*\.(?:py|cc|cpp)|\\site-packages\\|\.\.\\c10\\|^[A-Za-z]:\\[^\s<>|"]*>"#
);
cased_pattern!(TRAIN_COMMAND, r"(?:^|\s)python3? train\w*\.py");

/// Collects the environment from lines until enough is known.
#[derive(Debug, Default)]
pub struct Reader {
    found: Environment,
    lines: u32,
}

impl Reader {
    pub fn is_full(&self) -> bool {
        self.lines >= MOST_LINES
    }

    pub fn note(&mut self, line: &str) {
        if self.is_full() {
            return;
        }
        self.lines += 1;
        if let Some(found) = CARD.find(line) {
            let name = found.as_str().trim();
            // A bare `A100` may be any word: a card's name has the vendor or the series.
            let is_card =
                name.starts_with("NVIDIA") || !name.starts_with(['A', 'B', 'H', 'L', 'T']);
            let is_tesla = name.starts_with("Tesla");
            let is_new = !self.found.cards.iter().any(|card| card == name);
            if (is_card || is_tesla) && is_new && self.found.cards.len() < MOST_CARDS {
                self.found.cards.push(name.to_owned());
            }
        }
        if self.found.torch.is_none()
            && let Some(found) = TORCH.captures(line)
        {
            self.found.torch = Some(found[1].to_owned());
        }
        self.found.is_windows |= WINDOWS.find(line).is_some();
        self.found.is_wsl |= WSL.find(line).is_some();
        self.found.is_model_missing |=
            line.contains("model failed to load") || line.contains("Failed to load model");
        let lower = line.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        self.found.is_rocm |= has(&["rocm", "amdgpu", "pytorch_hip", "radeon", "instinct"]);
        self.found.is_jetson |= has(&["jetson", "tegra", "nvmap", ": orin", ": xavier"]);
        self.found.offloads |= has(&["offload"]);
        self.found.trains |= has(&[
            "train_batch_size",
            "autotrain.trainers",
            "sd-scripts",
            "onetrainer",
            "--do_train",
            "unsloth",
            "training progress:",
            "/adam/",
            // The line of source that stands above a message whose traceback was cut off.
            "run_backward(",
            // What people write above a log that they paste.
            "训练时",
            "训练的时候",
            "训练到",
            "训练过程",
            "训练报错",
            "微调时",
        ]) || TRAIN_COMMAND.find(line).is_some();
        self.found.infers |= has(&[
            "txt2img",
            "img2img",
            "inference.py",
            "infer.py",
            "predict.py",
            "generate.py",
            "/inference/",
            "\\inference\\",
            "run inference",
            "running inference",
            "mlx_lm",
            "llama-cli",
            "llama-server",
            "xinference",
            "trt-llm]",
            "推理时",
            "推理的时候",
            "推理服务",
            "推理失败",
            "推理报错",
            "推理阶段",
            "进行推理",
        ]);
        if self.found.tool.is_none() {
            self.found.tool = Tool::in_text(line);
        }
    }

    pub fn finish(self) -> Environment {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_and_releases_are_found() {
        let mut reader = Reader::default();
        for line in [
            "Using device cuda:0 (NVIDIA GeForce RTX 3090)",
            "name: Tesla V100-SXM2-16GB major: 7",
            "0: NVIDIA A100-SXM4-80GB",
            "PyTorch version: 2.1.2+cu121",
            "  File \"D:\\work\\train.py\", line 3, in main",
            "NVIDIA Apex is not installed",
        ] {
            reader.note(line);
        }
        let found = reader.finish();
        assert_eq!(
            found.cards,
            [
                "NVIDIA GeForce RTX 3090",
                "Tesla V100-SXM2-16GB",
                "NVIDIA A100-SXM4-80GB"
            ]
        );
        assert_eq!(found.torch.as_deref(), Some("2.1"));
        assert!(found.is_windows);
    }
}

//! Advice about a card's memory.

use super::{Advice, Effect, Trial};
use crate::account::Account;
use crate::finding::Finding;
use crate::kind::Kind;
use crate::reader::Log;

/// The words that commands are made of.
pub struct Words {
    script: String,
    /// The card's name as it is typed; `CARD` where nobody knows it.
    card: String,
    is_windows: bool,
    /// The release has expandable segments.
    has_expandable: bool,
    /// The release has `max_split_size_mb`.
    has_max_split: bool,
    variable: &'static str,
    visible: &'static str,
    backend: &'static str,
}

impl Words {
    pub fn of(finding: &Finding, log: &Log, card: Option<String>) -> Self {
        let traceback = finding.traceback.as_ref();
        let script = traceback.and_then(|traceback| traceback.script());
        let wording = finding.wording.unwrap_or_default();
        let release = log.circumstances.torch.as_deref().map(release_number);
        let is_hip = finding.kind == Kind::HipAllocator;
        // The old layout ended with 2.0; expandable segments began with 2.1.
        let is_old = wording.ends_with("2.0") || wording.ends_with("1.3");
        let is_ancient = wording == "PyTorch 1.0 to 1.3" || wording == "PyTorch 1.4 to 2.0";
        Self {
            script: script.unwrap_or("train.py").to_owned(),
            card: card.unwrap_or_else(|| "CARD".to_owned()),
            is_windows: log.circumstances.is_windows,
            has_expandable: !release.map_or(is_old, |release| release < (2, 1)) && !is_hip,
            has_max_split: !release.map_or(is_ancient, |release| release < (1, 10)),
            variable: if is_hip {
                "PYTORCH_HIP_ALLOC_CONF"
            } else {
                "PYTORCH_CUDA_ALLOC_CONF"
            },
            visible: if is_hip {
                "HIP_VISIBLE_DEVICES"
            } else {
                "CUDA_VISIBLE_DEVICES"
            },
            backend: match finding.kind {
                Kind::XpuAllocator => "xpu",
                Kind::MpsAllocator => "mps",
                _ => "cuda",
            },
        }
    }

    /// Only NVIDIA's cards can be rehearsed on.
    fn tried(&self, advice: Advice, trial: Trial) -> Advice {
        match self.is_nvidia() {
            true => advice.tried_by(trial),
            false => advice.untried("only NVIDIA's cards can be rehearsed on"),
        }
    }

    /// PyTorch calls AMD's cards `cuda`, too.
    fn is_nvidia(&self) -> bool {
        self.backend == "cuda" && self.visible == "CUDA_VISIBLE_DEVICES"
    }

    fn run(&self) -> String {
        format!("python {}", self.script)
    }

    fn with_variable(&self, value: &str) -> String {
        let (variable, run) = (self.variable, self.run());
        match self.is_windows {
            true => format!("set {variable}={value} && {run}"),
            false => format!("{variable}={value} {run}"),
        }
    }

    pub fn fragmentation(&self) -> Vec<Advice> {
        let mut found = Vec::new();
        if self.backend == "xpu" {
            return found;
        }
        if self.has_expandable && !self.is_windows {
            let advice = Advice::new(
                "expandable segments",
                self.with_variable("expandable_segments:True"),
                "free pieces are joined by mapping, so that none is too small",
            );
            found.push(self.tried(advice, Trial::ExpandableSegments));
        }
        if self.has_max_split {
            let advice = Advice::new(
                "a bound for splitting",
                self.with_variable("max_split_size_mb:128"),
                "large blocks are no longer cut up for small requests",
            );
            found.push(self.tried(advice, Trial::MaxSplitSize));
        }
        if !self.has_expandable && self.is_nvidia() {
            found.push(
                Advice::new(
                    "a newer PyTorch",
                    "pip install -U torch",
                    "expandable segments came with 2.1 (on Linux), and end most fragmentation",
                )
                .untried("needs another environment"),
            );
        }
        found
    }

    pub fn smaller_batch(&self) -> Advice {
        let what = "a smaller batch, with gradient accumulation to keep its effect";
        if !self.is_nvidia() {
            let command =
                "DataLoader(data, batch_size=...)   # Trainer: --per_device_train_batch_size";
            let advice = Advice::new(what, command, "activations grow with the batch")
                .with_effect(Effect::Rounding);
            return self.tried(advice, Trial::SmallerBatch);
        }
        Advice::new(
            what,
            format!("ghostgpu max-batch --gpu {} {}", self.card, self.script),
            "activations grow with the batch; `max-batch` finds the largest that fits without the card",
        )
        .with_effect(Effect::Rounding)
        .tried_by(Trial::SmallerBatch)
    }

    pub fn smaller_eval_batch(&self) -> Advice {
        let advice = Advice::new(
            "a smaller batch for evaluation",
            "DataLoader(val_set, batch_size=1)   # Trainer: --per_device_eval_batch_size 1",
            "it does not change results at all, unless batch statistics are used",
        );
        self.tried(advice, Trial::SmallEvaluationBatch)
    }

    pub fn checkpointing(&self) -> Advice {
        let advice = Advice::new(
            "gradient checkpointing",
            "model.gradient_checkpointing_enable()   # or torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)",
            "activations are computed again in backward instead of being kept",
        );
        self.tried(advice, Trial::Checkpointing)
    }

    pub fn half_precision(&self) -> Advice {
        let advice = Advice::new(
            "bfloat16 autocast",
            format!(
                "with torch.autocast(\"{}\", dtype=torch.bfloat16): loss = ...",
                self.backend
            ),
            "most activations take half",
        )
        .with_effect(Effect::Precision);
        self.tried(advice, Trial::Autocast)
    }

    pub fn half_weights(&self) -> Advice {
        let advice = Advice::new(
            "weights in bfloat16",
            "model = AutoModel.from_pretrained(name, torch_dtype=torch.bfloat16)   # or model.to(torch.bfloat16)",
            "half of float32; load on the CPU first, so that no float32 copy lies on the card",
        )
        .with_effect(Effect::Precision);
        self.tried(advice, Trial::Bfloat16Weights)
    }

    pub fn quantised(&self) -> Advice {
        Advice::new(
            "weights in 8 or 4 bits",
            "BitsAndBytesConfig(load_in_4bit=True)   # to run it, or to train adapters (QLoRA)",
            "a quarter or an eighth of float32",
        )
        .with_effect(Effect::Precision)
        .untried("needs bitsandbytes")
    }

    pub fn lean_optimizer(&self) -> Advice {
        let advice = Advice::new(
            "an optimizer with less state",
            "optimizer = torch.optim.Adafactor(model.parameters(), lr=...)   # Trainer: --optim adafactor",
            "a row and a column of state for each matrix, where Adam keeps 8 bytes for each parameter; \
             AdamW8bit of bitsandbytes keeps 2",
        )
        .with_effect(Effect::Training);
        self.tried(advice, Trial::LeanOptimizer)
    }

    pub fn shorter(&self) -> Advice {
        let advice = Advice::new(
            "shorter sequences or smaller images",
            "tokenizer(text, truncation=True, max_length=512)   # or a smaller crop",
            "activations grow with length, attention scores with its square",
        )
        .with_effect(Effect::Training);
        self.tried(advice, Trial::ShorterSamples)
    }

    pub fn larger_card(&self) -> Advice {
        let advice = Advice::new(
            "a card with more memory",
            format!("ghostgpu run --gpu a100-80 {}", self.script),
            "a dry run says beforehand whether it is enough",
        );
        self.tried(advice, Trial::LargerCard)
    }

    pub fn see_processes(&self, finding: &Finding, account: &Account) -> Advice {
        let pids: Vec<String> = finding
            .figures
            .processes
            .iter()
            .filter(|each| Some(each.pid) != account.own_pid_elsewhere)
            .map(|each| each.pid.to_string())
            .collect();
        let command = match (self.visible, pids.as_slice()) {
            ("HIP_VISIBLE_DEVICES", _) => "rocm-smi --showpids".to_owned(),
            (_, []) => "nvidia-smi".to_owned(),
            (_, pids) => format!(
                "ps -o pid,user,etime,cmd -p {}   # and nvidia-smi",
                pids.join(",")
            ),
        };
        Advice::new(
            "see who else is on the card, and end what is left over",
            command,
            "a notebook kernel, a server or a run that never ended keeps its memory",
        )
        .untried("a virtual card has no other processes")
    }

    pub fn empty_card(&self) -> Advice {
        let advice = Advice::new(
            "run it when the card is empty",
            self.run(),
            "without the others, it may fit as it is",
        );
        self.tried(advice, Trial::EmptyCard)
    }

    pub fn other_card(&self) -> Advice {
        Advice::new(
            "another card of the machine",
            format!("{}=1 {}", self.visible, self.run()),
            "if there is one that nobody uses",
        )
        .untried("needs another card of the machine")
    }

    pub fn set_device(&self) -> Advice {
        Advice::new(
            "each rank its own card",
            "torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"]))   # before anything touches CUDA",
            "otherwise every rank opens a context, or loads a checkpoint, on card 0",
        )
        .untried("needs several cards")
    }

    pub fn raise_limit(&self) -> Advice {
        let advice = Advice::new(
            "a higher limit",
            "torch.cuda.set_per_process_memory_fraction(1.0)   # or drop per_process_memory_fraction",
            "the card has more than the process allows itself",
        );
        self.tried(advice, Trial::NoLimit)
    }

    pub fn find_growth(&self) -> Advice {
        Advice::new(
            "find the line that keeps memory",
            format!("ghostgpu run --gpu {} --steps 6 {}", self.card, self.script),
            "a dry run names every line whose memory stays from step to step",
        )
        .untried("it finds a cause, and changes nothing")
    }
}

/// `2.10` is after `2.9`.
fn release_number(text: &str) -> (u32, u32) {
    let mut parts = text.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

pub fn room_for_libraries(finding: &Finding, words: &Words) -> Vec<Advice> {
    let mut found = vec![
        words.tried(
            Advice::new(
                "leave room beside PyTorch's cache",
                "torch.cuda.set_per_process_memory_fraction(0.9)   # right at the start",
                "PyTorch gives its cache back before it passes the limit, and libraries find the rest",
            ),
            Trial::LeaveRoom,
        ),
        words.smaller_batch(),
    ];
    match finding.kind {
        Kind::Nccl => found.push(
            Advice::new(
                "smaller buffers for NCCL",
                "NCCL_BUFFSIZE=1048576 NCCL_MAX_NCHANNELS=4 torchrun ...",
                "each communicator takes buffers for every channel and peer",
            )
            .untried("needs several cards"),
        ),
        Kind::Cublas | Kind::CublasNotInitialized => found.push(
            Advice::new(
                "start cuBLAS before memory is short",
                "torch.cuda.current_blas_handle()   # right after torch.cuda.set_device",
                "the handle is made once, and then it is there",
            )
            .untried("a virtual card never refuses cuBLAS its handle"),
        ),
        Kind::Cudnn | Kind::CudnnNotInitialized | Kind::CudnnNoAlgorithm => {
            let advice = Advice::new(
                "no search for the fastest convolution",
                "torch.backends.cudnn.benchmark = False",
                "the search tries algorithms with large workspaces",
            );
            found.push(words.tried(advice, Trial::NoCudnnBenchmark));
        }
        _ => {}
    }
    if finding.kind.is_uncertain() {
        found.push(
            Advice::new(
                "make sure that it is memory",
                format!("CUDA_LAUNCH_BLOCKING=1 {}", words.run()),
                "an index out of range shows the same text later; then the true line is named",
            )
            .untried("it finds a cause, and changes nothing"),
        );
    }
    found.push(words.empty_card());
    found
}

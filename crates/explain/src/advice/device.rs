//! Advice about a card's memory.

use super::{Advice, Candidate, Effect, FINDS_THE_CAUSE};
use crate::account::Account;
use crate::finding::Finding;
use crate::kind::Kind;
use crate::reader::Log;

/// What the log tells about the user's setup, as it goes into commands.
pub struct Words {
    script: String,
    /// The card's name as it is typed; `CARD` where nobody knows it.
    card: String,
    is_windows: bool,
    /// This PyTorch release has expandable segments.
    has_expandable: bool,
    /// This PyTorch release has `max_split_size_mb`.
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
        let release = log.environment.torch.as_deref().map(release_number);
        let is_hip = finding.kind == Kind::HipAllocator;
        // The old message layout ended with 2.0; expandable segments came with 2.1.
        let is_old = wording.ends_with("2.0") || wording.ends_with("1.3");
        let is_ancient = wording == "PyTorch 1.0 to 1.3" || wording == "PyTorch 1.4 to 2.0";
        Self {
            script: script.unwrap_or("train.py").to_owned(),
            card: card.unwrap_or_else(|| "CARD".to_owned()),
            is_windows: log.environment.is_windows,
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

    /// Marks advice that a rehearsal can check, which needs an NVIDIA card.
    fn rehearsable(&self, advice: Advice, candidate: Candidate) -> Advice {
        match self.is_nvidia() {
            true => advice.rehearsed_as(candidate),
            false => advice.not_rehearsed("only NVIDIA cards can be rehearsed"),
        }
    }

    /// The backend alone does not tell: PyTorch calls AMD cards `cuda` too.
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
                "segments grow in place, so free memory is not stranded in pieces that are too small",
            );
            found.push(self.rehearsable(advice, Candidate::ExpandableSegments));
        }
        if self.has_max_split {
            let advice = Advice::new(
                "a limit on block splitting",
                self.with_variable("max_split_size_mb:128"),
                "large blocks are no longer split to serve small requests",
            );
            found.push(self.rehearsable(advice, Candidate::MaxSplitSize));
        }
        if !self.has_expandable && self.is_nvidia() {
            found.push(
                Advice::new(
                    "a newer PyTorch",
                    "pip install -U torch",
                    "PyTorch 2.1 added expandable segments (Linux), which remove most fragmentation",
                )
                .with_effect(Effect::Rounding)
                .not_rehearsed("needs another environment"),
            );
        }
        found
    }

    pub fn smaller_batch(&self) -> Advice {
        let what = "a smaller batch, with gradient accumulation to keep the effective batch size";
        if !self.is_nvidia() {
            let command =
                "DataLoader(data, batch_size=...)   # Trainer: --per_device_train_batch_size";
            let advice = Advice::new(
                what,
                command,
                "activations grow with the batch size. Batch norm sees the smaller batch",
            )
            .with_effect(Effect::Rounding);
            return self.rehearsable(advice, Candidate::SmallerBatch);
        }
        Advice::new(
            what,
            format!("ghostgpu max-batch --gpu {} {}", self.card, self.script),
            "activations grow with the batch size; `max-batch` finds the largest that fits, without the card. Batch norm sees the smaller batch",
        )
        .with_effect(Effect::Rounding)
        .rehearsed_as(Candidate::SmallerBatch)
    }

    pub fn smaller_eval_batch(&self) -> Advice {
        let advice = Advice::new(
            "a smaller evaluation batch",
            "DataLoader(val_set, batch_size=1)   # Trainer: --per_device_eval_batch_size 1",
            "in eval mode, samples do not influence each other",
        )
        .with_effect(Effect::Rounding);
        self.rehearsable(advice, Candidate::SmallEvaluationBatch)
    }

    pub fn checkpointing(&self) -> Advice {
        let advice = Advice::new(
            "gradient checkpointing",
            "model.gradient_checkpointing_enable()   # or torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)",
            "the backward pass recomputes activations instead of keeping them, at the cost of a second \
             forward pass. Batch norm updates its running statistics twice",
        )
        .with_effect(Effect::Rounding);
        self.rehearsable(advice, Candidate::Checkpointing)
    }

    pub fn half_precision(&self) -> Advice {
        let advice = Advice::new(
            "bfloat16 autocast",
            format!(
                "with torch.autocast(\"{}\", dtype=torch.bfloat16): loss = ...",
                self.backend
            ),
            "most activations take half the memory",
        )
        .with_effect(Effect::Precision);
        self.rehearsable(advice, Candidate::Autocast)
    }

    pub fn half_weights(&self) -> Advice {
        let advice = Advice::new(
            "bfloat16 weights",
            "model = AutoModel.from_pretrained(name, torch_dtype=torch.bfloat16)   # or model.to(torch.bfloat16)",
            "half the size of float32; load on the CPU first, so that no float32 copy reaches the card",
        )
        .with_effect(Effect::Precision);
        self.rehearsable(advice, Candidate::Bfloat16Weights)
    }

    pub fn quantised(&self) -> Advice {
        Advice::new(
            "8-bit or 4-bit weights",
            "BitsAndBytesConfig(load_in_4bit=True)   # for inference, or to train adapters (QLoRA)",
            "a quarter or an eighth of the size of float32",
        )
        .with_effect(Effect::Precision)
        .not_rehearsed("needs bitsandbytes")
    }

    pub fn lean_optimizer(&self) -> Advice {
        let advice = Advice::new(
            "an optimizer with less state",
            "optimizer = torch.optim.Adafactor(model.parameters(), lr=...)   # Trainer: --optim adafactor",
            "Adam keeps 8 bytes of state per parameter, Adafactor one row and one column per matrix, \
             bitsandbytes' AdamW8bit 2 bytes per parameter",
        )
        .with_effect(Effect::Training);
        self.rehearsable(advice, Candidate::LeanOptimizer)
    }

    pub fn shorter(&self) -> Advice {
        let advice = Advice::new(
            "shorter sequences or smaller images",
            "tokenizer(text, truncation=True, max_length=512)   # or a smaller crop",
            "activations grow with the length, attention scores with its square",
        )
        .with_effect(Effect::Training);
        self.rehearsable(advice, Candidate::ShorterSamples)
    }

    pub fn larger_card(&self) -> Advice {
        let advice = Advice::new(
            "a card with more memory",
            format!("ghostgpu run --gpu a100-80 {}", self.script),
            "a rehearsal tells in advance whether it is large enough",
        )
        .with_effect(Effect::Rounding);
        self.rehearsable(advice, Candidate::LargerCard)
    }

    pub fn see_processes(&self, finding: &Finding, account: &Account) -> Advice {
        let pids: Vec<String> = finding
            .figures
            .processes
            .iter()
            .filter(|each| Some(each.pid) != account.own_host_pid)
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
            "find out what else uses the card, and end leftover processes",
            command,
            "an idle notebook kernel, a server or a hung run keeps its memory",
        )
        .not_rehearsed("a virtual card has no other processes")
    }

    pub fn empty_card(&self) -> Advice {
        let advice = Advice::new(
            "the same run on an empty card",
            self.run(),
            "without the other processes it may fit unchanged",
        );
        self.rehearsable(advice, Candidate::EmptyCard)
    }

    pub fn other_card(&self) -> Advice {
        Advice::new(
            "another card in this machine",
            format!("{}=1 {}", self.visible, self.run()),
            "if one is free",
        )
        .not_rehearsed("needs a second card")
    }

    pub fn set_device(&self) -> Advice {
        Advice::new(
            "one card per rank",
            "torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"]))   # before anything touches CUDA",
            "otherwise every rank creates a context, or loads a checkpoint, on card 0",
        )
        .not_rehearsed("needs several cards")
    }

    pub fn raise_limit(&self) -> Advice {
        let advice = Advice::new(
            "a higher limit",
            "torch.cuda.set_per_process_memory_fraction(1.0)   # or drop per_process_memory_fraction",
            "the card has more memory than the process allows itself",
        );
        self.rehearsable(advice, Candidate::NoLimit)
    }

    pub fn find_growth(&self) -> Advice {
        Advice::new(
            "find the line that keeps memory",
            format!("ghostgpu run --gpu {} --steps 6 {}", self.card, self.script),
            "a rehearsal names every line whose memory survives from step to step",
        )
        .not_rehearsed(FINDS_THE_CAUSE)
    }
}

/// Major and minor number: `2.10` comes after `2.9`.
fn release_number(text: &str) -> (u32, u32) {
    let mut parts = text.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

/// Advice for libraries that found no memory outside PyTorch's allocator.
pub fn room_for_libraries(finding: &Finding, words: &Words) -> Vec<Advice> {
    let mut found = vec![
        words.rehearsable(
            Advice::new(
                "a memory limit that leaves room for CUDA libraries",
                "torch.cuda.set_per_process_memory_fraction(0.9)   # first thing in the script",
                "PyTorch frees its cache before it exceeds the limit; libraries get the rest",
            ),
            Candidate::LeaveRoom,
        ),
        words.smaller_batch(),
    ];
    match finding.kind {
        Kind::Nccl => found.push(
            Advice::new(
                "smaller NCCL buffers",
                "NCCL_BUFFSIZE=1048576 NCCL_MAX_NCHANNELS=4 torchrun ...",
                "each communicator allocates buffers for every channel and peer",
            )
            .not_rehearsed("needs several cards"),
        ),
        Kind::Cublas | Kind::CublasNotInitialized => found.push(
            Advice::new(
                "a cuBLAS handle created while memory is free",
                "torch.cuda.current_blas_handle()   # right after torch.cuda.set_device",
                "the handle is created once and then reused",
            )
            .not_rehearsed("a virtual card never refuses cuBLAS its handle"),
        ),
        Kind::Cudnn | Kind::CudnnNotInitialized | Kind::CudnnNoAlgorithm => {
            let advice = Advice::new(
                "no cuDNN benchmarking",
                "torch.backends.cudnn.benchmark = False",
                "benchmarking runs algorithms with large workspaces",
            )
            .with_effect(Effect::Rounding);
            found.push(words.rehearsable(advice, Candidate::NoCudnnBenchmark));
        }
        _ => {}
    }
    if finding.kind.is_uncertain() {
        found.push(
            Advice::new(
                "check that memory is the cause",
                format!("CUDA_LAUNCH_BLOCKING=1 {}", words.run()),
                "an out-of-range index can raise the same error later; this names the line that really failed",
            )
            .not_rehearsed(FINDS_THE_CAUSE),
        );
    }
    found.push(words.empty_card());
    found
}

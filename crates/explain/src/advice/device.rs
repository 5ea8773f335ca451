//! Advice about a card's memory.

use super::{Advice, Advisor, Candidate, Effect};
use crate::account::Account;
use crate::catalogue::Catalogue;
use crate::finding::Finding;
use crate::kind::Kind;
use crate::program::{Purpose, purpose};
use crate::reader::Log;
use crate::said;

/// Cards to try next, and how much memory the present card has at most for each.
const LARGER_CARDS: [(&str, u64); 4] = [
    ("a100-80", 70 << 30),
    ("h200", 120 << 30),
    ("b200", 160 << 30),
    ("b300", 230 << 30),
];

/// What the log tells about the user's setup, as it goes into commands.
pub struct Setup<'a> {
    advisor: Advisor<'a>,
    script: String,
    /// The card's name as it is typed; `CARD` where nobody knows it.
    card: String,
    /// What the message says the card has; nothing where it does not say.
    total_bytes: u64,
    is_windows: bool,
    /// This PyTorch release has expandable segments.
    has_expandable: bool,
    /// This PyTorch release has `torch.autocast`.
    pub has_autocast: bool,
    /// This PyTorch release has `max_split_size_mb`.
    has_max_split: bool,
    variable: &'static str,
    visible: &'static str,
    backend: &'static str,
}

impl<'a> Setup<'a> {
    pub fn of(
        finding: &Finding,
        log: &Log,
        card: Option<String>,
        catalogue: &'a Catalogue,
    ) -> Self {
        let traceback = finding.traceback.as_ref();
        let script = traceback.and_then(|traceback| traceback.script());
        let unnamed = match purpose(finding, log) {
            Purpose::Inference => "script.py",
            _ => "train.py",
        };
        let release = log.environment.torch.as_deref().map(release_number);
        let is_hip = finding.kind == Kind::HipAllocator || log.environment.is_rocm;
        // The old message layout ended with 2.0; expandable segments came with 2.1.
        let is_before = |release| {
            finding
                .wording
                .is_some_and(|wording| wording.is_before(release))
        };
        let is_old = is_before((2, 1));
        let is_ancient = is_old
            && finding
                .wording
                .is_some_and(|wording| wording.first < (1, 8));
        let (variable, visible, backend) = match finding.kind {
            _ if is_hip => ("PYTORCH_HIP_ALLOC_CONF", "HIP_VISIBLE_DEVICES", "cuda"),
            Kind::NpuAllocator => ("PYTORCH_NPU_ALLOC_CONF", "ASCEND_RT_VISIBLE_DEVICES", "npu"),
            Kind::XpuAllocator | Kind::XpuCall => {
                ("PYTORCH_CUDA_ALLOC_CONF", "ZE_AFFINITY_MASK", "xpu")
            }
            Kind::MpsAllocator => ("PYTORCH_CUDA_ALLOC_CONF", "CUDA_VISIBLE_DEVICES", "mps"),
            Kind::OtherCardAllocator => other_card(said::is_mlu(finding)),
            _ => ("PYTORCH_CUDA_ALLOC_CONF", "CUDA_VISIBLE_DEVICES", "cuda"),
        };
        Self {
            advisor: Advisor { catalogue },
            script: script.unwrap_or(unnamed).to_owned(),
            card: card.unwrap_or_else(|| "CARD".to_owned()),
            total_bytes: finding.figures.total.map_or(0, |total| total.bytes),
            is_windows: log.environment.is_windows,
            // Ascend's plug-in repeats an old message, and has had them for long.
            has_expandable: backend == "npu"
                || !release.map_or(is_old, |release| release < (2, 1))
                    && !is_hip
                    && finding.kind != Kind::OtherCardAllocator,
            has_autocast: !release.map_or(is_before((1, 6)), |release| release < (1, 6)),
            has_max_split: finding.kind == Kind::OtherCardAllocator
                || !release.map_or(is_ancient, |release| release < (1, 10)),
            variable,
            visible,
            backend,
        }
    }

    /// Marks advice that a rehearsal can check, which needs an NVIDIA card.
    fn rehearsable(&self, advice: Advice, candidate: Candidate) -> Advice {
        match self.is_nvidia() {
            true => advice.rehearsed_as(candidate),
            false => self.advisor.unrehearsed(advice, "not-nvidia"),
        }
    }

    /// The backend alone does not tell: PyTorch calls AMD cards `cuda` too.
    pub fn is_nvidia(&self) -> bool {
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
            let command = self.with_variable("expandable_segments:True");
            let advice = self.advisor.advise("expandable-segments", command);
            found.push(self.rehearsable(advice, Candidate::ExpandableSegments));
        }
        if self.has_max_split {
            let command = self.with_variable("max_split_size_mb:128");
            let advice = self.advisor.advise("max-split-size", command);
            found.push(self.rehearsable(advice, Candidate::MaxSplitSize));
        }
        if !self.has_expandable && self.is_nvidia() {
            let advice = self
                .advisor
                .advise("newer-pytorch", "pip install -U torch")
                .with_effect(Effect::Rounding);
            found.push(self.advisor.unrehearsed(advice, "not-environment"));
        }
        found
    }

    pub fn smaller_batch(&self) -> Advice {
        let advice = match self.is_nvidia() {
            true => self.advisor.advise(
                "smaller-batch",
                format!("ghostgpu max-batch --gpu {} {}", self.card, self.script),
            ),
            false => self
                .advisor
                .advise("smaller-batch-by-hand", "DataLoader(data, batch_size=...)"),
        };
        self.rehearsable(
            advice.with_effect(Effect::Rounding),
            Candidate::SmallerBatch,
        )
    }

    pub fn smaller_eval_batch(&self) -> Advice {
        let advice = self
            .advisor
            .advise("smaller-eval-batch", "DataLoader(val_set, batch_size=1)")
            .with_effect(Effect::Rounding);
        self.rehearsable(advice, Candidate::SmallEvaluationBatch)
    }

    pub fn checkpointing(&self) -> Advice {
        let advice = self
            .advisor
            .advise("checkpointing", "model.gradient_checkpointing_enable()")
            .with_effect(Effect::Rounding);
        self.rehearsable(advice, Candidate::Checkpointing)
    }

    pub fn half_precision(&self) -> Advice {
        let backend = self.backend;
        let command =
            format!("with torch.autocast(\"{backend}\", dtype=torch.bfloat16): loss = ...");
        let advice = self
            .advisor
            .advise("autocast", command)
            .with_effect(Effect::Precision);
        self.rehearsable(advice, Candidate::Autocast)
    }

    pub fn half_weights(&self) -> Advice {
        let command = "model = AutoModel.from_pretrained(name, torch_dtype=torch.bfloat16)";
        let advice = self
            .advisor
            .advise("half-weights", command)
            .with_effect(Effect::Precision);
        self.rehearsable(advice, Candidate::Bfloat16Weights)
    }

    pub fn quantised(&self) -> Advice {
        let advice = self
            .advisor
            .advise("quantised", "BitsAndBytesConfig(load_in_4bit=True)")
            .with_effect(Effect::Precision);
        self.advisor.unrehearsed(advice, "not-bitsandbytes")
    }

    pub fn lean_optimizer(&self) -> Advice {
        let command = "optimizer = torch.optim.Adafactor(model.parameters(), lr=...)";
        let advice = self
            .advisor
            .advise("lean-optimizer", command)
            .with_effect(Effect::Training);
        self.rehearsable(advice, Candidate::LeanOptimizer)
    }

    pub fn shorter(&self) -> Advice {
        let command = "tokenizer(text, truncation=True, max_length=512)";
        let advice = self
            .advisor
            .advise("shorter-samples", command)
            .with_effect(Effect::Training);
        self.rehearsable(advice, Candidate::ShorterSamples)
    }

    pub fn larger_card(&self) -> Advice {
        let card = LARGER_CARDS
            .iter()
            .find(|(_, most)| self.total_bytes < *most);
        let card = card.map_or("gb300", |(card, _)| *card);
        let command = format!("ghostgpu run --gpu {card} {}", self.script);
        let advice = self
            .advisor
            .advise("larger-card", command)
            .with_effect(Effect::Rounding);
        self.rehearsable(advice, Candidate::LargerCard)
    }

    pub fn see_processes(&self, finding: &Finding, account: &Account) -> Advice {
        let processes = finding.figures.processes.iter();
        let pids: Vec<String> = processes
            .filter(|each| Some(each.pid) != account.own_host_pid)
            .map(|each| each.pid.to_string())
            .collect();
        let (id, command) = match (self.backend, self.visible, pids.as_slice()) {
            ("npu", _, _) => ("npu-see", "npu-smi info".to_owned()),
            ("mlu", _, _) => ("npu-see", "cnmon".to_owned()),
            ("musa", _, _) => ("npu-see", "mthreads-gmi".to_owned()),
            ("xpu", _, _) => ("see-card", "xpu-smi ps".to_owned()),
            (_, "HIP_VISIBLE_DEVICES", _) => ("see-card", "rocm-smi --showpids".to_owned()),
            (_, _, []) => ("see-card", "nvidia-smi".to_owned()),
            (_, _, pids) => (
                "see-processes",
                format!("ps -o pid,user,etime,cmd -p {}", pids.join(",")),
            ),
        };
        let advice = self.advisor.advise(id, command);
        self.advisor.unrehearsed(advice, "not-others")
    }

    pub fn empty_card(&self) -> Advice {
        let advice = self.advisor.advise("empty-card", self.run());
        self.rehearsable(advice, Candidate::EmptyCard)
    }

    pub fn other_card(&self) -> Advice {
        let command = format!("{}=1 {}", self.visible, self.run());
        let advice = self.advisor.advise("other-card", command);
        self.advisor.unrehearsed(advice, "not-second-card")
    }

    pub fn set_device(&self) -> Advice {
        let backend = self.backend;
        let command = format!("torch.{backend}.set_device(int(os.environ[\"LOCAL_RANK\"]))");
        let advice = self.advisor.advise("set-device", command);
        self.advisor.unrehearsed(advice, "not-several-cards")
    }

    /// No more ranks than there are cards.
    pub fn fewer_ranks(&self) -> Advice {
        let command = "torchrun --nproc-per-node $(nvidia-smi -L | wc -l) ...";
        let advice = self.advisor.advise("fewer-ranks", command);
        self.advisor.unrehearsed(advice, "not-several-cards")
    }

    pub fn raise_limit(&self) -> Advice {
        let command = "torch.cuda.set_per_process_memory_fraction(1.0)";
        let advice = self.advisor.advise("raise-limit", command);
        self.rehearsable(advice, Candidate::NoLimit)
    }

    pub fn find_growth(&self) -> Advice {
        let command = format!("ghostgpu run --gpu {} --steps 6 {}", self.card, self.script);
        let advice = self.advisor.advise("find-growth", command);
        self.advisor.unrehearsed(advice, "not-a-change")
    }

    /// For libraries that found no memory outside PyTorch's allocator.
    pub fn room_for_libraries(&self, finding: &Finding) -> Vec<Advice> {
        let room = self.advisor.advise(
            "leave-room",
            "torch.cuda.set_per_process_memory_fraction(0.9)",
        );
        let mut found = vec![
            self.rehearsable(room, Candidate::LeaveRoom),
            self.smaller_batch(),
        ];
        match finding.kind {
            Kind::Nccl => {
                let command = "NCCL_BUFFSIZE=1048576 NCCL_MAX_NCHANNELS=4 torchrun ...";
                let advice = self.advisor.advise("nccl-buffers-smaller", command);
                found.push(self.advisor.unrehearsed(advice, "not-several-cards"));
            }
            Kind::Cublas | Kind::CublasNotInitialized => {
                let advice = self
                    .advisor
                    .advise("early-handle", "torch.cuda.current_blas_handle()");
                found.push(self.advisor.unrehearsed(advice, "not-handle"));
            }
            Kind::Cudnn | Kind::CudnnNotInitialized | Kind::CudnnNoAlgorithm => {
                let advice = self
                    .advisor
                    .advise("no-benchmark", "torch.backends.cudnn.benchmark = False")
                    .with_effect(Effect::Rounding);
                found.push(self.rehearsable(advice, Candidate::NoCudnnBenchmark));
            }
            _ => {}
        }
        if finding.kind.is_uncertain() {
            let command = format!("CUDA_LAUNCH_BLOCKING=1 {}", self.run());
            let advice = self.advisor.advise("check-cause", command);
            found.push(self.advisor.unrehearsed(advice, "not-a-change"));
        }
        found.push(self.empty_card());
        found
    }
}

/// What the plug-in of another maker calls its settings.
fn other_card(is_mlu: bool) -> (&'static str, &'static str, &'static str) {
    match is_mlu {
        true => ("PYTORCH_MLU_ALLOC_CONF", "MLU_VISIBLE_DEVICES", "mlu"),
        false => ("PYTORCH_MUSA_ALLOC_CONF", "MUSA_VISIBLE_DEVICES", "musa"),
    }
}

/// Major and minor number: `2.10` comes after `2.9`.
fn release_number(text: &str) -> (u32, u32) {
    let mut parts = text.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

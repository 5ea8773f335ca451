//! Advice about host memory, and about Windows and WSL, where host memory backs the card's.

use super::{Advice, Advisor, Effect};
use crate::environment::Environment;
use crate::finding::Finding;
use crate::kind::Kind;
use crate::say;

impl Advisor<'_> {
    pub fn host_memory(&self, finding: &Finding, environment: &Environment) -> Vec<Advice> {
        match finding.kind {
            Kind::PageFile => return self.windows_memory(),
            Kind::LlamaCppHost => return self.llama_in_ram(),
            Kind::OllamaMemory => return self.ollama_in_ram(),
            Kind::TensorFlowHost => return self.tensorflow_in_ram(),
            _ => {}
        }
        let mut found = Vec::new();
        match finding.kind {
            Kind::JobLimit => found.push(self.advise("more-ram", "#SBATCH --mem=64G")),
            Kind::HostKillLikely | Kind::DataLoaderKilled => {
                found.push(self.advise("who-killed", "dmesg -T | grep -i -E 'killed process|oom'"))
            }
            Kind::CpuAllocator | Kind::PythonMemory => found.push(
                self.advise("host-chunks", "for part in data.split(1024): ...")
                    .with_effect(Effect::Rounding),
            ),
            _ => {}
        }
        if environment.is_wsl {
            found.push(self.wsl_memory());
        }
        if environment.is_windows {
            found.push(self.larger_page_file());
            found.push(self.windows_workers());
        } else {
            found.push(self.advise(
                "fewer-workers",
                "DataLoader(..., num_workers=2, prefetch_factor=2)",
            ));
        }
        found.push(self.advise(
            "load-once",
            "torch.load(path, map_location=\"cpu\", mmap=True)",
        ));
        found.push(self.advise("arrays", "np.memmap / datasets.load_from_disk(path)"));
        if !environment.is_windows {
            found.push(self.check_ram());
        }
        found
    }

    fn check_ram(&self) -> Advice {
        self.advise("check-ram", "free -g; cat /sys/fs/cgroup/memory.max")
    }

    fn wsl_memory(&self) -> Advice {
        self.advise("wsl-memory", "[wsl2] memory=48GB")
    }

    fn larger_page_file(&self) -> Advice {
        let path = say!(self.catalogue, "page-file-path");
        self.advise("larger-page-file", path)
    }

    fn windows_workers(&self) -> Advice {
        self.advise("windows-workers", "DataLoader(..., num_workers=0)")
    }

    fn windows_memory(&self) -> Vec<Advice> {
        vec![
            self.larger_page_file(),
            self.windows_workers(),
            self.advise("close-windows", "taskmgr"),
        ]
    }

    fn llama_in_ram(&self) -> Vec<Advice> {
        vec![
            self.advise("shorter-context", "llama-server -m MODEL -c 8192 -ub 512")
                .with_effect(Effect::Service),
            self.advise("more-layers", "llama-server -m MODEL -ngl 99")
                .with_effect(Effect::Rounding),
            self.eight_bit_cache(),
            self.lower_quantisation(),
            self.check_ram(),
        ]
    }

    fn ollama_in_ram(&self) -> Vec<Advice> {
        vec![
            self.advise("smaller-tag", "ollama run MODEL:8b-instruct-q4_K_M")
                .with_effect(Effect::Precision),
            self.advise("shorter-context", "ollama run MODEL")
                .with_effect(Effect::Service),
            self.advise("free-ram", "ollama ps; ollama stop OTHER"),
            self.check_ram(),
        ]
    }

    fn tensorflow_in_ram(&self) -> Vec<Advice> {
        vec![
            self.advise("framework-batch", "model.fit(x, y, batch_size=8)")
                .with_effect(Effect::Training),
            self.advise("tf-input", "tf.data.Dataset.from_generator(...).batch(8)"),
            self.advise("tf-on-gpu", "tf.config.list_physical_devices(\"GPU\")"),
            self.check_ram(),
        ]
    }

    pub fn shared_memory(&self) -> Vec<Advice> {
        vec![
            self.advise("larger-shm", "docker run --shm-size=8g ..."),
            self.advise("no-workers", "DataLoader(..., num_workers=0)"),
            self.advise(
                "file-sharing",
                "torch.multiprocessing.set_sharing_strategy(\"file_system\")",
            ),
            self.advise("check-shm", "df -h /dev/shm"),
        ]
    }

    pub fn pinned(&self, finding: &Finding, environment: &Environment) -> Vec<Advice> {
        let is_ggml = finding.text.contains("ggml") || finding.text.contains("of pinned memory");
        if is_ggml {
            return vec![
                self.advise("more-layers", "llama-server -m MODEL -ngl 99")
                    .with_effect(Effect::Rounding),
                self.advise(
                    "no-pinned-llama",
                    "GGML_CUDA_NO_PINNED=1 llama-server -m MODEL",
                ),
                self.check_ram(),
            ];
        }
        let mut found = vec![self.advise("no-pinned", "DataLoader(..., pin_memory=False)")];
        if environment.is_wsl {
            found.push(self.wsl_memory());
        }
        found.push(self.advise("lock-limit", "ulimit -l unlimited"));
        found.push(self.advise(
            "less-offload",
            "DeepSpeed: \"pin_memory\": false in offload_optimizer and offload_param",
        ));
        found
    }

    /// Where the driver refused although memory was free.
    pub fn backing_memory(&self, environment: &Environment) -> Vec<Advice> {
        if environment.is_wsl {
            return vec![self.wsl_memory(), self.advise("page-file", "free -g")];
        }
        match environment.is_windows {
            true => vec![self.larger_page_file()],
            false => vec![self.advise("page-file", "free -g")],
        }
    }

    pub fn find_which_memory(&self) -> Vec<Advice> {
        vec![
            self.advise("look-at-card", "watch -n 1 nvidia-smi"),
            self.advise("look-at-ram", "free -g; dmesg -T | grep -i oom"),
            self.advise("whole-message", "python train.py 2>&1 | tee error.log"),
        ]
    }
}

//! Advice about host memory, and about Windows and WSL, where host memory backs the card's.

use super::{Advice, Advisor, Effect};
use crate::environment::Environment;
use crate::finding::{Finding, LIBRARY};
use crate::kind::Kind;
use crate::program::Purpose;
use crate::said::{self, Limiter};
use crate::say;

/// The kernel names what it ended, and that is no Python; or whoever set the limit runs other programs.
fn is_of_another_program(finding: &Finding) -> bool {
    if said::is_no_host_of_trainings(finding) {
        return true;
    }
    let program = finding.figures.text_named("program");
    // A daemon may name no more than a part of the desktop.
    program.map_or(said::is_early(finding), |program| {
        let program = program.to_ascii_lowercase();
        let may_train = [
            "python",
            "pt_",
            "torchrun",
            "ray::",
            "dataloader",
            "jupyter",
        ];
        !may_train.iter().any(|word| program.starts_with(word))
    })
}

impl Advisor<'_> {
    pub fn host_memory(
        &self,
        finding: &Finding,
        environment: &Environment,
        purpose: Purpose,
    ) -> Vec<Advice> {
        match finding.kind {
            Kind::PageFile => return self.windows_memory(),
            Kind::LlamaCppHost => return self.llama_in_ram(),
            Kind::OllamaMemory => return self.ollama_in_ram(),
            Kind::TensorFlowHost => return self.tensorflow_in_ram(),
            Kind::OtherHost => return self.program_in_ram(finding, environment),
            Kind::WorkersDied => return self.fewer_processes(finding),
            Kind::PythonMemory if said::is_failed_fork(finding) => {
                return self.processes_in_ram(environment);
            }
            Kind::PythonMemory if !finding.mentions_pytorch() => {
                return self.arrays_in_ram(finding, environment);
            }
            Kind::HostKillLikely if said::is_from_macos(finding) => {
                return self.mac_memory(purpose);
            }
            Kind::HostKill | Kind::JobLimit if is_of_another_program(finding) => {
                return self.any_program_in_ram(finding, environment);
            }
            _ => {}
        }
        let mut found = Vec::new();
        match finding.kind {
            Kind::JobLimit => found.push(self.more_ram(finding)),
            Kind::HostKillLikely | Kind::DataLoaderKilled => {
                found.push(self.advise("who-killed", "dmesg -T | grep -i -E 'killed process|oom'"))
            }
            Kind::CpuAllocator if purpose == Purpose::Inference => {}
            Kind::CpuAllocator | Kind::PythonMemory => found.push(
                self.advise("host-chunks", "for part in data.split(1024): ...")
                    .with_effect(Effect::Rounding),
            ),
            _ => {}
        }
        if finding.kind == Kind::JobLimit && !finding.mentions_pytorch() {
            found.extend(self.job_usage(finding));
        }
        if environment.offloads {
            found.push(self.advise(
                "offload-less",
                "\"offload_optimizer\": {\"device\": \"nvme\", \"nvme_path\": \"/local\"}",
            ));
        }
        if environment.is_wsl {
            found.push(self.wsl_memory());
        }
        // A job of any kind.
        let is_any = finding.kind == Kind::JobLimit
            && environment.torch.is_none()
            && !finding.mentions_pytorch();
        if is_any {
            found.push(
                self.advise("host-chunks", "pd.read_csv(path, chunksize=100_000)")
                    .with_effect(Effect::Rounding),
            );
        }
        // Nothing is loaded by workers where nothing is trained.
        if purpose == Purpose::Inference {
            found.extend(self.room_for_models(environment));
            return found;
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

    /// A program that loads models and uses them.
    fn room_for_models(&self, environment: &Environment) -> Vec<Advice> {
        vec![
            match environment.is_windows {
                true => self.larger_page_file(),
                false => self.more_swap(),
            },
            self.advise("smaller-model", "FP16, FP8 or GGUF in place of FP32")
                .with_effect(Effect::Precision),
            match environment.is_windows {
                true => self.advise("close-windows", "taskmgr"),
                false => self.advise("close-programs-host", "top -o %MEM"),
            },
        ]
    }

    fn mac_memory(&self, purpose: Purpose) -> Vec<Advice> {
        let smaller = match purpose {
            Purpose::Training => self
                .advise("smaller-batch-by-hand", "DataLoader(data, batch_size=...)")
                .with_effect(Effect::Rounding),
            _ => self
                .advise("smaller-model", "4-bit in place of 8-bit")
                .with_effect(Effect::Precision),
        };
        vec![
            self.advise(
                "who-killed-mac",
                "log show --last 1h --predicate 'eventMessage CONTAINS \"memorystatus\"'",
            ),
            smaller,
            self.close_programs(),
        ]
    }

    /// Whoever was ended is no training: nothing is known of it but its name.
    fn any_program_in_ram(&self, finding: &Finding, environment: &Environment) -> Vec<Advice> {
        let mut found = Vec::new();
        if finding.kind == Kind::JobLimit {
            found.push(self.more_ram(finding));
            found.push(
                self.advise("host-chunks", "chunksize=100_000")
                    .with_effect(Effect::Rounding),
            );
            if said::names_cgroup(finding) {
                found.push(self.check_ram());
            }
            return found;
        }
        if environment.is_wsl {
            found.push(self.wsl_memory());
        }
        found.push(self.advise("close-programs-host", "top -o %MEM"));
        found.push(self.more_swap());
        found.push(self.check_ram());
        found
    }

    /// No room for another process: a fork needs as much as its parent has, unless the kernel lends it.
    fn processes_in_ram(&self, environment: &Environment) -> Vec<Advice> {
        let mut found = vec![
            self.advise(
                "fewer-workers",
                "DataLoader(..., num_workers=2, prefetch_factor=2)",
            ),
            self.advise("overcommit", "sudo sysctl vm.overcommit_memory=1"),
        ];
        if environment.is_wsl {
            found.push(self.wsl_memory());
        }
        found.push(self.more_swap());
        found.push(self.check_ram());
        found
    }

    fn more_swap(&self) -> Advice {
        self.advise(
            "more-swap",
            "sudo fallocate -l 16G /swapfile && sudo chmod 600 /swapfile && sudo mkswap /swapfile && sudo swapon /swapfile",
        )
    }

    /// More RAM, as whoever set the limit calls it.
    fn more_ram(&self, finding: &Finding) -> Advice {
        let command = match said::limiter(finding) {
            Limiter::Kubernetes => "resources: {limits: {memory: 64Gi}}",
            Limiter::Ray => "@ray.remote(memory=64 * 2**30)",
            Limiter::Pbs => "#PBS -l mem=64gb",
            Limiter::Lsf => "#BSUB -M 64GB",
            Limiter::Systemd => "systemctl set-property UNIT MemoryMax=64G",
            Limiter::Yarn => "spark.executor.memoryOverhead=4g",
            Limiter::Lambda => {
                "aws lambda update-function-configuration --function-name NAME --memory-size 10240"
            }
            Limiter::Heroku => "heroku ps:type performance-l",
            Limiter::HostedNotebook => {
                return self.advise("larger-runtime", "Runtime > Change runtime type > High-RAM");
            }
            Limiter::Program => return self.advise("less-data", "del unused; gc.collect()"),
            Limiter::Unknown => "#SBATCH --mem=64G",
        };
        self.advise("more-ram", command)
    }

    /// How much a job used, where whoever limits it tells.
    fn job_usage(&self, finding: &Finding) -> Option<Advice> {
        let command = match said::limiter(finding) {
            Limiter::Kubernetes => "kubectl describe pod POD; kubectl top pod POD",
            _ if said::is_like_slurm(finding) => {
                "seff JOB; sacct -j JOB --format=JobID,MaxRSS,ReqMem"
            }
            _ => return None,
        };
        Some(self.advise("job-usage", command))
    }

    /// Worker processes of libraries other than PyTorch.
    fn fewer_processes(&self, finding: &Finding) -> Vec<Advice> {
        let command = match finding.figures.text_named(LIBRARY) {
            Some("nnU-Net") => {
                "nnUNet_n_proc_DA=4 nnUNetv2_train ...; nnUNetv2_predict -npp 1 -nps 1 ..."
            }
            Some("joblib") => "Parallel(n_jobs=2)",
            Some("Dask") => "LocalCluster(n_workers=2, memory_limit=\"16GB\")",
            Some("datasets") => "dataset.map(f, num_proc=1, writer_batch_size=100)",
            _ => "ProcessPoolExecutor(max_workers=2)",
        };
        vec![
            self.advise("fewer-processes", command),
            self.advise("who-killed", "dmesg -T | grep -i -E 'killed process|oom'"),
            self.check_ram(),
            self.advise("first-error", "grep -n -m 1 -i error error.log"),
        ]
    }

    /// A program or runtime that is not Python.
    fn program_in_ram(&self, finding: &Finding, environment: &Environment) -> Vec<Advice> {
        let own = match finding.figures.text_named(LIBRARY) {
            Some("the compiler") => self.advise("fewer-compilers", "MAX_JOBS=2 pip install ..."),
            Some("Java") => self.advise(
                "larger-heap",
                "spark-submit --driver-memory 16g --executor-memory 16g",
            ),
            Some("the JVM") => self.advise("smaller-heap", "java -Xmx4g -Xss512k ..."),
            Some("Node.js") => self.advise("larger-heap", "NODE_OPTIONS=--max-old-space-size=8192"),
            Some("Level Zero" | "Vulkan" | "OpenCL" | "ncnn") => {
                self.advise("less-at-once", "batch_size=1")
            }
            Some("LM Studio") => self
                .advise(
                    "lm-studio-lighter",
                    "lms load MODEL --context-length 8192 --gpu 0.5",
                )
                .with_effect(Effect::Service),
            Some("PaddlePaddle") => self
                .advise(
                    "paddle-cpu",
                    "PaddleOCR(det_limit_side_len=960, cpu_threads=4, enable_mkldnn=False)",
                )
                .with_effect(Effect::Service),
            Some("OpenCV") => self
                .advise(
                    "smaller-image-cpu",
                    "cv2.imread(path, cv2.IMREAD_REDUCED_COLOR_2)",
                )
                .with_effect(Effect::Service),
            Some("ONNX Runtime") => {
                self.advise("onnx-cpu-arena", "options.enable_cpu_mem_arena = False")
            }
            Some(_) => self.advise("host-chunks", "chunksize=100_000"),
            None => self.advise("close-programs-host", "top -o %MEM"),
        };
        let mut found = vec![own];
        match environment.is_windows {
            true => found.push(self.larger_page_file()),
            false => found.push(self.more_swap()),
        }
        found.push(self.check_ram());
        found.push(self.advise("close-programs-host", "top -o %MEM"));
        found
    }

    /// NumPy and pandas, with no PyTorch in sight.
    fn arrays_in_ram(&self, finding: &Finding, environment: &Environment) -> Vec<Advice> {
        let type_name = finding.figures.text_named("type");
        let smaller = match type_name {
            Some("float64") | None => Some("np.float32"),
            Some("float32") => Some("np.float16"),
            Some("complex128") => Some("np.complex64"),
            Some("int64" | "uint64") => Some("np.int32"),
            // Whatever is smaller may not hold the values.
            Some(_) => None,
        };
        let type_name = type_name.unwrap_or("float32");
        let mut found = vec![
            self.advise("host-chunks", "for part in np.array_split(data, 8): ...")
                .with_effect(Effect::Rounding),
        ];
        found.extend(smaller.map(|smaller| {
            self.advise("smaller-type", format!("array.astype({smaller})"))
                .with_effect(Effect::Precision)
        }));
        found.push(self.advise(
            "on-disk",
            format!("np.memmap(path, dtype=\"{type_name}\", mode=\"r\", shape=shape)"),
        ));
        match environment.is_windows {
            true => found.push(self.larger_page_file()),
            false => found.push(self.check_ram()),
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

    /// Ray's objects, which are too large for its share of the machine.
    pub fn object_store(&self) -> Vec<Advice> {
        vec![
            self.advise("larger-store", "ray.init(object_store_memory=32 * 2**30)"),
            self.advise("see-store", "ray memory --stats-only"),
            self.advise("larger-shm", "docker run --shm-size=8g ..."),
            self.advise("check-shm", "df -h /dev/shm"),
        ]
    }

    pub fn shared_memory(&self, is_nccl: bool) -> Vec<Advice> {
        if is_nccl {
            return vec![
                self.advise("larger-shm", "docker run --shm-size=8g ..."),
                self.advise("leftover-shm", "rm /dev/shm/nccl-*"),
                self.advise("no-nccl-shm", "NCCL_SHM_DISABLE=1 torchrun ..."),
                self.advise("check-shm", "df -h /dev/shm"),
            ];
        }
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
        if said::is_pinned_by_ggml(finding) {
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
    pub fn backing_memory(&self, finding: &Finding, environment: &Environment) -> Vec<Advice> {
        if finding.kind == Kind::HipAllocator || environment.is_rocm {
            return vec![
                self.advise(
                    "other-rocm",
                    "pip install -U torch --index-url https://download.pytorch.org/whl/rocm6.4",
                )
                .with_effect(Effect::Rounding),
                self.advise("page-file", "free -g"),
            ];
        }
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

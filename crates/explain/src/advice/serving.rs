//! Advice about servers, JAX and TensorFlow, Macs and kernels.

use super::{Advice, Advisor, Effect};
use crate::finding::{Finding, LIBRARY};
use crate::kind::Kind;
use crate::program::Purpose;
use crate::said;

impl Advisor<'_> {
    /// A server whose KV cache does not fit.
    pub fn cache(&self, finding: &Finding) -> Vec<Advice> {
        match finding.kind {
            Kind::SglangNoCache => return self.sglang(true),
            Kind::TgiWarmup => return self.tgi(),
            _ => {}
        }
        let fits = finding.figures.count_named("length that fits");
        let mut found = Vec::new();
        if finding.kind == Kind::VllmSampler {
            // What the cache takes is missing for the sampler: a larger share makes it worse.
            found.push(self.fewer_sequences());
            found.push(self.advise(
                "smaller-share-serving",
                "vllm serve MODEL --gpu-memory-utilization 0.8",
            ));
        } else {
            let (id, length) = match fits {
                Some(fits) => ("shorter-sequence-known", fits.to_string()),
                None => ("shorter-sequence", "8192".to_owned()),
            };
            let command = format!("vllm serve MODEL --max-model-len {length}");
            found.push(self.advise(id, command).with_effect(Effect::Service));
            found.push(self.advise(
                "larger-share",
                "vllm serve MODEL --gpu-memory-utilization 0.95",
            ));
            if finding.kind == Kind::VllmNoCache {
                found.push(self.fewer_sequences());
            }
        }
        found.extend(self.less_for_vllm());
        found
    }

    fn fewer_sequences(&self) -> Advice {
        let command = "vllm serve MODEL --max-num-seqs 64 --max-num-batched-tokens 4096";
        self.advise("fewer-sequences", command)
    }

    fn less_for_vllm(&self) -> Vec<Advice> {
        vec![
            self.advise("no-graphs", "vllm serve MODEL --enforce-eager"),
            self.advise("small-cache", "vllm serve MODEL --kv-cache-dtype fp8")
                .with_effect(Effect::Precision),
            self.advise("several-cards", "vllm serve MODEL --tensor-parallel-size 2")
                .with_effect(Effect::Rounding),
        ]
    }

    /// PyTorch ran out of memory inside vLLM: the cache took too much.
    pub fn vllm(&self) -> Vec<Advice> {
        let smaller = "vllm serve MODEL --gpu-memory-utilization 0.8";
        let mut found = vec![
            self.advise("smaller-share-serving", smaller),
            self.fewer_sequences(),
            self.advise("shorter-sequence", "vllm serve MODEL --max-model-len 8192")
                .with_effect(Effect::Service),
        ];
        found.extend(self.less_for_vllm());
        found
    }

    /// vLLM's weights alone are too large: its share of the card changes nothing.
    pub fn vllm_weights(&self) -> Vec<Advice> {
        vec![
            self.advise("several-cards", "vllm serve MODEL --tensor-parallel-size 2")
                .with_effect(Effect::Rounding),
            self.advise("server-quantised", "vllm serve MODEL --quantization fp8")
                .with_effect(Effect::Precision),
            self.advise("server-offload", "vllm serve MODEL --cpu-offload-gb 8"),
            self.advise("smaller-model", "vllm serve SMALLER")
                .with_effect(Effect::Precision),
        ]
    }

    /// The same for SGLang.
    pub fn sglang_weights(&self) -> Vec<Advice> {
        let serve = "python -m sglang.launch_server --model-path MODEL";
        vec![
            self.advise("several-cards", format!("{serve} --tp 2"))
                .with_effect(Effect::Rounding),
            self.advise("server-quantised", format!("{serve} --quantization fp8"))
                .with_effect(Effect::Precision),
            self.advise("server-offload", format!("{serve} --cpu-offload-gb 8")),
            self.advise("smaller-model", "--model-path SMALLER")
                .with_effect(Effect::Precision),
        ]
    }

    /// FlashInfer's scratch space has a size of its own, beside the cache.
    pub fn flashinfer_workspace(&self) -> Vec<Advice> {
        let serve = "python -m sglang.launch_server --model-path MODEL";
        vec![
            self.advise(
                "flashinfer-workspace",
                format!("SGLANG_FLASHINFER_WORKSPACE_SIZE=1073741824 {serve}"),
            ),
            self.advise(
                "sglang-chunks",
                format!("{serve} --chunked-prefill-size 2048 --max-running-requests 64"),
            ),
        ]
    }

    /// whisper.cpp, which has no context and no layers to choose.
    pub fn whisper_cpp(&self) -> Vec<Advice> {
        vec![
            self.advise(
                "whisper-smaller",
                "whisper-cli -m ggml-medium.bin -f audio.wav",
            )
            .with_effect(Effect::Precision),
            self.advise(
                "whisper-quantised",
                "whisper-cli -m ggml-large-v3-turbo-q5_0.bin -f audio.wav",
            )
            .with_effect(Effect::Precision),
            self.advise("whisper-cpu", "whisper-cli --no-gpu -m MODEL -f audio.wav"),
        ]
    }

    /// SGLang: at startup its share may be too small for the weights; later, too large for the activations.
    pub fn sglang(&self, at_startup: bool) -> Vec<Advice> {
        let serve = "python -m sglang.launch_server --model-path MODEL";
        let share = match at_startup {
            true => self.advise(
                "sglang-larger-share",
                format!("{serve} --mem-fraction-static 0.93"),
            ),
            false => self.advise(
                "smaller-share-serving",
                format!("{serve} --mem-fraction-static 0.75"),
            ),
        };
        vec![
            share,
            self.advise(
                "sglang-chunks",
                format!("{serve} --chunked-prefill-size 2048 --max-running-requests 64"),
            ),
            self.advise("several-cards", format!("{serve} --tp 2"))
                .with_effect(Effect::Rounding),
            self.advise(
                "small-cache",
                format!("{serve} --quantization fp8 --kv-cache-dtype fp8_e5m2"),
            )
            .with_effect(Effect::Precision),
        ]
    }

    pub fn tgi(&self) -> Vec<Advice> {
        let serve = "text-generation-launcher --model-id MODEL";
        vec![
            self.advise(
                "tgi-tokens-fewer",
                format!("{serve} --max-batch-prefill-tokens 2048 --max-batch-total-tokens 8192"),
            )
            .with_effect(Effect::Service),
            self.advise(
                "tgi-quantise",
                format!("{serve} --quantize bitsandbytes-nf4"),
            )
            .with_effect(Effect::Precision),
            self.advise("several-shards", format!("{serve} --num-shard 2"))
                .with_effect(Effect::Rounding),
        ]
    }

    pub fn llama_cpp(&self, is_scratch: bool, is_jetson: bool) -> Vec<Advice> {
        let mut found = vec![
            self.advise("fewer-layers", "llama-server -m MODEL -ngl 20")
                .with_effect(Effect::Rounding),
            self.advise("shorter-context", "llama-server -m MODEL -c 8192")
                .with_effect(Effect::Service),
            self.eight_bit_cache(),
            self.lower_quantisation(),
            self.advise("tensor-split", "llama-server -m MODEL --tensor-split 3,1"),
        ];
        if is_scratch {
            let batch = "llama-server -m MODEL -b 512 -ub 256 --flash-attn on";
            found.insert(
                0,
                self.advise("llama-batch", batch)
                    .with_effect(Effect::Rounding),
            );
        }
        if is_jetson {
            found.splice(0..0, self.jetson());
        }
        found
    }

    /// A board whose CPU and GPU share one memory.
    pub fn jetson(&self) -> Vec<Advice> {
        vec![
            self.advise("jetson-desktop", "sudo systemctl isolate multi-user.target"),
            self.advise("jetson-see", "sudo tegrastats"),
            self.advise("smaller-model", "FP16 or INT8, batch 1")
                .with_effect(Effect::Precision),
        ]
    }

    /// A program on a Mac, which says only that Metal had no more.
    pub fn metal(&self, finding: &Finding) -> Vec<Advice> {
        let mut found = vec![self.close_programs()];
        found.extend(match finding.figures.text_named(LIBRARY) {
            Some("MLX") => vec![
                self.advise(
                    "mlx-chunk",
                    "mlx_lm.generate --model MODEL --prefill-step-size 512",
                )
                .with_effect(Effect::Rounding),
                self.advise("smaller-model", "4-bit in place of 8-bit")
                    .with_effect(Effect::Precision),
            ],
            Some(_) => vec![
                self.advise("shorter-context", "llama-server -m MODEL -c 8192 -ub 256")
                    .with_effect(Effect::Service),
                self.advise("smaller-model", "Q4_K_M instead of Q8_0")
                    .with_effect(Effect::Precision),
            ],
            None => vec![
                self.advise("less-at-once", "sudo footprint -p PROGRAM")
                    .with_effect(Effect::Service),
            ],
        });
        found.push(self.advise("mac-share", "sudo sysctl iogpu.wired_limit_mb=12288"));
        found
    }

    /// An Intel GPU that refused although it was not full.
    pub fn intel_limits(&self) -> Vec<Advice> {
        vec![
            self.advise(
                "intel-relaxed",
                "UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS=1 python script.py",
            ),
            self.advise("intel-bar", "BIOS: Resizable BAR"),
        ]
    }

    /// TensorFlow believes that the card is far larger than any.
    pub fn tensorflow_on_rocm(&self) -> Vec<Advice> {
        vec![
            self.advise("tf-limit", "tf.config.set_logical_device_configuration(gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=8192)])"),
            self.advise(
                "tf-growth",
                "TF_FORCE_GPU_ALLOW_GROWTH=true python train.py",
            ),
            self.advise("tf-matching", "pip install tensorflow-rocm"),
        ]
    }

    pub fn eight_bit_cache(&self) -> Advice {
        let command =
            "llama-server -m MODEL --flash-attn on --cache-type-k q8_0 --cache-type-v q8_0";
        self.advise("eight-bit-cache", command)
            .with_effect(Effect::Precision)
    }

    pub fn lower_quantisation(&self) -> Advice {
        let command = "llama-quantize model-f16.gguf model-q4.gguf Q4_K_M";
        self.advise("lower-quantisation", command)
            .with_effect(Effect::Precision)
    }

    pub fn utilization_down(&self, finding: &Finding) -> Advice {
        let share = match (finding.figures.free, finding.figures.total) {
            (Some(free), Some(total)) if total.bytes > 0 => {
                let percent = (free.bytes.saturating_mul(97) / total.bytes).min(95);
                format!("0.{percent:02}")
            }
            _ => "0.7".to_owned(),
        };
        let command = format!("vllm serve MODEL --gpu-memory-utilization {share}");
        self.advise("smaller-share", command)
    }

    pub fn jax(&self, finding: &Finding, purpose: Purpose) -> Vec<Advice> {
        let batch = match purpose {
            Purpose::Inference => self
                .advise("few-inputs", "for x in inputs: apply(params, x[None])")
                .with_effect(Effect::Rounding),
            _ => self
                .advise("framework-batch", "python train.py --batch-size 8")
                .with_effect(Effect::Training),
        };
        // Nothing is kept for a backward pass where nothing is trained.
        let remat = (purpose != Purpose::Inference).then(|| {
            self.advise("jax-remat", "jax.checkpoint(layer)")
                .with_effect(Effect::Rounding)
        });
        if finding.is_on_tpu() {
            let shard = self.advise(
                "jax-shard",
                "jax.device_put(params, NamedSharding(mesh, P(\"data\")))",
            );
            let shard = shard.with_effect(Effect::Rounding);
            return [Some(batch), remat, Some(shard)]
                .into_iter()
                .flatten()
                .collect();
        }
        let mut found = vec![
            batch,
            self.advise(
                "jax-fraction",
                "XLA_PYTHON_CLIENT_MEM_FRACTION=.95 python train.py",
            ),
            self.advise(
                "jax-unified",
                "TF_FORCE_UNIFIED_MEMORY=1 XLA_PYTHON_CLIENT_MEM_FRACTION=4.0 python script.py",
            ),
            self.advise(
                "jax-no-pool",
                "XLA_PYTHON_CLIENT_PREALLOCATE=false python train.py",
            ),
        ];
        found.extend(remat);
        found
    }

    pub fn tensorflow(&self) -> Vec<Advice> {
        vec![
            self.advise("framework-batch", "python train.py --batch-size 8")
                .with_effect(Effect::Training),
            self.advise(
                "tf-growth",
                "TF_FORCE_GPU_ALLOW_GROWTH=true python train.py",
            ),
            self.advise(
                "tf-async",
                "TF_GPU_ALLOCATOR=cuda_malloc_async python train.py",
            ),
            self.advise(
                "tf-mixed",
                "tf.keras.mixed_precision.set_global_policy(\"mixed_float16\")",
            )
            .with_effect(Effect::Precision),
        ]
    }

    pub fn smaller_kernel(&self, finding: &Finding) -> Vec<Advice> {
        if said::is_tpu_kernel(finding) {
            return vec![
                self.advise("smaller-kernel", "pl.BlockSpec((128, 128), ...)")
                    .with_effect(Effect::Rounding),
                self.advise(
                    "tpu-vmem",
                    "LIBTPU_INIT_ARGS=--xla_tpu_scoped_vmem_limit_kib=65536 python script.py",
                ),
            ];
        }
        let blocks = "triton.Config({\"BLOCK_M\": 64, \"BLOCK_N\": 64}, num_stages=2)";
        vec![
            self.advise("smaller-kernel", blocks)
                .with_effect(Effect::Rounding),
            self.advise("newer-kernel", "pip install -U triton"),
        ]
    }

    pub fn mps_watermark(&self) -> Advice {
        let command = "export PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0";
        self.advise("mps-watermark", command)
    }

    pub fn close_programs(&self) -> Advice {
        self.advise("close-programs", "sudo footprint -p python")
    }

    pub fn mlx(&self) -> Vec<Advice> {
        vec![
            self.advise(
                "mlx-chunk",
                "mlx_lm.generate --model MODEL --prefill-step-size 512",
            )
            .with_effect(Effect::Rounding),
            self.advise("mlx-quantised", "mlx_lm.convert --hf-path MODEL -q")
                .with_effect(Effect::Precision),
            self.close_programs(),
        ]
    }
}

//! Advice for frameworks and libraries other than PyTorch, each in its own words.

use super::{Advice, Advisor, Effect};
use crate::finding::{Finding, LIBRARY};
use crate::kind::Kind;

/// Libraries that share a card with PyTorch, which keeps a cache.
pub fn is_beside_pytorch(finding: &Finding) -> bool {
    let library = finding.figures.text_named(LIBRARY);
    matches!(
        library,
        Some("ONNX Runtime" | "FAISS" | "RAPIDS" | "TensorRT")
    )
}

impl Advisor<'_> {
    pub fn other_library(&self, finding: &Finding) -> Vec<Advice> {
        let library = match finding.kind {
            Kind::CuPy => "CuPy",
            Kind::Paddle => "PaddlePaddle",
            _ => finding.figures.text_named(LIBRARY).unwrap_or_default(),
        };
        let training = |id, command: &str| self.advise(id, command).with_effect(Effect::Training);
        let precision = |id, command: &str| self.advise(id, command).with_effect(Effect::Precision);
        let rounding = |id, command: &str| self.advise(id, command).with_effect(Effect::Rounding);
        let service = |id, command: &str| self.advise(id, command).with_effect(Effect::Service);
        let mut found = match library {
            "Caffe" => vec![
                rounding("caffe-batch", "batch_size: 4   iter_size: 8"),
                service("caffe-image", "crop_size: 224"),
            ],
            "darknet" => vec![
                rounding("darknet-subdivisions", "subdivisions=32"),
                training("darknet-size", "width=416 height=416 random=0"),
            ],
            "CNTK" => vec![training("cntk-minibatch", "minibatch_size = 16")],
            "MXNet" => vec![
                training(
                    "mxnet-mirror",
                    "MXNET_BACKWARD_DO_MIRROR=1 python train.py --batch-size 8",
                ),
                self.advise(
                    "mxnet-pool",
                    "MXNET_GPU_MEM_POOL_TYPE=Round python train.py",
                ),
            ],
            "Theano" => vec![training(
                "theano-gc",
                "THEANO_FLAGS=allow_gc=True,gpuarray.preallocate=0 python train.py --batch-size 8",
            )],
            "Torch7" => vec![training("torch7-batch", "th train.lua -batchSize 8")],
            "CTranslate2" => vec![
                precision("ct2-int8", "compute_type=\"int8_float16\""),
                precision(
                    "ct2-smaller",
                    "WhisperModel(\"medium\"); beam_size=1; batch_size=1",
                ),
            ],
            "LMDeploy" => vec![
                self.advise(
                    "lmdeploy-cache",
                    "lmdeploy serve api_server MODEL --cache-max-entry-count 0.4",
                ),
                service(
                    "lmdeploy-length",
                    "lmdeploy serve api_server MODEL --session-len 8192",
                ),
                precision(
                    "small-cache",
                    "lmdeploy serve api_server MODEL --quant-policy 8",
                ),
            ],
            "TensorRT-LLM" => vec![
                service(
                    "trtllm-cache",
                    "kv_cache_free_gpu_mem_fraction: 0.7   max_batch_size: 16",
                ),
                service(
                    "trtllm-build",
                    "trtllm-build --max_num_tokens 8192 --max_batch_size 16",
                ),
            ],
            "XGBoost" => vec![
                precision("xgb-quantile", "xgb.QuantileDMatrix(X, y)"),
                self.advise("xgb-external", "xgb.ExtMemQuantileDMatrix(iterator)"),
            ],
            "Numba" => vec![
                self.advise(
                    "numba-free",
                    "del array; cuda.current_context().deallocations.clear()",
                ),
                rounding(
                    "in-chunks",
                    "for part in np.array_split(data, 8): cuda.to_device(part)",
                ),
            ],
            "CuPy" => vec![
                self.advise(
                    "cupy-free",
                    "cupy.get_default_memory_pool().free_all_blocks()",
                ),
                rounding("in-chunks", "for part in cupy.array_split(data, 8): ..."),
            ],
            "PaddlePaddle" => vec![
                training(
                    "paddle-flags",
                    "FLAGS_allocator_strategy=auto_growth python train.py --batch_size 8",
                ),
                rounding(
                    "paddle-recompute",
                    "paddle.distributed.fleet.utils.recompute(layer, x)",
                ),
            ],
            "DirectML" => vec![training("dml-batch", "batch_size=4")],
            "CUDA.jl" => vec![
                self.advise("julia-reclaim", "GC.gc(); CUDA.reclaim()"),
                rounding(
                    "in-chunks",
                    "for part in Iterators.partition(1:n, 1024) ... end",
                ),
            ],
            "MindSpore" => vec![training(
                "mindspore-memory",
                "mindspore.set_context(max_device_memory=\"30GB\")",
            )],
            "OneFlow" => vec![training("oneflow-batch", "python train.py --batch-size 8")],
            "tinygrad" => vec![precision("tinygrad-smaller", "--size 1B --quantize int8")],
            _ => Vec::new(),
        };
        found.extend(self.who_else(library));
        if found.is_empty() {
            found.push(training("framework-batch", "batch size: 8"));
        }
        found
    }

    /// Who else uses the device, where there is a command that tells.
    fn who_else(&self, library: &str) -> Option<Advice> {
        match library {
            "MindSpore" | "Ascend" => Some(self.advise("npu-see", "npu-smi info")),
            "DirectML" => None,
            _ => Some(self.advise("see-card", "nvidia-smi")),
        }
    }

    /// Room for a library that shares the card with PyTorch.
    pub fn beside_pytorch(&self, finding: &Finding) -> Vec<Advice> {
        let own = match finding.figures.text_named(LIBRARY) {
            Some("ONNX Runtime") => self.advise(
                "onnx-arena",
                "(\"CUDAExecutionProvider\", {\"arena_extend_strategy\": \"kSameAsRequested\", \"cudnn_conv_use_max_workspace\": \"0\"})",
            ),
            Some("FAISS") => self
                .advise(
                    "faiss-temp",
                    "res.setTempMemory(256 << 20); options = faiss.GpuClonerOptions(); options.useFloat16 = True",
                )
                .with_effect(Effect::Precision),
            Some("RAPIDS") => self.advise("rmm-managed", "rmm.reinitialize(managed_memory=True)"),
            _ => self.advise(
                "trt-workspace",
                "trtexec --onnx=model.onnx --memPoolSize=workspace:1024",
            ),
        };
        vec![
            self.advise("framework-batch", "batch size: 8")
                .with_effect(Effect::Training),
            own,
            self.advise("empty-cache-for-others", "torch.cuda.empty_cache()"),
            self.advise(
                "limit-for-pytorch",
                "torch.cuda.set_per_process_memory_fraction(0.7)",
            ),
        ]
    }
}

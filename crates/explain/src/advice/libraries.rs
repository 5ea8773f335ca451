//! Advice for frameworks and libraries other than PyTorch, each in its own words.

use super::{Advice, Advisor, Effect};
use crate::finding::{Finding, LIBRARY};
use crate::kind::Kind;
use crate::program::Purpose;
use crate::said::{self, Chip};

/// Libraries that share a card with PyTorch, which keeps a cache.
pub fn is_beside_pytorch(finding: &Finding) -> bool {
    let library = finding.figures.text_named(LIBRARY);
    matches!(
        library,
        Some("ONNX Runtime" | "FAISS" | "RAPIDS" | "TensorRT")
    )
}

/// Shows the card's memory while settings of the program are tried.
const WATCH: &str = "nvidia-smi --query-gpu=memory.used --format=csv -l 1";
const WATCH_AMD: &str = "watch -n 1 rocm-smi --showmeminfo vram";
/// The same for cards of any make.
const WATCH_ANY: &str = "nvtop";

/// What shows who uses a chip.
fn see_chip(chip: Chip) -> &'static str {
    match chip {
        Chip::Xpu => "xpu_smi",
        Chip::Npu => "npu-smi info",
        Chip::Mlu => "cnmon",
        Chip::Dcu => "rocm-smi --showpids",
    }
}

impl Advisor<'_> {
    pub fn other_library(&self, finding: &Finding, purpose: Purpose) -> Vec<Advice> {
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
            "FlashInfer" => self.flashinfer_workspace(),
            "CatBoost" => vec![
                self.advise("catboost-part", "gpu_ram_part=0.9, devices=\"0\""),
                training(
                    "catboost-smaller",
                    "depth=6, border_count=32, max_ctr_complexity=1",
                ),
                self.advise("catboost-cpu", "task_type=\"CPU\""),
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
            "PaddlePaddle" if purpose == Purpose::Training => vec![
                training(
                    "paddle-flags",
                    "FLAGS_allocator_strategy=auto_growth python train.py --batch_size 8",
                ),
                rounding(
                    "paddle-recompute",
                    "paddle.distributed.fleet.utils.recompute(layer, x)",
                ),
            ],
            "PaddlePaddle" => vec![
                training(
                    "paddle-flags",
                    "FLAGS_allocator_strategy=auto_growth python script.py --batch_size 1",
                ),
                service(
                    "paddle-image",
                    "PaddleOCR(det_limit_side_len=960, rec_batch_num=1)",
                ),
            ],
            "Blender" => vec![
                service("render-simplify", "Render > Simplify: Texture Limit 2048"),
                self.advise(
                    "render-tiles",
                    "Render > Performance > Memory: Use Tiling, 1024",
                ),
                self.advise(
                    "render-cpu",
                    "Preferences > System > Cycles Render Devices > None",
                ),
            ],
            "V-Ray" | "Iray" | "Redshift" => vec![
                service("render-simplify", "textures: 2048 px at most, compressed"),
                self.advise("render-cpu", "render engine: CPU, or hybrid"),
            ],
            "hashcat" => vec![
                self.advise("hashcat-load", "hashcat -w 1 -n 8 -u 64 ..."),
                self.advise("hashcat-split", "split -l 1000000 hashes.txt part-"),
            ],
            "NVENC" | "NVDEC" | "FFmpeg" => vec![
                self.advise("video-sessions", "nvidia-smi encodersessions"),
                self.advise(
                    "video-surfaces",
                    "ffmpeg ... -surfaces 8 -extra_hw_frames 2",
                ),
            ],
            "Vulkan" | "Direct3D" | "OpenCL" | "WebGPU" => {
                vec![service("less-at-once", WATCH_ANY)]
            }
            "Kaldi" => vec![
                self.advise("kaldi-wait", "nvidia-smi -c 3; --use-gpu=wait"),
                training("framework-batch", "--trainer.num-chunk-per-minibatch 32"),
            ],
            "PhysX" => vec![
                training("fewer-environments", "num_envs=512"),
                self.advise(
                    "physx-buffers",
                    "gpu_max_rigid_contact_count: 524288   gpu_heap_capacity: 33554432",
                ),
            ],
            "ncnn" => vec![
                service(
                    "smaller-tiles",
                    "realesrgan-ncnn-vulkan -i in.png -o out.png -t 100",
                ),
                self.advise("fewer-jobs", "-j 1:1:1"),
            ],
            "COLMAP" => vec![
                service("colmap-image", "--PatchMatchStereo.max_image_size 2000"),
                service(
                    "colmap-features",
                    "--SiftExtraction.max_image_size 2000 --SiftMatching.max_num_matches 16384",
                ),
            ],
            "RELION" => vec![
                self.advise(
                    "relion-ranks",
                    "mpirun -n 2 relion_refine_mpi --gpu \"0\" ...",
                ),
                precision("relion-pad", "--pad 1"),
                service(
                    "relion-box",
                    "relion_preprocess --extract_size 256 --scale 128",
                ),
            ],
            "instant-ngp" => vec![
                service("ngp-images", "ffmpeg -i in.jpg -vf scale=iw/2:-1 out.jpg"),
                precision("ngp-grid", "\"log2_hashmap_size\": 17"),
            ],
            "AMDGPU.jl" => vec![
                self.advise("julia-reclaim", "GC.gc(true)"),
                rounding(
                    "in-chunks",
                    "for part in Iterators.partition(1:n, 1024) ... end",
                ),
            ],
            "MATLAB" => vec![
                self.advise("matlab-reset", "reset(gpuDevice)"),
                precision("matlab-single", "x = gpuArray(single(x))"),
                training(
                    "framework-batch",
                    "trainingOptions(\"adam\", MiniBatchSize=16)",
                ),
            ],
            "LightGBM" => vec![
                precision("lightgbm-bins", "max_bin=63, gpu_use_dp=False"),
                self.advise("lightgbm-cpu", "device_type=\"cpu\""),
            ],
            "KeOps" => vec![
                rounding("in-chunks", "for part in x.split(10_000): ..."),
                self.advise("empty-cache-for-others", "torch.cuda.empty_cache()"),
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
        let is_known = !found.is_empty();
        found.extend(self.who_else(library, finding));
        match library {
            _ if is_known => {}
            // No CUDA, and no card that nvidia-smi knows.
            "Ascend" => found.push(training("framework-batch", "batch size: 8")),
            _ => found.extend(self.any_program(finding)),
        }
        found
    }

    /// A program about which nothing is known but that it uses the card.
    fn any_program(&self, finding: &Finding) -> Vec<Advice> {
        let (watch, other_card) = match () {
            () if said::is_rocm(finding) => (WATCH_AMD, Some("HIP_VISIBLE_DEVICES=1 ./program")),
            () if said::is_other_interface(finding) => (WATCH_ANY, None),
            () => (WATCH, Some("CUDA_VISIBLE_DEVICES=1 ./program")),
        };
        let less = self
            .advise("less-at-once", watch)
            .with_effect(Effect::Service);
        let other_card = other_card.map(|command| self.advise("other-card", command));
        [Some(less), other_card].into_iter().flatten().collect()
    }

    /// What holds the card is not this program, or no longer.
    pub fn held_by_others(&self) -> Advice {
        self.advise("end-leftovers", "sudo fuser -v /dev/nvidia*")
    }

    /// Who else uses the device, where there is a command that tells.
    fn who_else(&self, library: &str, finding: &Finding) -> Option<Advice> {
        match library {
            "MindSpore" | "Ascend" => Some(self.advise("npu-see", "npu-smi info")),
            "DirectML" | "Vulkan" | "OpenCL" | "Direct3D" | "WebGPU" | "ncnn" | "FlashInfer" => {
                None
            }
            "AMDGPU.jl" => Some(self.advise("see-card", "rocm-smi --showpids")),
            _ if said::is_other_interface(finding) => None,
            _ if said::is_rocm(finding) => Some(self.advise("see-card", "rocm-smi --showpids")),
            "PaddlePaddle" => Some(match said::chip(finding) {
                Some(chip) => self.advise("npu-see", see_chip(chip)),
                None => self.advise("see-card", "nvidia-smi"),
            }),
            _ => Some(self.advise("see-card", "nvidia-smi")),
        }
    }

    /// A library that often shares the card with PyTorch, and what PyTorch can do for it where it does.
    pub fn beside_pytorch(&self, finding: &Finding) -> Vec<Advice> {
        let service = |id, command: &str| self.advise(id, command).with_effect(Effect::Service);
        let rounding = |id, command: &str| self.advise(id, command).with_effect(Effect::Rounding);
        let mut found = match finding.figures.text_named(LIBRARY) {
            Some("ONNX Runtime") => vec![
                service("smaller-input-batch", "session.run(None, {name: batch[:1]})"),
                // Only a pool with a limit of its own says how much it has left.
                self.advise(
                    match finding.figures.free.is_some() {
                        true => "onnx-limit",
                        false => "onnx-arena",
                    },
                    match finding.figures.free.is_some() {
                        true => "(\"CUDAExecutionProvider\", {\"gpu_mem_limit\": 8 * 2**30})",
                        false => "(\"CUDAExecutionProvider\", {\"arena_extend_strategy\": \"kSameAsRequested\", \"cudnn_conv_use_max_workspace\": \"0\"})",
                    },
                ),
            ],
            Some("FAISS") => vec![
                self.advise(
                    "faiss-temp",
                    "res.setTempMemory(256 << 20); options = faiss.GpuClonerOptions(); options.useFloat16 = True",
                )
                .with_effect(Effect::Precision),
                rounding("faiss-chunks", "for part in np.array_split(queries, 16): index.search(part, k)"),
                self.advise("faiss-compress", "faiss.index_factory(d, \"IVF4096,PQ64\")")
                    .with_effect(Effect::Precision),
            ],
            Some("RAPIDS") => vec![
                self.advise("rmm-managed", "rmm.reinitialize(managed_memory=True)"),
                self.advise("rapids-spill", "LocalCUDACluster(device_memory_limit=0.7, enable_cudf_spill=True)"),
                rounding("rapids-partitions", "dask_cudf.read_parquet(path, blocksize=\"256MB\")"),
            ],
            _ => vec![
                self.advise(
                    "trt-workspace",
                    "trtexec --onnx=model.onnx --memPoolSize=workspace:1024",
                ),
                service("trt-batch", "trtexec --optShapes=input:1x3x640x640 --maxShapes=input:1x3x640x640 --fp16"),
            ],
        };
        if finding.mentions_pytorch() {
            found.push(self.advise("empty-cache-for-others", "torch.cuda.empty_cache()"));
            found.push(self.advise(
                "limit-for-pytorch",
                "torch.cuda.set_per_process_memory_fraction(0.7)",
            ));
        } else {
            found.extend(self.who_else("any", finding));
        }
        found
    }
}

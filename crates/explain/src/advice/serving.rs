//! Advice about servers, other frameworks, Macs and kernels.

use super::{Advice, Effect};
use crate::finding::{Finding, LIBRARY};
use crate::kind::Kind;

pub fn cache(finding: &Finding) -> Vec<Advice> {
    let fits = finding.figures.count_named("length that fits");
    let length = fits.map_or("8192".to_owned(), |fits| fits.to_string());
    let mut found = vec![
        Advice::new(
            "a shorter maximum sequence length",
            format!("vllm serve MODEL --max-model-len {length}"),
            match fits {
                Some(_) => "vLLM's own estimate of what fits",
                None => "the KV cache must hold one sequence of maximum length",
            },
        )
        .with_effect(Effect::Service),
    ];
    found.push(Advice::new(
        "a larger share of the card",
        "vllm serve MODEL --gpu-memory-utilization 0.95",
        "the default is 0.9; weights and the profiling run are taken from it first",
    ));
    if finding.kind == Kind::VllmSampler || finding.kind == Kind::VllmNoCache {
        found.push(Advice::new(
            "fewer concurrent sequences",
            "vllm serve MODEL --max-num-seqs 64 --max-num-batched-tokens 4096",
            "the profiling run at startup uses that many",
        ));
    }
    found.push(Advice::new(
        "no CUDA graphs",
        "vllm serve MODEL --enforce-eager",
        "captured graphs take extra memory",
    ));
    found.push(
        Advice::new(
            "an 8-bit KV cache, or quantized weights",
            "vllm serve MODEL --kv-cache-dtype fp8",
            "half the memory for the same length",
        )
        .with_effect(Effect::Precision),
    );
    found.push(
        Advice::new(
            "several cards",
            "vllm serve MODEL --tensor-parallel-size 2",
            "each card holds a part of the weights and of the cache",
        )
        .with_effect(Effect::Rounding),
    );
    found
}

pub fn llama_cpp() -> Vec<Advice> {
    vec![
        Advice::new(
            "fewer layers on the card",
            "llama-server -m MODEL -ngl 20   # Ollama: PARAMETER num_gpu 20; llama-cpp-python: n_gpu_layers=20",
            "the CPU computes the others, from host memory",
        )
        .with_effect(Effect::Rounding),
        Advice::new(
            "a shorter context",
            "llama-server -m MODEL -c 8192   # Ollama: PARAMETER num_ctx 8192",
            "the KV cache for the whole context is allocated at startup",
        )
        .with_effect(Effect::Service),
        Advice::new(
            "an 8-bit KV cache",
            "llama-server -m MODEL --flash-attn on --cache-type-k q8_0 --cache-type-v q8_0",
            "half the memory for the same length",
        )
        .with_effect(Effect::Precision),
        Advice::new(
            "a lower-bit quantization of the weights",
            "llama-quantize model-f16.gguf model-q4.gguf Q4_K_M",
            "about 4.8 bits per weight instead of 16",
        )
        .with_effect(Effect::Precision),
        Advice::new(
            "a different split across cards",
            "llama-server -m MODEL --tensor-split 3,1",
            "a card with less memory, or one that drives a display, gets a smaller part",
        ),
    ]
}

pub fn utilization_down(finding: &Finding) -> Advice {
    let share = match (finding.figures.free, finding.figures.total) {
        (Some(free), Some(total)) if total.bytes > 0 => {
            let percent = (free.bytes.saturating_mul(97) / total.bytes).min(95);
            format!("0.{percent:02}")
        }
        _ => "0.7".to_owned(),
    };
    Advice::new(
        "a smaller share of the card",
        format!("vllm serve MODEL --gpu-memory-utilization {share}"),
        "no more than is free at startup",
    )
}

pub fn framework(finding: &Finding) -> Vec<Advice> {
    let batch = Advice::new(
        "a smaller batch",
        "python train.py --batch-size 8",
        "intermediate results grow with it",
    )
    .with_effect(Effect::Training);
    match finding.kind {
        Kind::OtherAllocator => [vec![batch], beside_pytorch(finding)].concat(),
        Kind::Jax => vec![
            batch,
            Advice::new(
                "a larger pool",
                "XLA_PYTHON_CLIENT_MEM_FRACTION=.95 python train.py",
                "JAX takes 75 % of the card by default",
            ),
            Advice::new(
                "no preallocated pool, when other processes need the card",
                "XLA_PYTHON_CLIENT_PREALLOCATE=false python train.py",
                "JAX then allocates on demand, and several processes can share a card",
            ),
            Advice::new(
                "rematerialization",
                "jax.checkpoint(layer)   # and donate_argnums in jax.jit for the old state",
                "activations are recomputed instead of kept; donated buffers avoid a second copy of the \
                 parameters",
            )
            .with_effect(Effect::Rounding),
        ],
        _ => vec![
            batch,
            Advice::new(
                "allocation on demand",
                "TF_FORCE_GPU_ALLOW_GROWTH=true python train.py",
                "helps when another process needs the card, not when the model is too large",
            ),
            Advice::new(
                "the asynchronous allocator, against fragmentation",
                "TF_GPU_ALLOCATOR=cuda_malloc_async python train.py",
                "helps when the statistics in the log show much free memory in small pieces",
            ),
            Advice::new(
                "mixed precision",
                "tf.keras.mixed_precision.set_global_policy(\"mixed_float16\")",
                "most activations take half the memory",
            )
            .with_effect(Effect::Precision),
        ],
    }
}

/// Advice that makes room for a library sharing the card with PyTorch.
fn beside_pytorch(finding: &Finding) -> Vec<Advice> {
    let own = match finding.figures.text_named(LIBRARY) {
        Some("ONNX Runtime") => Advice::new(
            "an arena that grows by the requested size only",
            "(\"CUDAExecutionProvider\", {\"arena_extend_strategy\": \"kSameAsRequested\", \"cudnn_conv_use_max_workspace\": \"0\"})",
            "by default the arena doubles, and convolutions use the largest workspace",
        ),
        Some("FAISS") => Advice::new(
            "less scratch space, 16-bit vectors",
            "res.setTempMemory(256 << 20); options = faiss.GpuClonerOptions(); options.useFloat16 = True",
            "each FAISS resource object takes up to 1.5 GiB of scratch space at startup",
        )
        .with_effect(Effect::Precision),
        Some("RAPIDS") => Advice::new(
            "managed memory, which may spill to RAM",
            "rmm.reinitialize(managed_memory=True)",
            "pages migrate to the card on use: slower, but it fits",
        ),
        _ => Advice::new(
            "a smaller workspace",
            "trtexec --onnx=model.onnx --memPoolSize=workspace:1024   # config.set_memory_pool_limit(...)",
            "the builder tries tactics that use all the workspace it is allowed",
        ),
    };
    vec![
        own,
        Advice::new(
            "an empty PyTorch cache",
            "torch.cuda.empty_cache()   # before the library allocates",
            "PyTorch caches freed memory, and other libraries cannot use it",
        ),
        Advice::new(
            "a memory limit for PyTorch",
            "torch.cuda.set_per_process_memory_fraction(0.7)   # first thing in the script",
            "the rest stays free for the library",
        ),
    ]
}

pub fn smaller_kernel() -> Vec<Advice> {
    vec![
        Advice::new(
            "fewer stages or smaller blocks in the kernel",
            "triton.Config({\"BLOCK_M\": 64, \"BLOCK_N\": 64}, num_stages=2)",
            "each pipeline stage keeps its tiles in shared memory",
        )
        .with_effect(Effect::Rounding),
        Advice::new(
            "a version of the library with kernels for this card",
            "pip install -U triton   # or the library that ships the kernel",
            "kernels are tuned for data-centre cards (per block, A100: 164 KiB, H100: 228 KiB; RTX 30/40: 99 KiB; T4: 64 KiB)",
        ),
    ]
}

pub fn mps_watermark() -> Advice {
    Advice::new(
        "no upper limit, with care",
        "PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 python train.py",
        "PyTorch may then use all of the Mac's memory, and the whole system may swap or fail",
    )
}

pub fn close_programs() -> Advice {
    Advice::new(
        "close other programs that use the GPU",
        "sudo footprint -p python   # Activity Monitor, Memory",
        "GPU and CPU share one memory: browsers and other models count",
    )
}

//! Advice about servers, other frameworks, Macs and kernels.

use super::{Advice, Effect};
use crate::finding::{Finding, LIBRARY};
use crate::kind::Kind;

pub fn cache(finding: &Finding) -> Vec<Advice> {
    let fits = finding.figures.count_named("length that fits");
    let length = fits.map_or("8192".to_owned(), |fits| fits.to_string());
    let mut found = vec![
        Advice::new(
            "a shorter longest sequence",
            format!("vllm serve MODEL --max-model-len {length}"),
            match fits {
                Some(_) => "vLLM's own estimate of what fits",
                None => "the KV cache must hold one sequence of full length",
            },
        )
        .with_effect(Effect::Service),
    ];
    found.push(Advice::new(
        "a larger share of the card",
        "vllm serve MODEL --gpu-memory-utilization 0.95",
        "the default is 0.9, and what weights and the trial run need comes off it first",
    ));
    if finding.kind == Kind::VllmSampler || finding.kind == Kind::VllmNoCache {
        found.push(Advice::new(
            "fewer sequences at once",
            "vllm serve MODEL --max-num-seqs 64 --max-num-batched-tokens 4096",
            "the trial run at the start is made with as many",
        ));
    }
    found.push(Advice::new(
        "no CUDA graphs",
        "vllm serve MODEL --enforce-eager",
        "graphs take memory of their own",
    ));
    found.push(
        Advice::new(
            "a KV cache of 8 bits, or quantised weights",
            "vllm serve MODEL --kv-cache-dtype fp8",
            "half the cache for the same length",
        )
        .with_effect(Effect::Precision),
    );
    found.push(Advice::new(
        "several cards",
        "vllm serve MODEL --tensor-parallel-size 2",
        "each holds a part of weights and cache",
    ));
    found
}

pub fn llama_cpp() -> Vec<Advice> {
    vec![
        Advice::new(
            "fewer layers on the card",
            "llama-server -m MODEL -ngl 20   # Ollama: PARAMETER num_gpu 20; llama-cpp-python: n_gpu_layers=20",
            "the others are computed by the CPU, from the machine's memory",
        ),
        Advice::new(
            "a shorter context",
            "llama-server -m MODEL -c 8192   # Ollama: PARAMETER num_ctx 8192",
            "the KV cache is taken for the whole context at the start",
        )
        .with_effect(Effect::Service),
        Advice::new(
            "a KV cache of 8 bits",
            "llama-server -m MODEL --flash-attn on --cache-type-k q8_0 --cache-type-v q8_0",
            "half the cache for the same length",
        )
        .with_effect(Effect::Precision),
        Advice::new(
            "a stronger quantisation of the weights",
            "llama-quantize model-f16.gguf model-q4.gguf Q4_K_M",
            "about 4.8 bits for each weight instead of 16",
        )
        .with_effect(Effect::Precision),
        Advice::new(
            "another split between several cards",
            "llama-server -m MODEL --tensor-split 3,1",
            "a card with less memory, or with a display, takes a smaller part",
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
        "no more than is free at the start",
    )
}

pub fn framework(finding: &Finding) -> Vec<Advice> {
    let batch = Advice::new(
        "a smaller batch",
        "python train.py --batch-size 8",
        "what the program computes with at once grows with it",
    )
    .with_effect(Effect::Training);
    match finding.kind {
        Kind::OtherAllocator => [vec![batch], beside_pytorch(finding)].concat(),
        Kind::Jax => vec![
            batch,
            Advice::new(
                "a larger pool",
                "XLA_PYTHON_CLIENT_MEM_FRACTION=.95 python train.py",
                "JAX takes 75 % of the card unless told otherwise",
            ),
            Advice::new(
                "no pool, where others need the card too",
                "XLA_PYTHON_CLIENT_PREALLOCATE=false python train.py",
                "memory is taken as it is needed; several processes can share a card",
            ),
            Advice::new(
                "compute again instead of keeping",
                "jax.checkpoint(layer)   # and donate_argnums in jax.jit for the old state",
                "saves activations, and the second copy of parameters",
            ),
        ],
        _ => vec![
            batch,
            Advice::new(
                "memory as it is needed",
                "TF_FORCE_GPU_ALLOW_GROWTH=true python train.py",
                "helps where another process needs the card, not where the model is too large",
            ),
            Advice::new(
                "the asynchronous allocator against fragmentation",
                "TF_GPU_ALLOCATOR=cuda_malloc_async python train.py",
                "helps where the log's statistics show much that is free in small pieces",
            ),
            Advice::new(
                "mixed precision",
                "tf.keras.mixed_precision.set_global_policy(\"mixed_float16\")",
                "most activations take half",
            )
            .with_effect(Effect::Precision),
        ],
    }
}

/// What makes room for a library that shares the card with PyTorch.
fn beside_pytorch(finding: &Finding) -> Vec<Advice> {
    let own = match finding.figures.text_named(LIBRARY) {
        Some("ONNX Runtime") => Advice::new(
            "an arena that grows by what is asked for",
            "(\"CUDAExecutionProvider\", {\"arena_extend_strategy\": \"kSameAsRequested\", \"cudnn_conv_use_max_workspace\": \"0\"})",
            "the arena otherwise doubles, and convolutions try large workspaces",
        ),
        Some("FAISS") => Advice::new(
            "less scratch space, vectors of 16 bits",
            "res.setTempMemory(256 << 20); options = faiss.GpuClonerOptions(); options.useFloat16 = True",
            "FAISS takes up to 1.5 GiB of scratch space for each resource object at its start",
        )
        .with_effect(Effect::Precision),
        Some("RAPIDS") => Advice::new(
            "memory that may lie in the machine's RAM",
            "rmm.reinitialize(managed_memory=True)",
            "pages move to the card when they are used: slower, but it fits",
        ),
        _ => Advice::new(
            "a smaller workspace",
            "trtexec --onnx=model.onnx --memPoolSize=workspace:1024   # config.set_memory_pool_limit(...)",
            "the builder tries tactics that need as much as it is allowed",
        ),
    };
    vec![
        own,
        Advice::new(
            "let PyTorch give back what it only caches",
            "torch.cuda.empty_cache()   # before the library asks for its memory",
            "PyTorch keeps freed memory for itself, and nobody else can use it",
        ),
        Advice::new(
            "a limit for PyTorch",
            "torch.cuda.set_per_process_memory_fraction(0.7)   # right at the start",
            "the rest stays free for the library",
        ),
    ]
}

pub fn smaller_kernel() -> Vec<Advice> {
    vec![
        Advice::new(
            "fewer stages or smaller blocks in the kernel",
            "triton.Config({\"BLOCK_M\": 64, \"BLOCK_N\": 64}, num_stages=2)",
            "each stage keeps its tiles in shared memory",
        )
        .with_effect(Effect::Rounding),
        Advice::new(
            "another version of the library that has kernels for this card",
            "pip install -U triton   # or the library that brings the kernel",
            "kernels are tuned for data-centre cards (A100: 164 KiB, H100: 228 KiB for a block; RTX 30/40: 99 KiB; T4: 64 KiB)",
        ),
    ]
}

pub fn mps_watermark() -> Advice {
    Advice::new(
        "no upper limit, with care",
        "PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 python train.py",
        "PyTorch then takes what the Mac has, which may make the whole system swap or fail",
    )
}

pub fn close_programs() -> Advice {
    Advice::new(
        "close other programs that use the GPU",
        "sudo footprint -p python   # Activity Monitor, Memory",
        "card and machine share one memory: browsers and other models count",
    )
}

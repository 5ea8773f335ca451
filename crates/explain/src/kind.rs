//! The kinds of failures.

use serde::Serialize;

use crate::catalogue::Catalogue;
use crate::say;

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// PyTorch's caching allocator on an NVIDIA card, with figures.
    CudaAllocator,
    /// The same, cut off after the first words.
    CudaAllocatorBare,
    /// PyTorch with `backend:cudaMallocAsync`.
    CudaMallocAsync,
    /// More than 2^60 bytes: a size that overflowed.
    CudaAbsurdSize,
    /// `throw_on_cudamalloc_oom`: refused before it reached the driver.
    CudaRejected,
    HipAllocator,
    XpuAllocator,
    /// Ascend, through `torch_npu`.
    NpuAllocator,
    /// PyTorch on a card of another maker, through its plug-in: Cambricon, Moore Threads.
    OtherCardAllocator,
    MpsAllocator,
    /// PyTorch on the CPU.
    CpuAllocator,
    /// NumPy or Python itself.
    PythonMemory,
    /// A call to CUDA outside PyTorch's allocator: `CUDA error: out of memory`.
    CudaCall,
    /// A program that is not PyTorch: what CUDA calls the error, and nothing else.
    CudaProgram,
    /// A call to Level Zero, below PyTorch or another program on an Intel GPU.
    XpuCall,
    /// The driver's mapping of memory: expandable segments.
    CudaMapping,
    Cublas,
    /// `CUBLAS_STATUS_NOT_INITIALIZED`: often memory, but not always.
    CublasNotInitialized,
    Cudnn,
    /// `CUDNN_STATUS_NOT_INITIALIZED`, `INTERNAL_ERROR`: often memory, but not always.
    CudnnNotInitialized,
    /// cuDNN found no algorithm that runs: often the workspace did not fit.
    CudnnNoAlgorithm,
    /// A workspace beyond 1 TiB.
    CudnnWorkspace,
    /// cuFFT, cuSOLVER, cuSPARSE and others.
    OtherLibrary,
    Nccl,
    /// NCCL refuses two ranks on one card.
    NcclDuplicate,
    /// Pinned (page-locked) host memory.
    PinnedMemory,
    /// The kernel's OOM killer reports a killed process.
    HostKill,
    /// A process was killed with signal 9: likely out of memory.
    HostKillLikely,
    /// A batch system or container runtime reports that its memory limit was reached.
    JobLimit,
    DataLoaderKilled,
    /// Worker processes of another library died.
    WorkersDied,
    /// `/dev/shm` is full.
    SharedMemory,
    /// Windows: RAM and page file are used up.
    PageFile,
    Jax,
    TensorFlow,
    /// TensorFlow on the CPU.
    TensorFlowHost,
    /// TensorFlow's or XLA's allocator, in its log.
    BfcAllocator,
    /// vLLM: nothing left for the KV cache.
    VllmNoCache,
    /// vLLM: the KV cache is too small for one sequence.
    VllmSequence,
    /// vLLM: less memory is free than it was configured to use.
    VllmNotFree,
    /// vLLM: the sampler's warm-up.
    VllmSampler,
    /// SGLang: nothing left for the KV cache.
    SglangNoCache,
    /// TGI: the warm-up at startup.
    TgiWarmup,
    /// llama.cpp: a buffer of weights, KV cache or scratch space on the card.
    LlamaCpp,
    /// llama.cpp: such a buffer in RAM.
    LlamaCppHost,
    /// Ollama: the model is larger than the RAM that is free.
    OllamaMemory,
    /// A framework or library with its own allocator: Caffe, MXNet, ONNX Runtime, FAISS, RAPIDS, ….
    OtherAllocator,
    /// A program or runtime that asked for RAM in its own words: a compiler, OpenCV, Java, ….
    OtherHost,
    /// A Jetson board: CPU and GPU share one memory.
    Jetson,
    /// MLX on Apple GPUs.
    Mlx,
    /// Another program on an Apple GPU.
    Metal,
    CuPy,
    Paddle,
    /// Triton: a kernel's shared memory on the chip, not the card's memory.
    KernelSharedMemory,
    /// A quantized model would have been placed partly on the CPU.
    DispatchedElsewhere,
    /// `out of memory` alone, which does not say whose.
    Unsaid,
}

/// Which memory ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    Device,
    /// RAM.
    Host,
    /// `/dev/shm`.
    Shared,
    /// The memory that CPU and GPU share: a Mac's, a Jetson's.
    Unified,
    /// The small memory inside a multiprocessor.
    OnChip,
    /// The message does not tell.
    Unknown,
}

impl Kind {
    /// One sentence that says what failed.
    pub fn title(self, catalogue: &Catalogue) -> String {
        let id = match self {
            Self::CudaAllocator | Self::CudaAllocatorBare => "kind-cuda-allocator",
            Self::CudaMallocAsync => "kind-cuda-malloc-async",
            Self::CudaAbsurdSize => "kind-cuda-absurd-size",
            Self::CudaRejected => "kind-cuda-rejected",
            Self::HipAllocator => "kind-hip-allocator",
            Self::XpuAllocator => "kind-xpu-allocator",
            Self::NpuAllocator => "kind-npu-allocator",
            Self::OtherCardAllocator => "kind-other-card-allocator",
            Self::MpsAllocator => "kind-mps-allocator",
            Self::Mlx => "kind-mlx",
            Self::Metal => "kind-metal",
            Self::CpuAllocator => "kind-cpu-allocator",
            Self::PythonMemory => "kind-python-memory",
            Self::CudaCall => "kind-cuda-call",
            Self::CudaProgram => "kind-cuda-program",
            Self::XpuCall => "kind-xpu-call",
            Self::CudaMapping => "kind-cuda-mapping",
            Self::Cublas => "kind-cublas",
            Self::CublasNotInitialized => "kind-cublas-not-initialized",
            Self::Cudnn => "kind-cudnn",
            Self::CudnnNotInitialized => "kind-cudnn-not-initialized",
            Self::CudnnNoAlgorithm => "kind-cudnn-no-algorithm",
            Self::CudnnWorkspace => "kind-cudnn-workspace",
            Self::OtherLibrary => "kind-other-library",
            Self::Nccl => "kind-nccl",
            Self::NcclDuplicate => "kind-nccl-duplicate",
            Self::PinnedMemory => "kind-pinned-memory",
            Self::HostKill => "kind-host-kill",
            Self::HostKillLikely => "kind-host-kill-likely",
            Self::JobLimit => "kind-job-limit",
            Self::DataLoaderKilled => "kind-data-loader-killed",
            Self::WorkersDied => "kind-workers-died",
            Self::SharedMemory => "kind-shared-memory",
            Self::PageFile => "kind-page-file",
            Self::Jax => "kind-jax",
            Self::TensorFlow => "kind-tensor-flow",
            Self::TensorFlowHost => "kind-tensor-flow-host",
            Self::BfcAllocator => "kind-bfc-allocator",
            Self::VllmNoCache => "kind-vllm-no-cache",
            Self::VllmSequence => "kind-vllm-sequence",
            Self::VllmNotFree => "kind-vllm-not-free",
            Self::VllmSampler => "kind-vllm-sampler",
            Self::SglangNoCache => "kind-sglang-no-cache",
            Self::TgiWarmup => "kind-tgi-warmup",
            Self::LlamaCpp => "kind-llama-cpp",
            Self::LlamaCppHost => "kind-llama-cpp-host",
            Self::OllamaMemory => "kind-ollama-memory",
            Self::OtherAllocator => "kind-other-allocator",
            Self::OtherHost => "kind-other-host",
            Self::Jetson => "kind-jetson",
            Self::CuPy => "kind-cupy",
            Self::Paddle => "kind-paddle",
            Self::KernelSharedMemory => "kind-kernel-shared-memory",
            Self::DispatchedElsewhere => "kind-dispatched-elsewhere",
            Self::Unsaid => "kind-unsaid",
        };
        say!(catalogue, id)
    }

    pub fn memory(self) -> Memory {
        match self {
            Self::CpuAllocator
            | Self::PythonMemory
            | Self::PinnedMemory
            | Self::HostKill
            | Self::HostKillLikely
            | Self::JobLimit
            | Self::DataLoaderKilled
            | Self::WorkersDied
            | Self::OtherHost
            | Self::PageFile
            | Self::TensorFlowHost
            | Self::LlamaCppHost
            | Self::OllamaMemory => Memory::Host,
            Self::SharedMemory => Memory::Shared,
            Self::MpsAllocator | Self::Mlx | Self::Metal | Self::Jetson => Memory::Unified,
            Self::Unsaid => Memory::Unknown,
            Self::KernelSharedMemory => Memory::OnChip,
            _ => Memory::Device,
        }
    }

    /// How informative it is: the finding with the greatest weight is explained.
    pub fn weight(self) -> u8 {
        match self {
            Self::CudaAllocator
            | Self::CudaMallocAsync
            | Self::CudaAbsurdSize
            | Self::CudaRejected
            | Self::HipAllocator
            | Self::XpuAllocator
            | Self::NpuAllocator
            | Self::OtherCardAllocator
            | Self::MpsAllocator
            | Self::Mlx
            | Self::CpuAllocator
            | Self::VllmNoCache
            | Self::VllmSequence
            | Self::VllmNotFree
            | Self::VllmSampler
            | Self::SglangNoCache
            | Self::TgiWarmup
            | Self::LlamaCpp
            | Self::LlamaCppHost
            | Self::OllamaMemory
            | Self::OtherAllocator
            | Self::OtherHost
            | Self::CuPy
            | Self::Paddle
            | Self::KernelSharedMemory
            | Self::HostKill => 4,
            Self::Jax
            | Self::TensorFlow
            | Self::TensorFlowHost
            | Self::PageFile
            | Self::PythonMemory
            | Self::SharedMemory
            | Self::PinnedMemory
            | Self::Jetson
            | Self::Metal
            | Self::CudaAllocatorBare
            | Self::DispatchedElsewhere
            | Self::CudnnWorkspace
            | Self::NcclDuplicate
            | Self::JobLimit => 3,
            Self::CudaCall
            | Self::XpuCall
            | Self::CudaMapping
            | Self::Cublas
            | Self::Cudnn
            | Self::OtherLibrary
            | Self::Nccl
            | Self::BfcAllocator
            | Self::DataLoaderKilled
            | Self::WorkersDied => 2,
            Self::CublasNotInitialized
            | Self::CudnnNotInitialized
            | Self::CudnnNoAlgorithm
            | Self::HostKillLikely
            // What any other family reads from the same words says more.
            | Self::CudaProgram
            | Self::Unsaid => 1,
        }
    }

    /// The message may have other causes than memory.
    pub fn is_uncertain(self) -> bool {
        let is_vague = self.weight() == 1 && self != Self::CudaProgram;
        is_vague || matches!(self, Self::DataLoaderKilled | Self::WorkersDied)
    }

    /// PyTorch's own allocator on a card, whose messages give the full figures.
    pub fn is_caching_allocator(self) -> bool {
        matches!(
            self,
            Self::CudaAllocator
                | Self::HipAllocator
                | Self::XpuAllocator
                | Self::NpuAllocator
                | Self::OtherCardAllocator
                | Self::CudaMallocAsync
        )
    }

    /// PyTorch, its libraries, or CUDA with nobody else in sight.
    pub fn is_pytorch(self) -> bool {
        !matches!(
            self,
            Self::Jax
                | Self::TensorFlow
                | Self::TensorFlowHost
                | Self::BfcAllocator
                | Self::VllmNoCache
                | Self::VllmSequence
                | Self::VllmNotFree
                | Self::VllmSampler
                | Self::SglangNoCache
                | Self::TgiWarmup
                | Self::LlamaCpp
                | Self::LlamaCppHost
                | Self::OllamaMemory
                | Self::OtherAllocator
                | Self::OtherHost
                | Self::WorkersDied
                | Self::CudaProgram
                | Self::Jetson
                | Self::Metal
                | Self::Mlx
                | Self::CuPy
                | Self::Paddle
                | Self::Unsaid
        )
    }
}

//! The kinds of failures.

use serde::Serialize;

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
    MpsAllocator,
    /// PyTorch on the CPU.
    CpuAllocator,
    /// NumPy or Python itself.
    PythonMemory,
    /// A call to CUDA outside PyTorch's allocator: `CUDA error: out of memory`.
    CudaCall,
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
    /// Pinned (page-locked) host memory.
    PinnedMemory,
    /// The kernel's OOM killer reports a killed process.
    HostKill,
    /// A process was killed with signal 9: likely out of memory.
    HostKillLikely,
    /// A batch system or container runtime reports that its memory limit was reached.
    JobLimit,
    DataLoaderKilled,
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
    /// MLX on Apple GPUs.
    Mlx,
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
    /// The memory that a Mac's CPU and GPU share.
    Unified,
    /// The small memory inside a multiprocessor.
    OnChip,
    /// The message does not tell.
    Unknown,
}

impl Kind {
    /// One sentence that says what failed.
    pub fn title(self) -> &'static str {
        match self {
            Self::CudaAllocator | Self::CudaAllocatorBare => {
                "PyTorch's allocator got no more memory from the CUDA driver"
            }
            Self::CudaMallocAsync => "PyTorch with cudaMallocAsync got no more memory from CUDA",
            Self::CudaAbsurdSize => "a single request to PyTorch was for more than 2^60 bytes",
            Self::CudaRejected => {
                "PyTorch refused a request that would have exceeded its own limit"
            }
            Self::HipAllocator => "PyTorch's allocator got no more memory from the ROCm driver",
            Self::XpuAllocator => "PyTorch's allocator got no more memory from the Intel GPU",
            Self::NpuAllocator => "PyTorch's allocator got no more memory from the Ascend NPU",
            Self::MpsAllocator => "PyTorch reached its limit of the Mac's unified memory",
            Self::Mlx => "MLX got no more of the Mac's unified memory",
            Self::PageFile => {
                "Windows has no memory left: RAM and page file are used up (not the GPU's)"
            }
            Self::TensorFlowHost => "TensorFlow ran out of host memory (not the GPU's)",
            Self::SglangNoCache => "SGLang has no memory left for its KV cache",
            Self::TgiWarmup => "TGI's warm-up with full batches does not fit on the card",
            Self::LlamaCppHost => {
                "llama.cpp could not allocate one of its buffers in RAM (not on the GPU)"
            }
            Self::OllamaMemory => "the model needs more RAM than is free (not the GPU's)",
            Self::Unsaid => "something ran out of memory; the message does not say which memory",
            Self::CpuAllocator => "PyTorch ran out of host memory (not the GPU's)",
            Self::PythonMemory => "Python ran out of host memory (not the GPU's)",
            Self::CudaCall => {
                "a CUDA call outside PyTorch's allocator ran out of memory on the card"
            }
            Self::CudaMapping => "the driver could not map memory for an expandable segment",
            Self::Cublas => "cuBLAS ran out of memory on the card",
            Self::CublasNotInitialized => {
                "cuBLAS could not start: usually because the card is out of memory"
            }
            Self::Cudnn => "cuDNN ran out of memory on the card",
            Self::CudnnNotInitialized => {
                "cuDNN could not start: usually because the card is out of memory"
            }
            Self::CudnnNoAlgorithm => {
                "no convolution algorithm could run: usually because its workspace does not fit"
            }
            Self::CudnnWorkspace => "cuDNN requested a workspace of 1 TiB or more",
            Self::OtherLibrary => "a CUDA library ran out of memory on the card",
            Self::Nccl => "NCCL ran out of memory on the card",
            Self::PinnedMemory => "pinned host memory ran out (not the GPU's)",
            Self::HostKill => {
                "Linux killed the process: the machine ran out of RAM (not GPU memory)"
            }
            Self::HostKillLikely => {
                "the process was killed with signal 9: most likely the machine ran out of RAM"
            }
            Self::JobLimit => "the job was killed: it reached its RAM limit (not the GPU's)",
            Self::DataLoaderKilled => {
                "a DataLoader worker was killed: most likely the machine ran out of RAM"
            }
            Self::SharedMemory => "shared memory (/dev/shm) ran out, not the GPU's memory",
            Self::Jax => "JAX ran out of memory on the device",
            Self::TensorFlow => "TensorFlow ran out of memory for a tensor",
            Self::BfcAllocator => "TensorFlow's or XLA's allocator ran out of memory",
            Self::VllmNoCache => "vLLM has no memory left for its KV cache",
            Self::VllmSequence => "vLLM's KV cache is too small for one sequence of maximum length",
            Self::VllmNotFree => "less memory is free than vLLM is configured to use",
            Self::VllmSampler => "vLLM ran out of memory while warming up its sampler",
            Self::LlamaCpp => "llama.cpp could not allocate one of its buffers on the card",
            Self::OtherAllocator => {
                "a library with its own allocator ran out of memory on the card"
            }
            Self::CuPy => "CuPy ran out of memory on the card",
            Self::Paddle => "PaddlePaddle ran out of memory on the card",
            Self::KernelSharedMemory => {
                "a Triton kernel needs more shared memory than a multiprocessor has (not GPU memory)"
            }
            Self::DispatchedElsewhere => {
                "a quantized model does not fit on the card and cannot be split with the CPU"
            }
        }
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
            | Self::PageFile
            | Self::TensorFlowHost
            | Self::LlamaCppHost
            | Self::OllamaMemory => Memory::Host,
            Self::SharedMemory => Memory::Shared,
            Self::MpsAllocator | Self::Mlx => Memory::Unified,
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
            | Self::CudaAllocatorBare
            | Self::DispatchedElsewhere
            | Self::CudnnWorkspace
            | Self::JobLimit => 3,
            Self::CudaCall
            | Self::CudaMapping
            | Self::Cublas
            | Self::Cudnn
            | Self::OtherLibrary
            | Self::Nccl
            | Self::BfcAllocator
            | Self::DataLoaderKilled => 2,
            Self::CublasNotInitialized
            | Self::CudnnNotInitialized
            | Self::CudnnNoAlgorithm
            | Self::HostKillLikely
            | Self::Unsaid => 1,
        }
    }

    /// The message may have other causes than memory.
    pub fn is_uncertain(self) -> bool {
        self.weight() == 1 || self == Self::DataLoaderKilled
    }

    /// PyTorch's own allocator on a card, whose messages give the full figures.
    pub fn is_caching_allocator(self) -> bool {
        matches!(
            self,
            Self::CudaAllocator
                | Self::HipAllocator
                | Self::XpuAllocator
                | Self::NpuAllocator
                | Self::CudaMallocAsync
        )
    }
}

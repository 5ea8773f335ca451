//! The kinds of failures that are told apart.

use serde::Serialize;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// PyTorch's caching allocator on an NVIDIA card, with figures.
    CudaAllocator,
    /// The same, of which only the first words are left.
    CudaAllocatorBare,
    /// PyTorch with `backend:cudaMallocAsync`.
    CudaMallocAsync,
    /// More than 2^60 bytes: a size that overflowed.
    CudaAbsurdSize,
    /// `throw_on_cudamalloc_oom`: refused before it was tried.
    CudaRejected,
    HipAllocator,
    XpuAllocator,
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
    /// `CUBLAS_STATUS_NOT_INITIALIZED`: often memory, not always.
    CublasNotInitialized,
    Cudnn,
    /// `CUDNN_STATUS_NOT_INITIALIZED`, `INTERNAL_ERROR`: often memory, not always.
    CudnnNotInitialized,
    /// No algorithm of cuDNN's could be run: often its workspace did not fit.
    CudnnNoAlgorithm,
    /// A workspace beyond 1 TiB.
    CudnnWorkspace,
    /// cuFFT, cuSOLVER, cuSPARSE and others.
    OtherLibrary,
    Nccl,
    /// Page-locked host memory.
    PinnedMemory,
    /// The kernel says that it killed a process for want of memory.
    HostKill,
    /// A process was killed with signal 9: memory, likely.
    HostKillLikely,
    /// A batch system or container runtime says that its memory limit was met.
    JobLimit,
    DataLoaderKilled,
    /// `/dev/shm` is full.
    SharedMemory,
    Jax,
    TensorFlow,
    /// TensorFlow's or XLA's allocator, in its log.
    BfcAllocator,
    /// vLLM: nothing left for the KV cache.
    VllmNoCache,
    /// vLLM: the KV cache is too small for one sequence.
    VllmSequence,
    /// vLLM: the card is not as empty as was asked for.
    VllmNotFree,
    /// vLLM: the sampler's warm-up.
    VllmSampler,
    /// llama.cpp: a buffer of weights, KV cache or scratch space.
    LlamaCpp,
    /// A library beside PyTorch with memory of its own: ONNX Runtime, FAISS, RAPIDS, TensorRT.
    OtherAllocator,
    CuPy,
    Paddle,
    /// Triton: a kernel's shared memory on the chip, not the card's memory.
    KernelSharedMemory,
    /// A quantised model would have to lie partly on the CPU.
    DispatchedElsewhere,
}

/// Whose memory ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    Device,
    /// The machine's own.
    Host,
    /// `/dev/shm`.
    Shared,
    /// A Mac's, which card and machine share.
    Unified,
    /// The small memory inside a multiprocessor.
    OnChip,
}

impl Kind {
    /// What it is, in words.
    pub fn title(self) -> &'static str {
        match self {
            Self::CudaAllocator | Self::CudaAllocatorBare => {
                "PyTorch's allocator got no more memory from the CUDA driver"
            }
            Self::CudaMallocAsync => "PyTorch with cudaMallocAsync got no more memory from CUDA",
            Self::CudaAbsurdSize => "PyTorch was asked for more than 2^60 bytes at once",
            Self::CudaRejected => "PyTorch refused a request that would have passed its own limit",
            Self::HipAllocator => "PyTorch's allocator got no more memory from the ROCm driver",
            Self::XpuAllocator => "PyTorch's allocator got no more memory from the Intel GPU",
            Self::MpsAllocator => "PyTorch reached its limit of the Mac's unified memory",
            Self::CpuAllocator => "PyTorch got no more memory from the machine (not the GPU)",
            Self::PythonMemory => "Python got no more memory from the machine (not the GPU)",
            Self::CudaCall => {
                "a call to CUDA outside PyTorch's allocator found no memory on the card"
            }
            Self::CudaMapping => "the driver could not map memory for an expandable segment",
            Self::Cublas => "cuBLAS found no memory on the card: out of memory in disguise",
            Self::CublasNotInitialized => {
                "cuBLAS could not start: mostly out of memory in disguise"
            }
            Self::Cudnn => "cuDNN found no memory on the card: out of memory in disguise",
            Self::CudnnNotInitialized => "cuDNN could not start: mostly out of memory in disguise",
            Self::CudnnNoAlgorithm => {
                "no convolution algorithm could be run: mostly no memory for its workspace"
            }
            Self::CudnnWorkspace => "a cuDNN workspace of 1 TiB or more was asked for",
            Self::OtherLibrary => {
                "a CUDA library found no memory on the card: out of memory in disguise"
            }
            Self::Nccl => "NCCL found no memory on the card: out of memory in disguise",
            Self::PinnedMemory => "page-locked memory of the machine (not the GPU) ran out",
            Self::HostKill => {
                "Linux killed the process: the machine ran out of memory (not the GPU)"
            }
            Self::HostKillLikely => {
                "the process was killed with signal 9: most likely the machine ran out of memory"
            }
            Self::JobLimit => {
                "the job was killed: it reached its limit of the machine's memory (not the GPU's)"
            }
            Self::DataLoaderKilled => {
                "a DataLoader worker was killed: most likely the machine ran out of memory"
            }
            Self::SharedMemory => "shared memory (/dev/shm) ran out, not the GPU's memory",
            Self::Jax => "JAX found no memory on the device",
            Self::TensorFlow => "TensorFlow found no memory for a tensor",
            Self::BfcAllocator => "the allocator of TensorFlow or XLA ran out of memory",
            Self::VllmNoCache => "vLLM has no memory left for its KV cache",
            Self::VllmSequence => "vLLM's KV cache is too small for one sequence of full length",
            Self::VllmNotFree => "the card is not as empty as vLLM was told to expect",
            Self::VllmSampler => "vLLM ran out of memory while warming up its sampler",
            Self::LlamaCpp => "llama.cpp got no memory on the card for one of its buffers",
            Self::OtherAllocator => {
                "a library beside PyTorch, which takes its memory itself, found none on the card"
            }
            Self::CuPy => "CuPy found no memory on the card",
            Self::Paddle => "PaddlePaddle found no memory on the card",
            Self::KernelSharedMemory => {
                "a Triton kernel wants more shared memory than a multiprocessor has: not the GPU's \
                 memory"
            }
            Self::DispatchedElsewhere => {
                "a quantised model does not fit on the card, and may not lie elsewhere"
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
            | Self::DataLoaderKilled => Memory::Host,
            Self::SharedMemory => Memory::Shared,
            Self::MpsAllocator => Memory::Unified,
            Self::KernelSharedMemory => Memory::OnChip,
            _ => Memory::Device,
        }
    }

    /// How much it tells: the log's answer is the finding that tells most.
    pub fn weight(self) -> u8 {
        match self {
            Self::CudaAllocator
            | Self::CudaMallocAsync
            | Self::CudaAbsurdSize
            | Self::CudaRejected
            | Self::HipAllocator
            | Self::XpuAllocator
            | Self::MpsAllocator
            | Self::CpuAllocator
            | Self::VllmNoCache
            | Self::VllmSequence
            | Self::VllmNotFree
            | Self::VllmSampler
            | Self::LlamaCpp
            | Self::OtherAllocator
            | Self::CuPy
            | Self::Paddle
            | Self::KernelSharedMemory
            | Self::HostKill => 4,
            Self::Jax
            | Self::TensorFlow
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
            | Self::HostKillLikely => 1,
        }
    }

    /// It can have other causes than memory.
    pub fn is_uncertain(self) -> bool {
        self.weight() == 1 || self == Self::DataLoaderKilled
    }

    /// PyTorch's own allocator on a card, whose figures can be reasoned about.
    pub fn is_caching_allocator(self) -> bool {
        matches!(
            self,
            Self::CudaAllocator | Self::HipAllocator | Self::XpuAllocator | Self::CudaMallocAsync
        )
    }
}

//! The data sheet of one card: everything that software can ask a CUDA device about itself.

use serde::{Deserialize, Serialize};

/// A compute capability, such as 9.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Capability {
    pub major: u32,
    pub minor: u32,
}

impl Capability {
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// The form in which compilers name it: 9.0 is 90, 12.0 is 120.
    pub const fn as_arch_number(self) -> u32 {
        self.major * 10 + self.minor
    }
}

impl std::fmt::Display for Capability {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

/// Where the card sits on the (virtual) PCI bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PciAddress {
    pub domain: u32,
    pub bus: u32,
    pub device: u32,
}

/// Memory on the card that PyTorch's allocator does not own, by what causes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overhead {
    /// Taken when the CUDA context is created.
    pub context_bytes: u64,
    /// The part of it that the driver keeps for itself: NVML counts it as used, but not for any process.
    pub driver_bytes: u64,
    /// Taken when the first kernel is launched: the context's local memory grows.
    pub kernels_bytes: u64,
    /// Taken by each cuBLAS handle. PyTorch makes one per thread, and backward runs in its own.
    pub blas_handle_bytes: u64,
    /// Taken by the first matrix product.
    pub blas_code_bytes: u64,
    /// Taken by each cuDNN handle.
    pub dnn_handle_bytes: u64,
    /// Taken by the first cuDNN operation.
    pub dnn_code_bytes: u64,
    /// Taken by the first cuSOLVER handle.
    pub solver_bytes: u64,
    /// Taken by the first cuFFT plan.
    pub transform_bytes: u64,
    /// Taken by each stream beside the default one.
    pub stream_bytes: u64,
}

/// Everything a CUDA program can ask about one card.
///
/// Plain data: the CLI makes it from the catalogue, writes it into the session, and the stand-in
/// library answers from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSheet {
    /// The vendor's name, without our mark ("NVIDIA H200").
    pub name: String,
    pub capability: Capability,
    /// What `cudaDeviceProp.totalGlobalMem` says.
    pub total_bytes: u64,
    /// What the driver keeps and CUDA does not count: NVML includes it in its total, as `reserved`.
    pub reserved_bytes: u64,
    pub multiprocessors: u32,
    pub max_threads_per_multiprocessor: u32,
    pub max_blocks_per_multiprocessor: u32,
    pub shared_memory_per_block_optin_bytes: u32,
    pub shared_memory_per_multiprocessor_bytes: u32,
    pub reserved_shared_memory_per_block_bytes: u32,
    pub l2_cache_bytes: u32,
    pub persisting_l2_cache_max_bytes: u32,
    pub clock_khz: u32,
    pub memory_clock_khz: u32,
    pub memory_bus_bits: u32,
    pub is_integrated: bool,
    pub ecc_enabled: bool,
    pub pci: PciAddress,
    /// The vendor's PCI device number (0x2335 for an H200); 0 if not known.
    pub pci_device_number: u32,
    pub overhead: Overhead,
}

impl DeviceSheet {
    /// The name that programs see: marked, so that a rehearsal cannot pass for a real card.
    pub fn marked_name(&self) -> String {
        format!("{} (GhostGPU virtual)", self.name)
    }
}

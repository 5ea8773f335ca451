//! The CUDA runtime (`libcudart.so.12` and `.13`).
//!
//! Declarations are written from the public CUDA Runtime API reference, versions 12.8 and 13.0.

mod capture;
mod copy;
mod device;
mod entry_point;
pub mod errors;
mod event;
pub mod graph;
pub mod graph_order;
mod host_memory;
mod ipc;
mod launch;
mod library;
mod memory;
mod pool;
mod properties;
pub mod stream;

pub use copy::cudaMemcpy;
pub use device::{cudaDeviceSynchronize as synchronize_device, driver_version};
pub use entry_point::query_result;
pub use host_memory::{is_pinned, zero_without_pages};
pub use launch::{ASSUMED_REGISTERS, kernel_name, occupancy};
pub use memory::{cudaFree, cudaMalloc, cudaMemGetInfo, status_of};
pub use properties::{MAX_THREADS_PER_BLOCK, attribute};

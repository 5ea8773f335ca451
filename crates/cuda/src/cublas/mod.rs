//! cuBLAS: handles keep their settings, products are not computed, and results for the host are those
//! of vectors of zeros.
//!
//! Declarations written from NVIDIA's public documentation "cuBLAS", release 13.0 (the version 2
//! interface, which CUDA 12 shares).

mod batched_solvers;
mod copies;
mod handle;
mod host_results;
mod products;

use std::ffi::c_void;

pub use handle::Handle;

/// `cublasStatus_t`.
pub mod status {
    pub const SUCCESS: i32 = 0;
    pub const NOT_INITIALIZED: i32 = 1;
    pub const INVALID_VALUE: i32 = 7;
    pub const NOT_SUPPORTED: i32 = 15;
}

/// An address that cuBLAS was given: device memory, or a scalar on either side.
type Data = *const c_void;
/// A device array of device addresses, as the batched functions take it.
type DataArray = *const *const c_void;

/// What every operation does besides the work itself.
fn begin_work() {
    crate::state::note_blas_use();
}

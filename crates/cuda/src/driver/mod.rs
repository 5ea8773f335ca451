//! The CUDA driver (`libcuda.so.1`), as far as PyTorch, Triton and their extensions use it.
//!
//! Declarations are written from the public CUDA Driver API reference, versions 12.8 and 13.0. The
//! driver's private export tables are not answered; libraries that need them are replaced at their own
//! public interface instead.

mod context;
mod device;
mod launch;
mod memory;
mod module;
mod virtual_memory;

/// The driver and the runtime share their status codes as far as we use them.
pub use crate::runtime::errors::{
    INVALID_DEVICE, INVALID_RESOURCE_HANDLE, INVALID_VALUE, NO_DEVICE, NOT_INITIALIZED,
    NOT_SUPPORTED, SUCCESS,
};

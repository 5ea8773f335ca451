//! NCCL: communicators of one rank, in which every collective is a copy on the card; of several
//! processes of the run, which meet in its folder (`ranks`, `crates/rendezvous`); and of several
//! cards of one process.
//!
//! Declarations written from NVIDIA's public documentation "NCCL", release 2.28, and its newer
//! functions from release 2.30.

pub mod awaited;
mod collectives;
mod communicator;
pub mod ranks;
mod result;

use std::ffi::{c_char, c_int, c_void};

use crate::{log_call, real_library, refuse, refused, runtime, write_out};

/// `ncclResult_t`.
mod status {
    pub const SUCCESS: i32 = 0;
    pub const UNHANDLED_CUDA_ERROR: i32 = 1;
    pub const INTERNAL_ERROR: i32 = 3;
    pub const INVALID_ARGUMENT: i32 = 4;
    /// The closest that NCCL has to "not supported".
    pub const INVALID_USAGE: i32 = 5;
    pub const REMOTE_ERROR: i32 = 6;
}

/// `ncclComm_t`.
type Communicator = *mut c_void;

/// # Safety
/// `version` points to a writable integer or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclGetVersion(version: *mut c_int) -> i32 {
    log_call!(ncclGetVersion, version);
    if version.is_null() {
        return status::INVALID_ARGUMENT;
    }
    // The installed library knows its version without a card.
    let Some(address) = real_library::find_loaded(&[c"libnccl.so.2"], c"ncclGetVersion") else {
        refuse::refuse("NCCL", "ncclGetVersion");
        return status::INVALID_USAGE;
    };
    // SAFETY: this is the documented signature of ncclGetVersion.
    let function: unsafe extern "C" fn(*mut c_int) -> i32 = unsafe { std::mem::transmute(address) };
    // SAFETY: promised by the caller.
    unsafe { function(version) }
}

/// `ncclUniqueId`: 128 bytes that name a communicator before it exists.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct UniqueId([u8; 128]);

impl UniqueId {
    fn name(&self) -> String {
        ranks::name_of(&self.0)
    }
}

/// A name that differs between processes and between calls.
///
/// # Safety
/// `unique_id` points to 128 writable bytes or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclGetUniqueId(unique_id: *mut UniqueId) -> i32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static CALLS: AtomicU32 = AtomicU32::new(0);

    log_call!(ncclGetUniqueId, unique_id);
    if unique_id.is_null() {
        return status::INVALID_ARGUMENT;
    }
    let mut bytes = [0; 128];
    bytes[..8].copy_from_slice(b"ghostgpu");
    bytes[8..12].copy_from_slice(&std::process::id().to_le_bytes());
    bytes[12..16].copy_from_slice(&CALLS.fetch_add(1, Ordering::Relaxed).to_le_bytes());
    bytes[16..24].copy_from_slice(&ghostgpu_rendezvous::this_process().began.to_le_bytes());
    // SAFETY: promised by the caller.
    unsafe { write_out(unique_id, UniqueId(bytes)) };
    status::SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGetErrorString(code: i32) -> *const c_char {
    let text = match code {
        status::SUCCESS => c"no error",
        status::UNHANDLED_CUDA_ERROR => {
            c"unhandled cuda error (run with NCCL_DEBUG=INFO for details)"
        }
        status::INTERNAL_ERROR => {
            c"internal error - please report this issue to the NCCL developers"
        }
        status::INVALID_ARGUMENT => c"invalid argument (run with NCCL_DEBUG=WARN for details)",
        status::INVALID_USAGE => c"invalid usage (run with NCCL_DEBUG=WARN for details)",
        status::REMOTE_ERROR => c"remote process exited or there was a network error",
        _ => c"unknown NCCL result",
    };
    text.as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGetLastError(_communicator: Communicator) -> *const c_char {
    ranks::sentence().unwrap_or(c"".as_ptr())
}

// Memory of NCCL's own, windows onto it, and access to it from kernels: not measured.
refused! {
    "NCCL", status::INVALID_USAGE;
    ncclCommMemStats, ncclCommWindowRegister, ncclCommWindowDeregister,
    ncclWinGetUserPtr, ncclDevCommCreate, ncclDevCommDestroy, ncclGetPeerDevicePointer,
    ncclGetLsaMultimemDevicePointer, ncclPutSignal, ncclSignal, ncclWaitSignal,
}

// An estimate of time.
refused! {
    "NCCL", status::INVALID_USAGE;
    ncclGroupSimulateEnd,
}

// Ranks that join later.
refused! {
    "NCCL", status::INVALID_USAGE;
    ncclCommGetUniqueId, ncclCommGrow,
}

/// Memory that ranks can register for faster collectives: whole pages of the card, like any other.
///
/// # Safety
/// `pointer` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclMemAlloc(pointer: *mut *mut c_void, bytes: usize) -> i32 {
    log_call!(ncclMemAlloc, pointer, bytes);
    // SAFETY: promised by the caller.
    status_of(unsafe { runtime::cudaMalloc(pointer, bytes) })
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclMemFree(pointer: *mut c_void) -> i32 {
    log_call!(ncclMemFree, pointer);
    status_of(runtime::cudaFree(pointer))
}

/// What NCCL answers when the runtime has answered so.
fn status_of(runtime_status: i32) -> i32 {
    match runtime_status {
        0 => status::SUCCESS,
        _ => status::UNHANDLED_CUDA_ERROR,
    }
}

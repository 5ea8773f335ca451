//! Status codes, their names and texts, and each thread's last error.

use std::cell::Cell;
use std::ffi::{CStr, c_char};

use crate::nccl;

pub const SUCCESS: i32 = 0;
pub const INVALID_VALUE: i32 = 1;
pub const MEMORY_ALLOCATION: i32 = 2;
pub const NOT_INITIALIZED: i32 = 3;
pub const NO_DEVICE: i32 = 100;
pub const INVALID_DEVICE: i32 = 101;
pub const PEER_ACCESS_UNSUPPORTED: i32 = 217;
pub const INVALID_RESOURCE_HANDLE: i32 = 400;
pub const SYMBOL_NOT_FOUND: i32 = 500;
pub const NOT_READY: i32 = 600;
/// `cudaErrorLaunchTimeout`: a kernel that waits for other ranks would never end.
pub const RANKS_CANNOT_GO_ON: i32 = 702;
pub const PEER_ACCESS_ALREADY_ENABLED: i32 = 704;
pub const NOT_SUPPORTED: i32 = 801;
pub const STREAM_CAPTURE_UNSUPPORTED: i32 = 900;
pub const STREAM_CAPTURE_INVALIDATED: i32 = 901;
pub const ILLEGAL_STATE: i32 = 401;

thread_local! {
    static LAST_ERROR: Cell<i32> = const { Cell::new(SUCCESS) };
}

/// Returns a status to the caller, remembering it when it is an error.
pub fn report(status: i32) -> i32 {
    if status != SUCCESS {
        LAST_ERROR.set(status);
    }
    status
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaGetLastError() -> i32 {
    LAST_ERROR.replace(SUCCESS)
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaPeekAtLastError() -> i32 {
    LAST_ERROR.get()
}

/// Code, name in the runtime, name in the driver, text: the codes that this library, or code compiled
/// into PyTorch, can return.
const TABLE: [(i32, &CStr, &CStr, &CStr); 19] = [
    (SUCCESS, c"cudaSuccess", c"CUDA_SUCCESS", c"no error"),
    (
        INVALID_VALUE,
        c"cudaErrorInvalidValue",
        c"CUDA_ERROR_INVALID_VALUE",
        c"invalid argument",
    ),
    (
        MEMORY_ALLOCATION,
        c"cudaErrorMemoryAllocation",
        c"CUDA_ERROR_OUT_OF_MEMORY",
        c"out of memory",
    ),
    (
        NOT_INITIALIZED,
        c"cudaErrorInitializationError",
        c"CUDA_ERROR_NOT_INITIALIZED",
        c"initialization error",
    ),
    (
        98,
        c"cudaErrorInvalidDeviceFunction",
        c"CUDA_ERROR_UNKNOWN",
        c"invalid device function",
    ),
    (
        209,
        c"cudaErrorNoKernelImageForDevice",
        c"CUDA_ERROR_NO_BINARY_FOR_GPU",
        c"no kernel image is available for execution on the device",
    ),
    (
        NO_DEVICE,
        c"cudaErrorNoDevice",
        c"CUDA_ERROR_NO_DEVICE",
        c"no CUDA-capable device is detected",
    ),
    (
        INVALID_DEVICE,
        c"cudaErrorInvalidDevice",
        c"CUDA_ERROR_INVALID_DEVICE",
        c"invalid device ordinal",
    ),
    (
        PEER_ACCESS_UNSUPPORTED,
        c"cudaErrorPeerAccessUnsupported",
        c"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
        c"peer access is not supported between these two devices",
    ),
    (
        INVALID_RESOURCE_HANDLE,
        c"cudaErrorInvalidResourceHandle",
        c"CUDA_ERROR_INVALID_HANDLE",
        c"invalid resource handle",
    ),
    (
        ILLEGAL_STATE,
        c"cudaErrorIllegalState",
        c"CUDA_ERROR_ILLEGAL_STATE",
        c"the operation cannot be performed in the present state",
    ),
    (
        SYMBOL_NOT_FOUND,
        c"cudaErrorSymbolNotFound",
        c"CUDA_ERROR_NOT_FOUND",
        c"named symbol not found",
    ),
    (
        NOT_READY,
        c"cudaErrorNotReady",
        c"CUDA_ERROR_NOT_READY",
        c"device not ready",
    ),
    (
        RANKS_CANNOT_GO_ON,
        c"cudaErrorLaunchTimeout",
        c"CUDA_ERROR_LAUNCH_TIMEOUT",
        c"the launch timed out and was terminated",
    ),
    (
        PEER_ACCESS_ALREADY_ENABLED,
        c"cudaErrorPeerAccessAlreadyEnabled",
        c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
        c"peer access is already enabled",
    ),
    (
        NOT_SUPPORTED,
        c"cudaErrorNotSupported",
        c"CUDA_ERROR_NOT_SUPPORTED",
        c"operation not supported",
    ),
    (
        STREAM_CAPTURE_UNSUPPORTED,
        c"cudaErrorStreamCaptureUnsupported",
        c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
        c"operation not permitted when stream is capturing",
    ),
    (
        STREAM_CAPTURE_INVALIDATED,
        c"cudaErrorStreamCaptureInvalidated",
        c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
        c"operation failed due to a previous error during capture",
    ),
    (
        999,
        c"cudaErrorUnknown",
        c"CUDA_ERROR_UNKNOWN",
        c"unknown error",
    ),
];

fn entry(status: i32) -> Option<&'static (i32, &'static CStr, &'static CStr, &'static CStr)> {
    TABLE.iter().find(|(code, ..)| *code == status)
}

/// The driver's name and the text of a status, if it is one of ours.
pub fn driver_name_and_text(status: i32) -> Option<(&'static CStr, &'static CStr)> {
    entry(status).map(|&(_, _, name, text)| (name, text))
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaGetErrorName(status: i32) -> *const c_char {
    let name = entry(status).map_or(c"unrecognized error code", |&(_, name, _, _)| name);
    name.as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaGetErrorString(status: i32) -> *const c_char {
    // PyTorch raises this text at the user's line.
    if status == RANKS_CANNOT_GO_ON
        && let Some(sentence) = nccl::ranks::sentence()
    {
        return sentence;
    }
    let text = entry(status).map_or(c"unrecognized error code", |&(_, _, _, text)| text);
    text.as_ptr()
}

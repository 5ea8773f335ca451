//! The library's handle, its versions and its error texts.

use std::ffi::{CStr, c_char, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::objects::{Registry, write};
use super::status;
use crate::runtime::stream::set_library_stream;
use crate::{call_log, real_library, state};

/// What `cudnnHandle_t` stands for.
struct Handle {
    stream: AtomicUsize,
}

static HANDLES: Registry<Handle> = Registry::new();

/// The names under which PyTorch loads cuDNN.
pub const LIBRARY_NAMES: [&CStr; 2] = [c"libcudnn.so.9", c"libcudnn.so.8"];

/// The version to report if the script's own cuDNN is not loaded: the one that torch 2.11 ships.
const DEFAULT_VERSION: usize = 91_900;

/// # Safety
/// `handle` must be null or a valid place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnCreate(handle: *mut *mut c_void) -> i32 {
    call_log::call("cudnnCreate", String::new);
    if state::current_with_context().is_none() {
        return status::NOT_INITIALIZED;
    }
    state::note_new_object(|overhead| overhead.dnn_handle_bytes);
    let made = HANDLES.insert(Handle {
        stream: AtomicUsize::new(0),
    });
    // SAFETY: promised by the caller.
    if unsafe { write(handle, made) } {
        status::SUCCESS
    } else {
        status::BAD_PARAM_NULL_POINTER
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cudnnDestroy(handle: *mut c_void) -> i32 {
    call_log::call("cudnnDestroy", String::new);
    HANDLES.remove(handle);
    status::SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cudnnSetStream(handle: *mut c_void, stream: *mut c_void) -> i32 {
    call_log::call("cudnnSetStream", || format!("{handle:?}, {stream:?}"));
    let Some(handle) = HANDLES.get(handle) else {
        return status::BAD_PARAM;
    };
    handle.stream.store(stream as usize, Ordering::Relaxed);
    set_library_stream(stream as usize);
    status::SUCCESS
}

/// # Safety
/// `stream` must be null or a valid place for a stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnGetStream(handle: *mut c_void, stream: *mut *mut c_void) -> i32 {
    let Some(handle) = HANDLES.get(handle) else {
        return status::BAD_PARAM;
    };
    let current = handle.stream.load(Ordering::Relaxed) as *mut c_void;
    // SAFETY: promised by the caller.
    if unsafe { write(stream, current) } {
        status::SUCCESS
    } else {
        status::BAD_PARAM_NULL_POINTER
    }
}

/// The version of the cuDNN that the script has installed.
#[unsafe(no_mangle)]
pub extern "C" fn cudnnGetVersion() -> usize {
    let Some(address) = real_library::find_loaded(&LIBRARY_NAMES, c"cudnnGetVersion") else {
        return DEFAULT_VERSION;
    };
    if std::ptr::eq(address, cudnnGetVersion as *const c_void) {
        return DEFAULT_VERSION;
    }
    // SAFETY: the documented signature; the function returns a constant and touches no device.
    let function: extern "C" fn() -> usize = unsafe { std::mem::transmute(address) };
    function()
}

#[unsafe(no_mangle)]
pub extern "C" fn cudnnGetCudartVersion() -> usize {
    real_library::cuda_runtime_version() as usize
}

/// # Safety
/// `value` must be null or a valid place for an int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnGetProperty(property: i32, value: *mut i32) -> i32 {
    let version = cudnnGetVersion();
    let part = match property {
        0 => version / 10_000,
        1 => version / 100 % 100,
        2 => version % 100,
        _ => return status::BAD_PARAM,
    };
    // SAFETY: promised by the caller.
    if unsafe { write(value, part as i32) } {
        status::SUCCESS
    } else {
        status::BAD_PARAM_NULL_POINTER
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cudnnGetErrorString(code: i32) -> *const c_char {
    let text = match code {
        status::SUCCESS => c"CUDNN_STATUS_SUCCESS",
        status::NOT_INITIALIZED => c"CUDNN_STATUS_NOT_INITIALIZED",
        status::BAD_PARAM => c"CUDNN_STATUS_BAD_PARAM",
        status::BAD_PARAM_NULL_POINTER => c"CUDNN_STATUS_BAD_PARAM_NULL_POINTER",
        status::BAD_PARAM_NOT_FINALIZED => c"CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED",
        2001..=2999 => c"CUDNN_STATUS_BAD_PARAM",
        3000..=3999 => c"CUDNN_STATUS_NOT_SUPPORTED",
        4000..=4999 => c"CUDNN_STATUS_INTERNAL_ERROR",
        5000..=5999 => c"CUDNN_STATUS_EXECUTION_FAILED",
        _ => c"CUDNN_UNKNOWN_STATUS",
    };
    text.as_ptr()
}

static LAST_ERROR: Mutex<String> = Mutex::new(String::new());

/// Keeps a sentence for `cudnnGetLastErrorString`, which PyTorch adds to its own error.
pub fn set_last_error(text: &str) {
    if let Ok(mut last) = LAST_ERROR.lock() {
        text.clone_into(&mut last);
    }
}

/// # Safety
/// `message` must be null or have room for `room` characters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnGetLastErrorString(message: *mut c_char, room: usize) {
    if message.is_null() || room == 0 {
        return;
    }
    let text = LAST_ERROR
        .lock()
        .map(|last| last.clone())
        .unwrap_or_default();
    let length = text.len().min(room - 1);
    // SAFETY: `length` + 1 characters fit, as the caller promises; the source is as long.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), message, length);
        message.add(length).write(0);
    }
}

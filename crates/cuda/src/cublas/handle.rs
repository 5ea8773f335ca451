//! The library handle: created, configured, asked for its settings, destroyed.

use std::ffi::{c_char, c_int, c_void};

use super::status;
use crate::handles::Handles;
use crate::runtime::stream::set_library_stream;
use crate::{cublaslt, log_call, observer, state, write_out};

/// `cublasHandle_t`.
pub type Handle = *mut c_void;

static HANDLES: Handles<Settings> = Handles::starting_at(0xB1A5_0000);

/// What a handle remembers. Zeros are the documented defaults: default stream, default math, scalars on the host, atomics
/// not allowed, all multiprocessors.
#[derive(Clone, Copy, Debug, Default)]
struct Settings {
    stream: usize,
    math_mode: c_int,
    pointer_mode: PointerMode,
    atomics_mode: c_int,
    multiprocessor_target: c_int,
}

/// Where scalar parameters and results live (`cublasPointerMode_t`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PointerMode {
    #[default]
    Host,
    Device,
}

/// Runs `change` on a handle's settings, or reports that there is no such handle.
fn with_settings(handle: Handle, change: impl FnOnce(&mut Settings)) -> i32 {
    match HANDLES.with(handle as usize, change) {
        Some(()) => status::SUCCESS,
        None => status::NOT_INITIALIZED,
    }
}

/// The handle's pointer mode; the default for no handle.
pub fn pointer_mode(handle: Handle) -> PointerMode {
    let mut mode = PointerMode::default();
    with_settings(handle, |settings| mode = settings.pointer_mode);
    mode
}

/// The handle's math mode; the default for no handle.
pub fn math_mode(handle: Handle) -> c_int {
    let mut mode = 0;
    with_settings(handle, |settings| mode = settings.math_mode);
    mode
}

/// # Safety
/// `handle` points to writable memory for one handle, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasCreate_v2(handle: *mut Handle) -> i32 {
    log_call!(cublasCreate_v2, handle);
    if handle.is_null() {
        return status::INVALID_VALUE;
    }
    if state::current_with_context().is_none() {
        return status::NOT_INITIALIZED;
    }
    state::note_new_object(|overhead| overhead.blas_handle_bytes);
    // SAFETY: promised by the caller.
    unsafe { write_out(handle, HANDLES.insert(Settings::default()) as Handle) };
    status::SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasDestroy_v2(handle: Handle) -> i32 {
    log_call!(cublasDestroy_v2, handle);
    match HANDLES.remove(handle as usize) {
        Some(_) => status::SUCCESS,
        None => status::NOT_INITIALIZED,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasSetStream_v2(handle: Handle, stream: *mut c_void) -> i32 {
    log_call!(cublasSetStream_v2, handle, stream);
    set_library_stream(stream as usize);
    with_settings(handle, |settings| settings.stream = stream as usize)
}

/// # Safety
/// `stream` points to writable memory or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasGetStream_v2(handle: Handle, stream: *mut *mut c_void) -> i32 {
    log_call!(cublasGetStream_v2, handle, stream);
    with_settings(handle, |settings| {
        // SAFETY: promised by the caller.
        unsafe { write_out(stream, settings.stream as *mut c_void) }
    })
}

/// The workspace is the caller's own allocation and nothing is ever computed in it.
#[unsafe(no_mangle)]
pub extern "C" fn cublasSetWorkspace_v2(
    handle: Handle,
    workspace: *mut c_void,
    workspace_bytes: usize,
) -> i32 {
    log_call!(cublasSetWorkspace_v2, handle, workspace, workspace_bytes);
    observer::workspace(workspace);
    with_settings(handle, |_| ())
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasSetMathMode(handle: Handle, mode: c_int) -> i32 {
    log_call!(cublasSetMathMode, handle, mode);
    with_settings(handle, |settings| settings.math_mode = mode)
}

/// # Safety
/// `mode` points to writable memory or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasGetMathMode(handle: Handle, mode: *mut c_int) -> i32 {
    log_call!(cublasGetMathMode, handle, mode);
    // SAFETY: promised by the caller.
    with_settings(handle, |settings| unsafe {
        write_out(mode, settings.math_mode)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasSetPointerMode_v2(handle: Handle, mode: c_int) -> i32 {
    log_call!(cublasSetPointerMode_v2, handle, mode);
    let mode = match mode {
        0 => PointerMode::Host,
        1 => PointerMode::Device,
        _ => return status::INVALID_VALUE,
    };
    with_settings(handle, |settings| settings.pointer_mode = mode)
}

/// # Safety
/// `mode` points to writable memory or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasGetPointerMode_v2(handle: Handle, mode: *mut c_int) -> i32 {
    log_call!(cublasGetPointerMode_v2, handle, mode);
    with_settings(handle, |settings| {
        // SAFETY: promised by the caller.
        unsafe { write_out(mode, settings.pointer_mode as c_int) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasSetAtomicsMode(handle: Handle, mode: c_int) -> i32 {
    log_call!(cublasSetAtomicsMode, handle, mode);
    with_settings(handle, |settings| settings.atomics_mode = mode)
}

/// # Safety
/// `mode` points to writable memory or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasGetAtomicsMode(handle: Handle, mode: *mut c_int) -> i32 {
    log_call!(cublasGetAtomicsMode, handle, mode);
    // SAFETY: promised by the caller.
    with_settings(handle, |settings| unsafe {
        write_out(mode, settings.atomics_mode)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasSetSmCountTarget(handle: Handle, count: c_int) -> i32 {
    log_call!(cublasSetSmCountTarget, handle, count);
    with_settings(handle, |settings| settings.multiprocessor_target = count)
}

/// # Safety
/// `count` points to writable memory or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasGetSmCountTarget(handle: Handle, count: *mut c_int) -> i32 {
    log_call!(cublasGetSmCountTarget, handle, count);
    with_settings(handle, |settings| {
        // SAFETY: promised by the caller.
        unsafe { write_out(count, settings.multiprocessor_target) }
    })
}

/// The installed cuBLAS's version. The two libraries are released together, and cuBLASLt tells its
/// version without a card.
///
/// # Safety
/// `version` points to writable memory or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasGetVersion_v2(_handle: Handle, version: *mut c_int) -> i32 {
    log_call!(cublasGetVersion_v2, version);
    let Some(installed) = cublaslt::installed_version() else {
        crate::refuse::refuse("cuBLAS", "cublasGetVersion_v2");
        return status::NOT_SUPPORTED;
    };
    let Ok(installed) = c_int::try_from(installed) else {
        return status::NOT_SUPPORTED;
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(version, installed) };
    status::SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasGetStatusString(code: i32) -> *const c_char {
    let text = match code {
        status::SUCCESS => c"the operation completed successfully",
        status::NOT_INITIALIZED => c"the library was not initialized",
        3 => c"the resource allocation failed",
        status::INVALID_VALUE => c"an unsupported numerical value was passed to the function",
        status::NOT_SUPPORTED => c"the functionality requested is not supported",
        _ => c"unknown cuBLAS status",
    };
    text.as_ptr()
}

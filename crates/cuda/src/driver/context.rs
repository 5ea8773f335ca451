//! Contexts. Each device has one, its primary context, named by the device's number.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};

use super::{INVALID_DEVICE, INVALID_VALUE, SUCCESS};
use crate::{call_log, state, with_threads_own, write_out};

/// The handle of device 0's primary context; the others follow.
const FIRST_CONTEXT: usize = 0xc700_0001;

fn context_of(device: c_int) -> usize {
    FIRST_CONTEXT + device as usize
}

fn device_of(context: usize) -> Option<c_int> {
    let device = c_int::try_from(context.checked_sub(FIRST_CONTEXT)?).ok()?;
    state::visible_device(device).map(|_| device)
}

/// The context that is current on this thread; 0 until the device's context has been made.
fn current_context() -> usize {
    match state::current_device() {
        Some(card) if card.has_context() => context_of(state::current_index()),
        _ => 0,
    }
}

/// # Safety
/// `context` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetCurrent(context: *mut usize) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { write_out(context, current_context()) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCurrent(context: usize) -> c_int {
    call_log::call("cuCtxSetCurrent", || format!("{context:#x}"));
    if context == 0 {
        return SUCCESS;
    }
    let Some(device) = device_of(context) else {
        return INVALID_VALUE;
    };
    state::set_current_index(device);
    SUCCESS
}

thread_local! {
    static PUSHED: RefCell<Vec<c_int>> = const { RefCell::new(Vec::new()) };
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxPushCurrent_v2(context: usize) -> c_int {
    let Some(device) = device_of(context) else {
        return INVALID_VALUE;
    };
    with_threads_own(&PUSHED, |stack| stack.push(state::current_index()));
    state::set_current_index(device);
    SUCCESS
}

/// The name without a version, which cuDNN looks up.
#[unsafe(no_mangle)]
pub extern "C" fn cuCtxPushCurrent(context: usize) -> c_int {
    cuCtxPushCurrent_v2(context)
}

/// The name without a version, which cuDNN looks up.
///
/// # Safety
/// `context` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxPopCurrent(context: *mut usize) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { cuCtxPopCurrent_v2(context) }
}

/// # Safety
/// `context` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxPopCurrent_v2(context: *mut usize) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { write_out(context, current_context()) };
    if let Some(device) = with_threads_own(&PUSHED, Vec::pop).flatten() {
        state::set_current_index(device);
    }
    SUCCESS
}

/// # Safety
/// `device` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetDevice(device: *mut c_int) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { write_out(device, state::current_index()) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSynchronize() -> c_int {
    crate::runtime::synchronize_device()
}

/// # Safety
/// `version` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetApiVersion(_context: usize, version: *mut u32) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { write_out(version, 3020) };
    SUCCESS
}

/// # Safety
/// `flags` and `active` are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxGetState(
    device: c_int,
    flags: *mut u32,
    active: *mut c_int,
) -> c_int {
    let Some(card) = state::visible_device(device) else {
        return INVALID_DEVICE;
    };
    // SAFETY: promised by the caller.
    unsafe {
        write_out(flags, 0);
        write_out(active, c_int::from(card.has_context()));
    }
    SUCCESS
}

/// # Safety
/// `context` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut usize, device: c_int) -> c_int {
    call_log::call("cuDevicePrimaryCtxRetain", || device.to_string());
    let Some(card) = state::visible_device(device) else {
        return INVALID_DEVICE;
    };
    card.ensure_context();
    // SAFETY: promised by the caller.
    unsafe { write_out(context, context_of(device)) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> c_int {
    match state::visible_device(device) {
        Some(_) => SUCCESS,
        None => INVALID_DEVICE,
    }
}

/// The form before CUDA 11, with the same parameters.
#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRelease(device: c_int) -> c_int {
    cuDevicePrimaryCtxRelease_v2(device)
}

/// The limits of a fresh context, as read on an H200: stack, printf buffer, malloc heap.
const LIMITS: [(c_int, usize); 3] = [(0, 1024), (1, 8_650_752), (2, 8_388_608)];

/// # Safety
/// `value` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetLimit(value: *mut usize, limit: c_int) -> c_int {
    let Some(&(_, answer)) = LIMITS.iter().find(|&&(number, _)| number == limit) else {
        return super::NOT_SUPPORTED;
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(value, answer) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetLimit(limit: c_int, value: usize) -> c_int {
    call_log::call("cuCtxSetLimit", || format!("{limit}, {value}"));
    SUCCESS
}

/// # Safety
/// `context` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamGetCtx(_stream: usize, context: *mut usize) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { write_out(context, current_context()) };
    SUCCESS
}

/// The driver's private tables are not part of its public interface and are not provided. That is not
/// reported as a refusal: NVRTC asks at every compilation and works without them.
#[unsafe(no_mangle)]
pub extern "C" fn cuGetExportTable(_table: *mut *const c_void, _id: *const c_void) -> c_int {
    call_log::call("cuGetExportTable", String::new);
    super::NOT_SUPPORTED
}

/// Registers a callback for the driver's own error log. There is no such log, so it is never called.
///
/// # Safety
/// `registered` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLogsRegisterCallback(
    _callback: *const c_void,
    _data: *mut c_void,
    registered: *mut usize,
) -> c_int {
    const LISTENER: usize = 0xca11_0001;
    // SAFETY: promised by the caller.
    unsafe { write_out(registered, LISTENER) };
    SUCCESS
}

crate::harmless! { cuLogsUnregisterCallback }

// Contexts on a part of the multiprocessors.
crate::refused! { "CUDA driver", super::NOT_SUPPORTED;
    cuDeviceGetDevResource, cuDevSmResourceSplitByCount, cuDevResourceGenerateDesc, cuGreenCtxCreate,
    cuGreenCtxDestroy, cuGreenCtxStreamCreate, cuCtxFromGreenCtx,
}

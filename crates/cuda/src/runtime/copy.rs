//! Copying and filling memory.

use std::ffi::{c_int, c_void};

use super::errors::{INVALID_VALUE, NO_DEVICE, SUCCESS, report};
use super::stream::note_work;
use crate::readback::{self, Direction};
use crate::{call_log, handed_on, state};

/// # Safety
/// The host side of the copy is valid for `bytes` bytes.
unsafe fn copy(
    function: &str,
    target: *mut c_void,
    source: *const c_void,
    bytes: usize,
    kind: c_int,
) -> c_int {
    if state::current_with_context().is_none() {
        return report(NO_DEVICE);
    }
    let Some(direction) = Direction::from_kind(kind, target, source) else {
        return report(INVALID_VALUE);
    };
    call_log::call(function, || {
        format!("{target:p}, {source:p}, {bytes} bytes, {direction:?}")
    });
    // SAFETY: promised by the caller.
    unsafe { readback::copy(target, source, bytes, direction) };
    SUCCESS
}

/// # Safety
/// The host side of the copy is valid for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaMemcpy(
    target: *mut c_void,
    source: *const c_void,
    bytes: usize,
    kind: c_int,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { copy("cudaMemcpy", target, source, bytes, kind) }
}

/// # Safety
/// The host side of the copy is valid for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaMemcpyAsync(
    target: *mut c_void,
    source: *const c_void,
    bytes: usize,
    kind: c_int,
    stream: usize,
) -> c_int {
    note_work(stream);
    // SAFETY: promised by the caller.
    unsafe { copy("cudaMemcpyAsync", target, source, bytes, kind) }
}

/// # Safety
/// The host side of the copy is valid for `height` rows of `width` bytes at the given pitch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaMemcpy2DAsync(
    target: *mut c_void,
    target_pitch: usize,
    source: *const c_void,
    source_pitch: usize,
    width: usize,
    height: usize,
    kind: c_int,
    stream: usize,
) -> c_int {
    note_work(stream);
    let Some(direction) = Direction::from_kind(kind, target, source) else {
        return report(INVALID_VALUE);
    };
    call_log::call("cudaMemcpy2DAsync", || {
        format!("{target:p}, {source:p}, {height} rows of {width} bytes, {direction:?}")
    });
    if matches!(
        direction,
        Direction::HostToDevice | Direction::DeviceToDevice
    ) {
        handed_on::forget_all();
        return SUCCESS;
    }
    for row in 0..height {
        // SAFETY: promised by the caller, row by row.
        unsafe {
            let target = target.byte_add(row * target_pitch);
            readback::copy(
                target,
                source.byte_add(row * source_pitch),
                width,
                direction,
            );
        }
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaMemcpyPeerAsync(
    target: *mut c_void,
    target_device: c_int,
    source: *const c_void,
    source_device: c_int,
    bytes: usize,
    stream: usize,
) -> c_int {
    note_work(stream);
    handed_on::forget_all();
    call_log::call("cudaMemcpyPeerAsync", || {
        format!("{target:p} on {target_device}, {source:p} on {source_device}, {bytes} bytes")
    });
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaMemcpyToSymbol(
    symbol: *const c_void,
    _source: *const c_void,
    bytes: usize,
    _offset: usize,
    _kind: c_int,
) -> c_int {
    call_log::call("cudaMemcpyToSymbol", || {
        format!("{symbol:p}, {bytes} bytes")
    });
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaMemset(target: *mut c_void, value: c_int, bytes: usize) -> c_int {
    handed_on::forget_all();
    call_log::call("cudaMemset", || {
        format!("{target:p}, {value}, {bytes} bytes")
    });
    match state::current_with_context() {
        Some(_) => SUCCESS,
        None => report(NO_DEVICE),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaMemsetAsync(
    target: *mut c_void,
    value: c_int,
    bytes: usize,
    stream: usize,
) -> c_int {
    note_work(stream);
    cudaMemset(target, value, bytes)
}

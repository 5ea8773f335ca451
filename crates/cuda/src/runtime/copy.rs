//! Copying and filling memory.

use std::ffi::{c_int, c_void};

use super::errors::{INVALID_VALUE, NO_DEVICE, SUCCESS, report};
use super::graph::Node;
use super::host_memory::is_pinned;
use super::stream::{self, submit};
use crate::readback::{self, Direction};
use crate::{call_log, clock, handed_on, state, work};

/// The stream that functions without one use.
const DEFAULT_STREAM: usize = 0;

/// Submits a copy to a stream.
///
/// If its host memory is not pinned, the host waits: such a copy goes through a buffer of the driver.
fn submit_copy(
    stream: usize,
    target: *const c_void,
    source: *const c_void,
    bytes: usize,
    direction: Direction,
) -> c_int {
    let (duration, host_side) = match direction {
        Direction::HostToHost => (clock::copy_to_or_from_host(bytes), None),
        Direction::HostToDevice => (clock::copy_to_or_from_host(bytes), Some(source)),
        Direction::DeviceToHost => (clock::copy_to_or_from_host(bytes), Some(target)),
        Direction::DeviceToDevice => (clock::copy_on_card(bytes), None),
    };
    submit(stream, Node::Copy, duration);
    let is_pinned = host_side.is_some_and(|address| is_pinned(address as usize));
    work::copy(direction.into(), bytes, is_pinned);
    if host_side.is_some() && !is_pinned {
        return report(stream::host_waits_for(stream));
    }
    SUCCESS
}

/// # Safety
/// The host side of the copy is valid for `bytes` bytes.
unsafe fn copy(
    function: &str,
    target: *mut c_void,
    source: *const c_void,
    bytes: usize,
    kind: c_int,
    stream: usize,
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
    let status = submit_copy(stream, target, source, bytes, direction);
    // SAFETY: promised by the caller.
    unsafe { readback::copy(target, source, bytes, direction) };
    status
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
    let status = unsafe { copy("cudaMemcpy", target, source, bytes, kind, DEFAULT_STREAM) };
    if Direction::from_kind(kind, target, source) != Some(Direction::DeviceToDevice) {
        return report(stream::host_waits_for(DEFAULT_STREAM));
    }
    status
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
    // SAFETY: promised by the caller.
    unsafe { copy("cudaMemcpyAsync", target, source, bytes, kind, stream) }
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
    let Some(direction) = Direction::from_kind(kind, target, source) else {
        return report(INVALID_VALUE);
    };
    call_log::call("cudaMemcpy2DAsync", || {
        format!("{target:p}, {source:p}, {height} rows of {width} bytes, {direction:?}")
    });
    let status = submit_copy(stream, target, source, width * height, direction);
    if matches!(
        direction,
        Direction::HostToDevice | Direction::DeviceToDevice
    ) {
        handed_on::forget_all();
        return status;
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
    status
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
    submit(stream, Node::Copy, clock::copy_to_or_from_host(bytes));
    work::copy(work::Direction::BetweenCards, bytes, true);
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
    cudaMemsetAsync(target, value, bytes, DEFAULT_STREAM)
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaMemsetAsync(
    target: *mut c_void,
    value: c_int,
    bytes: usize,
    stream: usize,
) -> c_int {
    handed_on::forget_all();
    call_log::call("cudaMemset", || {
        format!("{target:p}, {value}, {bytes} bytes, {stream:#x}")
    });
    if state::current_with_context().is_none() {
        return report(NO_DEVICE);
    }
    submit(stream, Node::Fill, clock::copy_on_card(bytes));
    work::fill(bytes);
    SUCCESS
}

//! Choosing a device and asking about it.

use std::ffi::{c_char, c_int};

use super::errors::{
    INVALID_DEVICE, INVALID_VALUE, NO_DEVICE, NOT_SUPPORTED, PEER_ACCESS_ALREADY_ENABLED, SUCCESS,
    report,
};
use super::properties;
use crate::nccl::{awaited, ranks};
use crate::{call_log, clock, real_library, state, work, write_out};

/// # Safety
/// `count` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaGetDeviceCount(count: *mut c_int) -> c_int {
    let visible = state::visible_count();
    call_log::call("cudaGetDeviceCount", || visible.to_string());
    // SAFETY: promised by the caller.
    unsafe { write_out(count, visible as c_int) };
    report(if visible == 0 { NO_DEVICE } else { SUCCESS })
}

/// # Safety
/// `device` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaGetDevice(device: *mut c_int) -> c_int {
    if state::visible_count() == 0 {
        return report(NO_DEVICE);
    }
    // SAFETY: promised by the caller.
    unsafe { write_out(device, state::current_index()) };
    SUCCESS
}

/// Selects a device. Since CUDA 12 this also creates its context.
#[unsafe(no_mangle)]
pub extern "C" fn cudaSetDevice(device: c_int) -> c_int {
    call_log::call("cudaSetDevice", || device.to_string());
    let Some(card) = state::visible_device(device) else {
        return report(INVALID_DEVICE);
    };
    state::set_current_index(device);
    card.ensure_context();
    SUCCESS
}

/// # Safety
/// `value` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaDeviceGetAttribute(
    value: *mut c_int,
    attribute: c_int,
    device: c_int,
) -> c_int {
    let Some(card) = state::visible_device(device) else {
        return report(INVALID_DEVICE);
    };
    let answer = properties::attribute(&card.sheet, attribute);
    call_log::call("cudaDeviceGetAttribute", || {
        format!("attribute {attribute}, device {device} -> {answer:?}")
    });
    match answer {
        Some(answer) => {
            // SAFETY: promised by the caller.
            unsafe { write_out(value, answer) };
            SUCCESS
        }
        None => report(INVALID_VALUE),
    }
}

/// The layout of CUDA 13. (CUDA 12 programs call the function with the suffix below.)
///
/// # Safety
/// `target` is valid for a write of CUDA 13's `cudaDeviceProp`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaGetDeviceProperties(
    target: *mut properties::DeviceProp13,
    device: c_int,
) -> c_int {
    call_log::call("cudaGetDeviceProperties", || device.to_string());
    let Some(card) = state::visible_device(device) else {
        return report(INVALID_DEVICE);
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(target, properties::for_cuda_13(&card.sheet, card.uuid)) };
    SUCCESS
}

/// The layout of CUDA 12.
///
/// # Safety
/// `target` is valid for a write of CUDA 12's `cudaDeviceProp`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaGetDeviceProperties_v2(
    target: *mut properties::DeviceProp12,
    device: c_int,
) -> c_int {
    call_log::call("cudaGetDeviceProperties_v2", || device.to_string());
    let Some(card) = state::visible_device(device) else {
        return report(INVALID_DEVICE);
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(target, properties::for_cuda_12(&card.sheet, card.uuid)) };
    SUCCESS
}

/// # Safety
/// `text` is valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaDeviceGetPCIBusId(
    text: *mut c_char,
    len: c_int,
    device: c_int,
) -> c_int {
    let Some(card) = state::visible_device(device) else {
        return report(INVALID_DEVICE);
    };
    let pci = card.sheet.pci;
    let address = format!("{:04x}:{:02x}:{:02x}.0\0", pci.domain, pci.bus, pci.device);
    if text.is_null() || usize::try_from(len).is_ok_and(|len| len < address.len()) || len < 0 {
        return report(INVALID_VALUE);
    }
    // SAFETY: `text` has room for `len` bytes, which was compared above.
    unsafe { std::ptr::copy_nonoverlapping(address.as_ptr().cast(), text, address.len()) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaDeviceSynchronize() -> c_int {
    call_log::call("cudaDeviceSynchronize", String::new);
    let Some(card) = state::current_with_context() else {
        return report(NO_DEVICE);
    };
    clock::wait_for_device(state::current_index());
    work::host_waits();
    let waited = ranks::host_waits(&awaited::of_device(state::current_index()));
    if waited != SUCCESS {
        return report(waited);
    }
    card.pool().synchronize(None, card);
    SUCCESS
}

/// # Safety
/// Both are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaDeviceGetStreamPriorityRange(
    least: *mut c_int,
    greatest: *mut c_int,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        write_out(least, 0);
        write_out(greatest, GREATEST_STREAM_PRIORITY);
    }
    SUCCESS
}

/// Every card since Pascal has six priorities, 0 to -5.
const GREATEST_STREAM_PRIORITY: c_int = -5;

/// # Safety
/// `can` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaDeviceCanAccessPeer(
    can: *mut c_int,
    device: c_int,
    peer: c_int,
) -> c_int {
    call_log::call("cudaDeviceCanAccessPeer", || format!("{device}, {peer}"));
    let (Some(_), Some(_)) = (state::visible_device(device), state::visible_device(peer)) else {
        return report(INVALID_DEVICE);
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(can, c_int::from(device != peer)) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaDeviceEnablePeerAccess(peer: c_int, flags: u32) -> c_int {
    use std::collections::BTreeSet;
    use std::sync::Mutex;
    static ENABLED: Mutex<BTreeSet<(c_int, c_int)>> = Mutex::new(BTreeSet::new());

    call_log::call("cudaDeviceEnablePeerAccess", || format!("{peer}, {flags}"));
    let current = state::current_index();
    if flags != 0 {
        return report(INVALID_VALUE);
    }
    if state::visible_device(peer).is_none() || peer == current {
        return report(INVALID_DEVICE);
    }
    let Ok(mut enabled) = ENABLED.lock() else {
        return report(NOT_SUPPORTED);
    };
    if enabled.insert((current, peer)) {
        SUCCESS
    } else {
        report(PEER_ACCESS_ALREADY_ENABLED)
    }
}

/// # Safety
/// `version` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaRuntimeGetVersion(version: *mut c_int) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { write_out(version, real_library::cuda_runtime_version()) };
    SUCCESS
}

/// # Safety
/// `version` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaDriverGetVersion(version: *mut c_int) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { write_out(version, driver_version()) };
    SUCCESS
}

/// The virtual driver is as new as the runtime needs, and at least the one of our recordings (580).
pub fn driver_version() -> c_int {
    real_library::cuda_runtime_version().max(13_000)
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaProfilerStart() -> c_int {
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaProfilerStop() -> c_int {
    SUCCESS
}

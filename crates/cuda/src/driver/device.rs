//! Starting the driver and asking about devices.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::{INVALID_DEVICE, INVALID_VALUE, NO_DEVICE, NOT_INITIALIZED, SUCCESS};
use crate::runtime::errors::{SYMBOL_NOT_FOUND, driver_name_and_text};
use crate::runtime::{attribute, driver_version, query_result};
use crate::{call_log, self_lookup, state, write_out};

#[unsafe(no_mangle)]
pub extern "C" fn cuInit(_flags: u32) -> c_int {
    call_log::call("cuInit", String::new);
    if state::visible_count() == 0 {
        NO_DEVICE
    } else {
        SUCCESS
    }
}

/// # Safety
/// `version` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { write_out(version, driver_version()) };
    SUCCESS
}

/// # Safety
/// `count` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> c_int {
    if !state::is_started() {
        return NOT_INITIALIZED;
    }
    // SAFETY: promised by the caller.
    unsafe { write_out(count, state::visible_count() as c_int) };
    SUCCESS
}

/// # Safety
/// `device` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> c_int {
    if state::visible_device(ordinal).is_none() {
        return INVALID_DEVICE;
    }
    // SAFETY: promised by the caller.
    unsafe { write_out(device, ordinal) };
    SUCCESS
}

/// # Safety
/// `value` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetAttribute(
    value: *mut c_int,
    number: c_int,
    device: c_int,
) -> c_int {
    let Some(card) = state::visible_device(device) else {
        return INVALID_DEVICE;
    };
    let answer = attribute(&card.sheet, number);
    call_log::call("cuDeviceGetAttribute", || {
        format!("{number}, device {device} -> {answer:?}")
    });
    let Some(answer) = answer else {
        return INVALID_VALUE;
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(value, answer) };
    SUCCESS
}

/// # Safety
/// `name` is valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, len: c_int, device: c_int) -> c_int {
    let Some(card) = state::visible_device(device) else {
        return INVALID_DEVICE;
    };
    let Some(room) = usize::try_from(len).ok().filter(|&len| len > 0) else {
        return INVALID_VALUE;
    };
    if name.is_null() {
        return INVALID_VALUE;
    }
    let mut text = card.sheet.marked_name().into_bytes();
    text.truncate(room - 1);
    text.push(0);
    // SAFETY: `text` is at most `len` bytes long, for which `name` is valid.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr().cast(), name, text.len()) };
    SUCCESS
}

/// # Safety
/// `bytes` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int) -> c_int {
    let Some(card) = state::visible_device(device) else {
        return INVALID_DEVICE;
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(bytes, card.sheet.total_bytes as usize) };
    SUCCESS
}

/// # Safety
/// `uuid` is null or valid for 16 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) -> c_int {
    let Some(card) = state::visible_device(device) else {
        return INVALID_DEVICE;
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(uuid, card.uuid) };
    SUCCESS
}

/// The form without a version; for cards without MIG instances, both give the same answer.
///
/// # Safety
/// `uuid` is null or valid for 16 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetUuid(uuid: *mut [u8; 16], device: c_int) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { cuDeviceGetUuid_v2(uuid, device) }
}

/// # Safety
/// Both are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceComputeCapability(
    major: *mut c_int,
    minor: *mut c_int,
    device: c_int,
) -> c_int {
    let Some(card) = state::visible_device(device) else {
        return INVALID_DEVICE;
    };
    // SAFETY: promised by the caller.
    unsafe {
        write_out(major, card.sheet.capability.major as c_int);
        write_out(minor, card.sheet.capability.minor as c_int);
    }
    SUCCESS
}

/// # Safety
/// `text` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorString(status: c_int, text: *mut *const c_char) -> c_int {
    let found = driver_name_and_text(status);
    let answer = found.map_or(std::ptr::null(), |(_, text)| text.as_ptr());
    // SAFETY: promised by the caller.
    unsafe { write_out(text, answer) };
    if found.is_some() {
        SUCCESS
    } else {
        INVALID_VALUE
    }
}

/// # Safety
/// `name` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(status: c_int, name: *mut *const c_char) -> c_int {
    let found = driver_name_and_text(status);
    let answer = found.map_or(std::ptr::null(), |(name, _)| name.as_ptr());
    // SAFETY: promised by the caller.
    unsafe { write_out(name, answer) };
    if found.is_some() {
        SUCCESS
    } else {
        INVALID_VALUE
    }
}

/// # Safety
/// `name` is a C string; the other pointers are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetProcAddress_v2(
    name: *const c_char,
    function: *mut *mut c_void,
    version: c_int,
    _flags: u64,
    status: *mut c_int,
) -> c_int {
    if name.is_null() || function.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: promised by the caller.
    let name = unsafe { CStr::from_ptr(name) };
    let asked_for = u32::try_from(version).unwrap_or(self_lookup::NEWEST);
    let found = self_lookup::find(name, asked_for);
    call_log::call("cuGetProcAddress", || {
        format!("{name:?}, version {version} -> {found:x?}")
    });
    // SAFETY: promised by the caller.
    unsafe {
        write_out(function, found.address());
        write_out(status, query_result(found));
    }
    if found.address().is_null() {
        SYMBOL_NOT_FOUND
    } else {
        SUCCESS
    }
}

/// # Safety
/// As for [`cuGetProcAddress_v2`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetProcAddress(
    name: *const c_char,
    function: *mut *mut c_void,
    version: c_int,
    flags: u64,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { cuGetProcAddress_v2(name, function, version, flags, std::ptr::null_mut()) }
}

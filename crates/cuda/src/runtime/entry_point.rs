//! Programs that ask the runtime for driver functions by name.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::errors::{INVALID_VALUE, SUCCESS, SYMBOL_NOT_FOUND, report};
use crate::{call_log, self_lookup, write_out};

const ENTRY_POINT_SUCCESS: c_int = 0;
const ENTRY_POINT_NOT_FOUND: c_int = 1;

/// # Safety
/// `name` is a C string; the other pointers are null or writable.
unsafe fn entry_point(
    name: *const c_char,
    function: *mut *mut c_void,
    status: *mut c_int,
) -> c_int {
    if name.is_null() || function.is_null() {
        return report(INVALID_VALUE);
    }
    // SAFETY: promised by the caller.
    let name = unsafe { CStr::from_ptr(name) };
    let found = self_lookup::find(name);
    call_log::call("cudaGetDriverEntryPoint", || {
        format!("{name:?} -> {found:?}")
    });
    let code = if found.is_some() {
        ENTRY_POINT_SUCCESS
    } else {
        ENTRY_POINT_NOT_FOUND
    };
    // SAFETY: promised by the caller.
    unsafe {
        write_out(function, found.unwrap_or(std::ptr::null_mut()));
        write_out(status, code);
    }
    if found.is_none() && status.is_null() {
        return report(SYMBOL_NOT_FOUND);
    }
    SUCCESS
}

/// # Safety
/// `name` is a C string; the other pointers are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaGetDriverEntryPoint(
    name: *const c_char,
    function: *mut *mut c_void,
    _flags: u64,
    status: *mut c_int,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { entry_point(name, function, status) }
}

/// # Safety
/// `name` is a C string; the other pointers are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaGetDriverEntryPointByVersion(
    name: *const c_char,
    function: *mut *mut c_void,
    _version: u32,
    _flags: u64,
    status: *mut c_int,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { entry_point(name, function, status) }
}

//! The runtime's functions that look up driver functions by name.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::errors::{INVALID_VALUE, SUCCESS, SYMBOL_NOT_FOUND, report};
use crate::self_lookup::{self, Lookup};
use crate::{call_log, write_out};

/// `cudaDriverEntryPointQueryResult`, whose values the driver uses too.
pub fn query_result(found: Lookup) -> c_int {
    match found {
        Lookup::Found(_) => 0,
        Lookup::Unknown => 1,
        Lookup::OnlyNewer => 2,
    }
}

/// # Safety
/// `name` is a C string; the other pointers are null or writable.
unsafe fn entry_point(
    name: *const c_char,
    function: *mut *mut c_void,
    version: u32,
    status: *mut c_int,
) -> c_int {
    if name.is_null() || function.is_null() {
        return report(INVALID_VALUE);
    }
    // SAFETY: promised by the caller.
    let name = unsafe { CStr::from_ptr(name) };
    let found = self_lookup::find(name, version);
    call_log::call("cudaGetDriverEntryPoint", || {
        format!("{name:?}, version {version} -> {found:x?}")
    });
    // SAFETY: promised by the caller.
    unsafe {
        write_out(function, found.address());
        write_out(status, query_result(found));
    }
    if found.address().is_null() && status.is_null() {
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
    unsafe { entry_point(name, function, self_lookup::NEWEST, status) }
}

/// # Safety
/// `name` is a C string; the other pointers are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaGetDriverEntryPointByVersion(
    name: *const c_char,
    function: *mut *mut c_void,
    version: u32,
    _flags: u64,
    status: *mut c_int,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { entry_point(name, function, version, status) }
}

//! Calls into the user's own CUDA libraries: versions and compilers, nothing that needs a card.
//!
//! PyTorch's libraries are loaded with local scope, so the real ones cannot be found by the search
//! order of the dynamic linker; they are already in the process, though, and open by name.

use std::ffi::{CStr, c_void};
use std::ops::RangeInclusive;

/// A function of a library that the process has already loaded under one of these names.
pub fn find_loaded(library_names: &[&CStr], function: &CStr) -> Option<*mut c_void> {
    for name in library_names {
        // SAFETY: both arguments are valid C strings; RTLD_NOLOAD runs no constructors.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if handle.is_null() {
            continue;
        }
        // SAFETY: `handle` is open. It is never closed, so the function stays valid.
        let address = unsafe { libc::dlsym(handle, function.as_ptr()) };
        if !address.is_null() {
            return Some(address);
        }
    }
    None
}

/// The major versions of CUDA whose structures are known.
const SIMULATED_MAJORS: RangeInclusive<i32> = 12..=13;

/// The major version of the loaded CUDA runtime, if its structures are not known: they would be filled in
/// the layout of another version.
pub fn unknown_cuda_major() -> Option<i32> {
    let major = cuda_runtime_version() / 1000;
    (!SIMULATED_MAJORS.contains(&major)).then_some(major)
}

/// The version of the CUDA runtime that the script's torch was built with (13000 for 13.0).
pub fn cuda_runtime_version() -> i32 {
    // The known versions first, then others, which must be recognised as unknown.
    const NAMES: [&CStr; 6] = [
        c"libcudart.so.13",
        c"libcudart.so.12",
        c"libcudart.so.14",
        c"libcudart.so.15",
        c"libcudart.so.16",
        c"libcudart.so.11.0",
    ];
    let Some(address) = find_loaded(&NAMES, c"cudaRuntimeGetVersion") else {
        return DEFAULT_RUNTIME_VERSION;
    };
    // SAFETY: this is the documented signature of cudaRuntimeGetVersion.
    let function: extern "C" fn(*mut i32) -> i32 = unsafe { std::mem::transmute(address) };
    let mut version = 0;
    if function(&raw mut version) == 0 && version > 0 {
        version
    } else {
        DEFAULT_RUNTIME_VERSION
    }
}

/// The version to report if only the driver interface is in use.
const DEFAULT_RUNTIME_VERSION: i32 = 13_000;

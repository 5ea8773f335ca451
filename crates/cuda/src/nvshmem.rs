//! NVSHMEM, behind PyTorch's symmetric memory between processes: refused.
//!
//! Declarations written from NVIDIA's public documentation "NVSHMEM", release 3.4.

use std::ffi::{c_int, c_void};

use crate::refuse::refuse;
use crate::{log_call, real_library, refused};

/// Any status but zero is an error.
const ERROR: i32 = 1;

refused! {
    "NVSHMEM", ERROR;
    nvshmemid_hostlib_init_attr, nvshmemx_get_uniqueid, nvshmemx_set_attr_uniqueid_args,
    nvshmemx_cumodule_init, nvshmem_team_split_strided, nvshmemx_alltoallmem_on_stream,
    nvshmemx_broadcastmem_on_stream, nvshmemx_getmem_on_stream, nvshmemx_putmem_on_stream,
    nvshmemx_putmem_signal_on_stream, nvshmemx_signal_wait_until_on_stream,
}

/// Defines functions that refuse to return an address.
macro_rules! refused_addresses {
    ($($name:ident),+ $(,)?) => {
        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> *mut c_void {
                refuse("NVSHMEM", stringify!($name));
                std::ptr::null_mut()
            }
        )+
    };
}

refused_addresses! {
    nvshmem_malloc, nvshmem_ptr, nvshmemx_mc_ptr,
}

/// The number of members of a team; -1 is the documented answer for an invalid one.
#[unsafe(no_mangle)]
pub extern "C" fn nvshmem_team_n_pes(_team: i32) -> c_int {
    refuse("NVSHMEM", "nvshmem_team_n_pes");
    -1
}

/// The transport in use: none, since the library was never initialised.
#[unsafe(no_mangle)]
pub extern "C" fn nvshmem_selected_device_transport() -> c_int {
    refuse("NVSHMEM", "nvshmem_selected_device_transport");
    -1
}

/// `NVSHMEM_STATUS_NOT_INITIALIZED`.
#[unsafe(no_mangle)]
pub extern "C" fn nvshmemid_init_status() -> c_int {
    log_call!(nvshmemid_init_status);
    0
}

/// Defines functions that do nothing: nothing was initialised, so there is nothing to end, free or wait for.
macro_rules! nothing_to_do {
    ($($name:ident),+ $(,)?) => {
        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() {
                log_call!($name);
            }
        )+
    };
}

nothing_to_do! {
    nvshmemid_hostlib_finalize, nvshmem_free, nvshmem_barrier_all,
}

/// The version of the standard that the installed library implements, from the library itself.
///
/// # Safety
/// `major` and `minor` point to writable integers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvshmem_info_get_version(major: *mut c_int, minor: *mut c_int) {
    log_call!(nvshmem_info_get_version, major, minor);
    let names = [c"libnvshmem_host.so.3"];
    let Some(address) = real_library::find_loaded(&names, c"nvshmem_info_get_version") else {
        refuse("NVSHMEM", "nvshmem_info_get_version");
        return;
    };
    // SAFETY: this is the documented signature of nvshmem_info_get_version.
    let function: unsafe extern "C" fn(*mut c_int, *mut c_int) =
        unsafe { std::mem::transmute(address) };
    // SAFETY: promised by the caller.
    unsafe { function(major, minor) };
}

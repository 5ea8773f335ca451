//! `cudaMalloc` and its relatives.

use std::ffi::{c_int, c_void};

use ghostgpu_device::MemoryError;

use super::errors::{INVALID_VALUE, MEMORY_ALLOCATION, NO_DEVICE, SUCCESS, report};
use super::host_memory::{free_managed, is_managed, is_pinned};
use crate::state::VirtualDevice;
use crate::{call_log, clock, state, write_out};

pub fn status_of(error: MemoryError) -> c_int {
    match error {
        MemoryError::OutOfMemory => MEMORY_ALLOCATION,
        MemoryError::Invalid => INVALID_VALUE,
    }
}

/// Answers a call of `function` for `bytes` bytes on the current card with the result of `allocate`.
///
/// # Safety
/// `pointer` is null or writable.
pub unsafe fn answer_allocation(
    function: &str,
    pointer: *mut *mut c_void,
    bytes: usize,
    allocate: impl FnOnce(&'static VirtualDevice) -> Result<u64, MemoryError>,
) -> c_int {
    let Some(card) = state::current_with_context() else {
        return report(NO_DEVICE);
    };
    if pointer.is_null() {
        return report(INVALID_VALUE);
    }
    let allocated = allocate(card);
    call_log::call(function, || {
        format!("device {}, {bytes} bytes -> {allocated:x?}", card.ordinal)
    });
    match allocated {
        Ok(address) => {
            // SAFETY: promised by the caller.
            unsafe { write_out(pointer, address as *mut c_void) };
            SUCCESS
        }
        Err(error) => report(status_of(error)),
    }
}

/// # Safety
/// `pointer` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaMalloc(pointer: *mut *mut c_void, bytes: usize) -> c_int {
    clock::allocate();
    let allocate = |card: &'static VirtualDevice| match bytes {
        0 => Ok(0),
        _ => card.memory().allocate(bytes as u64, card),
    };
    // SAFETY: promised by the caller.
    unsafe { answer_allocation("cudaMalloc", pointer, bytes, allocate) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaFree(pointer: *mut c_void) -> c_int {
    call_log::call("cudaFree", || format!("{pointer:p}"));
    if state::current_with_context().is_none() {
        return report(NO_DEVICE);
    }
    if pointer.is_null() {
        return SUCCESS;
    }
    let Some((device, card)) = state::device_of_address(pointer as u64) else {
        if free_managed(pointer).is_some() {
            return SUCCESS;
        }
        return report(INVALID_VALUE);
    };
    // `cudaFree` waits until nothing on the card can use the memory any more.
    clock::wait_for_device(device);
    clock::allocate();
    match card.memory().free(pointer as u64, card) {
        Ok(()) => SUCCESS,
        Err(error) => report(status_of(error)),
    }
}

/// # Safety
/// Both are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaMemGetInfo(free: *mut usize, total: *mut usize) -> c_int {
    let Some(card) = state::current_with_context() else {
        return report(NO_DEVICE);
    };
    let free_bytes = card.free_bytes();
    call_log::call("cudaMemGetInfo", || {
        format!("device {} -> {free_bytes} free", card.ordinal)
    });
    // SAFETY: promised by the caller.
    unsafe {
        write_out(free, free_bytes as usize);
        write_out(total, card.sheet.total_bytes as usize);
    }
    SUCCESS
}

/// `cudaPointerAttributes`; the reserved words exist since CUDA 13, so they are not written.
#[repr(C)]
pub struct PointerAttributes {
    kind: c_int,
    device: c_int,
    device_pointer: *mut c_void,
    host_pointer: *mut c_void,
}

const UNREGISTERED: c_int = 0;
const HOST: c_int = 1;
const DEVICE: c_int = 2;
const MANAGED: c_int = 3;

/// # Safety
/// `attributes` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaPointerGetAttributes(
    attributes: *mut PointerAttributes,
    pointer: *const c_void,
) -> c_int {
    call_log::call("cudaPointerGetAttributes", || format!("{pointer:p}"));
    let address = pointer.cast_mut();
    let answer = if let Some((device, _)) = state::device_of_address(pointer as u64) {
        PointerAttributes {
            kind: DEVICE,
            device,
            device_pointer: address,
            host_pointer: std::ptr::null_mut(),
        }
    } else if is_pinned(pointer as usize) {
        let is_managed = is_managed(pointer as usize);
        PointerAttributes {
            kind: if is_managed { MANAGED } else { HOST },
            device: state::current_index(),
            device_pointer: address,
            host_pointer: address,
        }
    } else {
        PointerAttributes {
            kind: UNREGISTERED,
            device: -2,
            device_pointer: std::ptr::null_mut(),
            host_pointer: address,
        }
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(attributes, answer) };
    SUCCESS
}

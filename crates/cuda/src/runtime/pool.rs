//! Stream-ordered allocation (`cudaMallocAsync`) from each device's default pool.

use std::ffi::{c_int, c_void};

use super::errors::{INVALID_DEVICE, INVALID_VALUE, SUCCESS, report};
use super::graph::Node;
use super::memory::answer_allocation;
use super::stream::submit;
use crate::state::VirtualDevice;
use crate::{call_log, state, write_out};

/// A device's default pool is named by this number plus the device's.
const FIRST_POOL: usize = 0x7001_0000;

fn device_of_pool(pool: usize) -> Option<&'static VirtualDevice> {
    state::visible_device(c_int::try_from(pool.checked_sub(FIRST_POOL)?).ok()?)
}

/// # Safety
/// `pool` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaDeviceGetDefaultMemPool(pool: *mut usize, device: c_int) -> c_int {
    if state::visible_device(device).is_none() {
        return report(INVALID_DEVICE);
    }
    // SAFETY: promised by the caller.
    unsafe { write_out(pool, FIRST_POOL + device as usize) };
    SUCCESS
}

const RELEASE_THRESHOLD: c_int = 4;
const RESERVED_CURRENT: c_int = 5;
const RESERVED_HIGH: c_int = 6;
const USED_CURRENT: c_int = 7;
const USED_HIGH: c_int = 8;

/// # Safety
/// `value` points to what the attribute's type says: an int for 1 to 3, 64 bits for the others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaMemPoolGetAttribute(
    pool: usize,
    attribute: c_int,
    value: *mut c_void,
) -> c_int {
    let Some(card) = device_of_pool(pool) else {
        return report(INVALID_VALUE);
    };
    let pool = card.pool();
    let statistics = pool.statistics();
    let answer = match attribute {
        1..=3 => {
            // SAFETY: promised by the caller.
            unsafe { write_out(value.cast::<c_int>(), 1) };
            return SUCCESS;
        }
        RELEASE_THRESHOLD => pool.release_threshold_bytes,
        RESERVED_CURRENT => statistics.reserved_bytes,
        RESERVED_HIGH => statistics.reserved_high_bytes,
        USED_CURRENT => statistics.used_bytes,
        USED_HIGH => statistics.used_high_bytes,
        _ => return report(INVALID_VALUE),
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(value.cast::<u64>(), answer) };
    SUCCESS
}

/// # Safety
/// As for [`cudaMemPoolGetAttribute`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaMemPoolSetAttribute(
    pool: usize,
    attribute: c_int,
    value: *const c_void,
) -> c_int {
    call_log::call("cudaMemPoolSetAttribute", || {
        format!("{pool:#x}, {attribute}")
    });
    let Some(card) = device_of_pool(pool) else {
        return report(INVALID_VALUE);
    };
    if value.is_null() {
        return report(INVALID_VALUE);
    }
    match attribute {
        1..=3 => SUCCESS,
        RELEASE_THRESHOLD => {
            // SAFETY: promised by the caller.
            card.pool().release_threshold_bytes = unsafe { value.cast::<u64>().read_unaligned() };
            SUCCESS
        }
        // The high marks can only be reset.
        RESERVED_HIGH | USED_HIGH => {
            card.pool().reset_high_mark(attribute == RESERVED_HIGH);
            SUCCESS
        }
        _ => report(INVALID_VALUE),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaMemPoolSetAccess(
    pool: usize,
    _descriptions: *const c_void,
    _count: usize,
) -> c_int {
    report(match device_of_pool(pool) {
        Some(_) => SUCCESS,
        None => INVALID_VALUE,
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaMemPoolTrimTo(pool: usize, keep_bytes: usize) -> c_int {
    call_log::call("cudaMemPoolTrimTo", || {
        format!("{pool:#x}, keep {keep_bytes} bytes")
    });
    let Some(card) = device_of_pool(pool) else {
        return report(INVALID_VALUE);
    };
    card.pool().trim(keep_bytes as u64, card);
    SUCCESS
}

/// # Safety
/// `pointer` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaMallocAsync(
    pointer: *mut *mut c_void,
    bytes: usize,
    stream: usize,
) -> c_int {
    let allocate = |card: &'static VirtualDevice| {
        submit(stream, Node::Host, 0);
        match bytes {
            0 => Ok(0),
            _ => card.pool().allocate(bytes as u64, stream as u64, card),
        }
    };
    // SAFETY: promised by the caller.
    unsafe { answer_allocation("cudaMallocAsync", pointer, bytes, allocate) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaFreeAsync(pointer: *mut c_void, stream: usize) -> c_int {
    call_log::call("cudaFreeAsync", || format!("{pointer:p}"));
    if pointer.is_null() {
        return SUCCESS;
    }
    submit(stream, Node::Host, 0);
    let Some((_, card)) = state::device_of_address(pointer as u64) else {
        return report(INVALID_VALUE);
    };
    match card.pool().free(pointer as u64, stream as u64) {
        Ok(()) => SUCCESS,
        // `cudaFreeAsync` also takes what `cudaMalloc` gave.
        Err(_) => super::memory::cudaFree(pointer),
    }
}

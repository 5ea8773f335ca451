//! Plain memory through the driver interface.

use std::ffi::{c_int, c_void};

use super::{INVALID_VALUE, SUCCESS};
use crate::runtime::{self, is_pinned};
use crate::{call_log, handed_on, state, write_out};

/// # Safety
/// `pointer` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAlloc_v2(pointer: *mut *mut c_void, bytes: usize) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { runtime::cudaMalloc(pointer, bytes) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFree_v2(pointer: *mut c_void) -> c_int {
    runtime::cudaFree(pointer)
}

/// # Safety
/// Both are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { runtime::cudaMemGetInfo(free, total) }
}

/// # Safety
/// `base` and `bytes` are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemGetAddressRange_v2(
    base: *mut u64,
    bytes: *mut usize,
    address: u64,
) -> c_int {
    let found = state::device_of_address(address).and_then(|(_, card)| {
        let in_memory = card.memory().find(address);
        in_memory.or_else(|| card.pool().find(address))
    });
    let Some((start, len)) = found else {
        return INVALID_VALUE;
    };
    // SAFETY: promised by the caller.
    unsafe {
        write_out(base, start);
        write_out(bytes, len as usize);
    }
    SUCCESS
}

const CONTEXT: c_int = 1;
const MEMORY_TYPE: c_int = 2;
const DEVICE_POINTER: c_int = 3;
const HOST_POINTER: c_int = 4;
const BUFFER_ID: c_int = 7;
const IS_MANAGED: c_int = 8;
const DEVICE_ORDINAL: c_int = 9;
const RANGE_START: c_int = 11;
const RANGE_SIZE: c_int = 12;

/// # Safety
/// `value` points to what the attribute's type says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuPointerGetAttribute(
    value: *mut c_void,
    attribute: c_int,
    address: u64,
) -> c_int {
    call_log::call("cuPointerGetAttribute", || {
        format!("{attribute}, {address:#x}")
    });
    let on_card = state::device_of_address(address);
    if on_card.is_none() && !is_pinned(address as usize) {
        return INVALID_VALUE;
    }
    let range = || on_card.and_then(|(_, card)| card.memory().find(address));
    // SAFETY (all writes below): promised by the caller.
    unsafe {
        match attribute {
            CONTEXT => super::context::cuCtxGetCurrent(value.cast()),
            MEMORY_TYPE => {
                write_out(value.cast::<u32>(), if on_card.is_some() { 2 } else { 1 });
                SUCCESS
            }
            DEVICE_POINTER => {
                write_out(value.cast(), address);
                SUCCESS
            }
            HOST_POINTER if on_card.is_none() => {
                write_out(value.cast(), address);
                SUCCESS
            }
            BUFFER_ID => {
                write_out(
                    value.cast::<u64>(),
                    range().map_or(address, |(start, _)| start),
                );
                SUCCESS
            }
            IS_MANAGED => {
                write_out(value.cast::<u8>(), 0);
                SUCCESS
            }
            DEVICE_ORDINAL => {
                let device = on_card.map_or_else(state::current_index, |(device, _)| device);
                write_out(value.cast::<c_int>(), device);
                SUCCESS
            }
            RANGE_START | RANGE_SIZE => {
                let Some((start, bytes)) = range() else {
                    return INVALID_VALUE;
                };
                let answer = if attribute == RANGE_START {
                    start
                } else {
                    bytes
                };
                write_out(value.cast::<u64>(), answer);
                SUCCESS
            }
            _ => INVALID_VALUE,
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD32Async(address: u64, value: u32, words: usize, stream: usize) -> c_int {
    handed_on::forget_all();
    call_log::call("cuMemsetD32Async", || {
        format!("{address:#x}, {value}, {words} words, {stream:#x}")
    });
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD8Async(address: u64, value: u8, bytes: usize, stream: usize) -> c_int {
    handed_on::forget_all();
    call_log::call("cuMemsetD8Async", || {
        format!("{address:#x}, {value}, {bytes} bytes, {stream:#x}")
    });
    SUCCESS
}

fn write_value(function: &str, stream: usize, address: u64, value: u64) -> c_int {
    handed_on::forget_all();
    call_log::call(function, || format!("{stream:#x}, {address:#x}, {value}"));
    SUCCESS
}

/// Defines a function that writes a value in device memory, under its names before and after CUDA 11.7,
/// whose parameters are the same.
macro_rules! value_writes {
    ($($type:ty: $name:ident, $second_form:ident;)+) => {
        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $second_form(
                stream: usize,
                address: u64,
                value: $type,
                _flags: u32,
            ) -> c_int {
                write_value(stringify!($name), stream, address, value.into())
            }

            #[unsafe(no_mangle)]
            pub extern "C" fn $name(
                stream: usize,
                address: u64,
                value: $type,
                flags: u32,
            ) -> c_int {
                $second_form(stream, address, value, flags)
            }
        )+
    };
}

value_writes! {
    u32: cuStreamWriteValue32, cuStreamWriteValue32_v2;
    u64: cuStreamWriteValue64, cuStreamWriteValue64_v2;
}

// A stream that waits for a value in memory continues: it is not known when the value would be written.
crate::harmless! {
    cuStreamWaitValue32, cuStreamWaitValue32_v2, cuStreamWaitValue64, cuStreamWaitValue64_v2,
}

/// # Safety
/// The host side of the copy is valid for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyDtoH_v2(target: *mut c_void, source: u64, bytes: usize) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { runtime::cudaMemcpy(target, source as *const c_void, bytes, 2) }
}

/// # Safety
/// The host side of the copy is valid for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyHtoD_v2(
    target: u64,
    source: *const c_void,
    bytes: usize,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { runtime::cudaMemcpy(target as *mut c_void, source, bytes, 1) }
}

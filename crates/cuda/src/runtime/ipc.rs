//! Memory and events of one process, opened in another.
//!
//! There are no bytes to share: what is opened is addresses without memory, which the process that allocated it
//! holds. A handle has 64 bytes; ours name a card and a size.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};

use ghostgpu_device::PAGE_BYTES;

use super::errors::{INVALID_RESOURCE_HANDLE, INVALID_VALUE, NO_DEVICE, SUCCESS, report};
use super::event;
use super::memory::status_of;
use crate::{call_log, clock, state, write_out};

/// Marks handles as ours. A program that opens something else has made it up.
const MEMORY: u64 = 0x6768_6f73_745f_6d65;
const EVENT: u64 = 0x6768_6f73_745f_6576;

/// `cudaIpcMemHandle_t` and `cudaIpcEventHandle_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IpcHandle {
    kind: u64,
    card: u64,
    /// Where the memory is in the process that has it.
    address: u64,
    bytes: u64,
    unused: [u64; 4],
}

impl IpcHandle {
    fn new(kind: u64, card: usize, address: u64, bytes: u64) -> Self {
        Self {
            kind,
            card: card as u64,
            address,
            bytes,
            unused: [0; 4],
        }
    }
}

/// The addresses of what this process has opened, with their sizes.
static OPENED: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());

fn opened() -> std::sync::MutexGuard<'static, BTreeMap<u64, u64>> {
    OPENED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// # Safety
/// `handle` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaIpcGetMemHandle(
    handle: *mut IpcHandle,
    pointer: *mut c_void,
) -> c_int {
    call_log::call("cudaIpcGetMemHandle", || format!("{pointer:p}"));
    let found = state::device_of_address(pointer as u64)
        .and_then(|(_, card)| Some((card, card.memory().find(pointer as u64)?)));
    let Some((card, (address, bytes))) = found else {
        return report(INVALID_VALUE);
    };
    if handle.is_null() {
        return report(INVALID_VALUE);
    }
    // SAFETY: promised by the caller.
    unsafe { write_out(handle, IpcHandle::new(MEMORY, card.ordinal, address, bytes)) };
    SUCCESS
}

/// # Safety
/// `pointer` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaIpcOpenMemHandle(
    pointer: *mut *mut c_void,
    handle: IpcHandle,
    _flags: u32,
) -> c_int {
    let Some(card) = state::current_with_context() else {
        return report(NO_DEVICE);
    };
    if pointer.is_null() || handle.kind != MEMORY || handle.card != card.ordinal as u64 {
        return report(INVALID_VALUE);
    }
    let bytes = handle.bytes.next_multiple_of(PAGE_BYTES);
    let address = card.memory().reserve(bytes, 0, 0);
    call_log::call("cudaIpcOpenMemHandle", || {
        format!(
            "{:#x}, {} bytes -> {address:x?}",
            handle.address, handle.bytes
        )
    });
    match address {
        Ok(address) => {
            opened().insert(address, bytes);
            // SAFETY: promised by the caller.
            unsafe { write_out(pointer, address as *mut c_void) };
            SUCCESS
        }
        Err(error) => report(status_of(error)),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaIpcCloseMemHandle(pointer: *mut c_void) -> c_int {
    call_log::call("cudaIpcCloseMemHandle", || format!("{pointer:p}"));
    let address = pointer as u64;
    let Some((device, card)) = state::device_of_address(address) else {
        return report(INVALID_VALUE);
    };
    let Some(bytes) = opened().remove(&address) else {
        return report(INVALID_VALUE);
    };
    clock::wait_for_device(device);
    match card.memory().unreserve(address, bytes) {
        Ok(()) => SUCCESS,
        Err(error) => report(status_of(error)),
    }
}

/// # Safety
/// `handle` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaIpcGetEventHandle(handle: *mut IpcHandle, event: usize) -> c_int {
    call_log::call("cudaIpcGetEventHandle", || format!("{event:#x}"));
    if event::recorded(event).is_none() {
        return report(INVALID_RESOURCE_HANDLE);
    }
    if handle.is_null() {
        return report(INVALID_VALUE);
    }
    // SAFETY: promised by the caller.
    unsafe { write_out(handle, IpcHandle::new(EVENT, 0, 0, 0)) };
    SUCCESS
}

/// The event opened is one that has happened: by the time a handle has come from another process, so has the
/// work.
///
/// # Safety
/// `event` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaIpcOpenEventHandle(event: *mut usize, handle: IpcHandle) -> c_int {
    if handle.kind != EVENT {
        return report(INVALID_VALUE);
    }
    // SAFETY: promised by the caller.
    unsafe { event::cudaEventCreate(event) }
}

const _: () = assert!(size_of::<IpcHandle>() == 64);

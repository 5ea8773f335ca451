//! Reserving addresses, creating physical memory and mapping it: the basis of PyTorch's expandable
//! segments.

use std::ffi::{c_int, c_void};

use ghostgpu_device::{MemoryError, PAGE_BYTES, PhysicalId};

use super::{INVALID_DEVICE, INVALID_VALUE, NOT_SUPPORTED, SUCCESS};
use crate::runtime::status_of;
use crate::state::{self, VirtualDevice};
use crate::{call_log, write_out};

/// `CUmemAllocationProp`, as far as it is read or written here.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AllocationProperties {
    kind: c_int,
    requested_handle_types: c_int,
    location_kind: c_int,
    location_id: c_int,
    windows_handle: *mut c_void,
    flags: [u8; 8],
}

const KIND_PINNED: c_int = 1;
const LOCATION_DEVICE: c_int = 1;
const HANDLE_FABRIC: c_int = 8;

/// A handle names the device in its upper half and the memory in its lower half.
fn handle_of(device: c_int, id: PhysicalId) -> u64 {
    ((device as u64 + 1) << 32) | id.0
}

fn physical_of(handle: u64) -> Option<(&'static VirtualDevice, PhysicalId)> {
    let device = c_int::try_from((handle >> 32).checked_sub(1)?).ok()?;
    let id = PhysicalId(handle & 0xffff_ffff);
    state::visible_device(device).map(|card| (card, id))
}

fn status(result: Result<(), MemoryError>) -> c_int {
    result.map_or_else(status_of, |()| SUCCESS)
}

/// # Safety
/// `granularity` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemGetAllocationGranularity(
    granularity: *mut usize,
    _properties: *const AllocationProperties,
    _option: c_int,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { write_out(granularity, PAGE_BYTES as usize) };
    SUCCESS
}

/// # Safety
/// `address` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAddressReserve(
    address: *mut u64,
    bytes: usize,
    alignment: usize,
    hint: u64,
    _flags: u64,
) -> c_int {
    let Some(card) = state::current_with_context() else {
        return super::NO_DEVICE;
    };
    let reserved = card.memory().reserve(bytes as u64, alignment as u64, hint);
    call_log::call("cuMemAddressReserve", || {
        format!("{bytes} bytes -> {reserved:x?}")
    });
    match reserved {
        Ok(start) => {
            // SAFETY: promised by the caller.
            unsafe { write_out(address, start) };
            SUCCESS
        }
        Err(error) => status_of(error),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemAddressFree(address: u64, bytes: usize) -> c_int {
    call_log::call("cuMemAddressFree", || {
        format!("{address:#x}, {bytes} bytes")
    });
    let Some((_, card)) = state::device_of_address(address) else {
        return INVALID_VALUE;
    };
    status(card.memory().unreserve(address, bytes as u64))
}

/// # Safety
/// `handle` is null or writable; `properties` is null or readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemCreate(
    handle: *mut u64,
    bytes: usize,
    properties: *const AllocationProperties,
    _flags: u64,
) -> c_int {
    // SAFETY: promised by the caller.
    let Some(properties) = (unsafe { properties.as_ref() }) else {
        return INVALID_VALUE;
    };
    if properties.requested_handle_types == HANDLE_FABRIC {
        return NOT_SUPPORTED;
    }
    if properties.location_kind != LOCATION_DEVICE {
        return NOT_SUPPORTED;
    }
    let device = properties.location_id;
    let Some(card) = state::visible_device(device) else {
        return INVALID_DEVICE;
    };
    card.ensure_context();
    let made = card.memory().create_physical(bytes as u64, card);
    call_log::call("cuMemCreate", || {
        format!("device {device}, {bytes} bytes -> {made:?}")
    });
    match made {
        Ok(id) => {
            // SAFETY: promised by the caller.
            unsafe { write_out(handle, handle_of(device, id)) };
            SUCCESS
        }
        Err(error) => status_of(error),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemRelease(handle: u64) -> c_int {
    call_log::call("cuMemRelease", || format!("{handle:#x}"));
    let Some((card, id)) = physical_of(handle) else {
        return INVALID_VALUE;
    };
    status(card.memory().release_physical(id, card))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemMap(
    address: u64,
    bytes: usize,
    _offset: usize,
    handle: u64,
    _flags: u64,
) -> c_int {
    call_log::call("cuMemMap", || {
        format!("{address:#x}, {bytes} bytes, {handle:#x}")
    });
    let Some((card, id)) = physical_of(handle) else {
        return INVALID_VALUE;
    };
    status(card.memory().map(address, bytes as u64, id))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemUnmap(address: u64, bytes: usize) -> c_int {
    call_log::call("cuMemUnmap", || format!("{address:#x}, {bytes} bytes"));
    let Some((_, card)) = state::device_of_address(address) else {
        return INVALID_VALUE;
    };
    status(card.memory().unmap(address, bytes as u64, card))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemSetAccess(
    address: u64,
    bytes: usize,
    _descriptions: *const c_void,
    _count: usize,
) -> c_int {
    call_log::call("cuMemSetAccess", || format!("{address:#x}, {bytes} bytes"));
    match state::device_of_address(address) {
        Some(_) => SUCCESS,
        None => INVALID_VALUE,
    }
}

/// # Safety
/// `handle` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemRetainAllocationHandle(handle: *mut u64, address: u64) -> c_int {
    let Some((device, card)) = state::device_of_address(address) else {
        return INVALID_VALUE;
    };
    let retained = card.memory().retain_physical_at(address);
    let Some(id) = retained else {
        return INVALID_VALUE;
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(handle, handle_of(device, id)) };
    SUCCESS
}

/// # Safety
/// `properties` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemGetAllocationPropertiesFromHandle(
    properties: *mut AllocationProperties,
    handle: u64,
) -> c_int {
    let Some((card, _)) = physical_of(handle) else {
        return INVALID_VALUE;
    };
    let answer = AllocationProperties {
        kind: KIND_PINNED,
        requested_handle_types: 0,
        location_kind: LOCATION_DEVICE,
        location_id: card.ordinal as c_int,
        windows_handle: std::ptr::null_mut(),
        flags: [0; 8],
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(properties, answer) };
    SUCCESS
}

crate::refused! { "CUDA driver", NOT_SUPPORTED;
    cuMemExportToShareableHandle, cuMemImportFromShareableHandle, cuMulticastCreate,
    cuMulticastAddDevice, cuMulticastBindMem, cuMulticastUnbind,
}

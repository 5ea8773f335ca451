//! Counting the cards and finding one: by place, by PCI address, by UUID.

use std::ffi::{CStr, c_char};

use ghostgpu_device::PciAddress;

use super::{Device, answer, device, ensure_initialised, handle_of, status};
use crate::log_call;
use crate::state::{self, VirtualDevice};

fn count() -> Result<u32, i32> {
    ensure_initialised()?;
    u32::try_from(state::devices().len()).map_err(|_| status::INVALID_ARGUMENT)
}

fn by_index(index: u32) -> Result<Device, i32> {
    ensure_initialised()?;
    let card = state::devices().get(index as usize);
    card.map(handle_of).ok_or(status::INVALID_ARGUMENT)
}

fn find(is_wanted: impl Fn(&VirtualDevice) -> bool) -> Result<Device, i32> {
    ensure_initialised()?;
    let card = state::devices().iter().find(|card| is_wanted(card));
    card.map(handle_of).ok_or(status::NOT_FOUND)
}

/// # Safety
/// `text` is a C string or null.
unsafe fn read_text<'a>(text: *const c_char) -> Result<&'a str, i32> {
    if text.is_null() {
        return Err(status::INVALID_ARGUMENT);
    }
    // SAFETY: promised by the caller.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| status::INVALID_ARGUMENT)
}

/// Reads `domain:bus:device.function` or, as older programs write it, `bus:device.function`.
fn parse_pci_address(text: &str) -> Option<PciAddress> {
    let (place, _function) = text.split_once('.').unwrap_or((text, "0"));
    let mut parts = place
        .rsplit(':')
        .map(|part| u32::from_str_radix(part, 16).ok());
    let device = parts.next()??;
    let bus = parts.next()??;
    let domain = match parts.next() {
        Some(domain) => domain?,
        None => 0,
    };
    parts.next().is_none().then_some(PciAddress {
        domain,
        bus,
        device,
    })
}

/// # Safety
/// `bus_id` is a C string or null.
unsafe fn by_pci(bus_id: *const c_char) -> Result<Device, i32> {
    // SAFETY: promised by the caller.
    let text = unsafe { read_text(bus_id) }?;
    let address = parse_pci_address(text).ok_or(status::INVALID_ARGUMENT)?;
    find(|card| card.sheet.pci == address)
}

/// # Safety
/// `target` points to a writable integer, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount(target: *mut u32) -> i32 {
    log_call!(nvmlDeviceGetCount, target);
    // SAFETY: promised by the caller.
    unsafe { answer(target, count()) }
}

/// # Safety
/// `target` points to a writable integer, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(target: *mut u32) -> i32 {
    log_call!(nvmlDeviceGetCount_v2, target);
    // SAFETY: promised by the caller.
    unsafe { answer(target, count()) }
}

/// # Safety
/// `target` points to writable memory for a handle, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex(index: u32, target: *mut Device) -> i32 {
    log_call!(nvmlDeviceGetHandleByIndex, index, target);
    // SAFETY: promised by the caller.
    unsafe { answer(target, by_index(index)) }
}

/// # Safety
/// `target` points to writable memory for a handle, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: u32, target: *mut Device) -> i32 {
    log_call!(nvmlDeviceGetHandleByIndex_v2, index, target);
    // SAFETY: promised by the caller.
    unsafe { answer(target, by_index(index)) }
}

/// # Safety
/// `bus_id` is a C string, `target` points to writable memory for a handle, or they are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByPciBusId(
    bus_id: *const c_char,
    target: *mut Device,
) -> i32 {
    log_call!(nvmlDeviceGetHandleByPciBusId, bus_id, target);
    // SAFETY: promised by the caller.
    unsafe { answer(target, by_pci(bus_id)) }
}

/// # Safety
/// `bus_id` is a C string, `target` points to writable memory for a handle, or they are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByPciBusId_v2(
    bus_id: *const c_char,
    target: *mut Device,
) -> i32 {
    log_call!(nvmlDeviceGetHandleByPciBusId_v2, bus_id, target);
    // SAFETY: promised by the caller.
    unsafe { answer(target, by_pci(bus_id)) }
}

/// # Safety
/// `uuid` is a C string, `target` points to writable memory for a handle, or they are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByUUID(
    uuid: *const c_char,
    target: *mut Device,
) -> i32 {
    log_call!(nvmlDeviceGetHandleByUUID, uuid, target);
    // SAFETY: promised by the caller.
    let found = unsafe { read_text(uuid) }
        .and_then(|wanted| find(|card| ghostgpu_device::format_uuid(&card.uuid) == wanted));
    // SAFETY: promised by the caller.
    unsafe { answer(target, found) }
}

/// # Safety
/// `index` points to a writable integer, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetIndex(handle: Device, index: *mut u32) -> i32 {
    log_call!(nvmlDeviceGetIndex, handle, index);
    // SAFETY: promised by the caller.
    unsafe { answer(index, device(handle).map(|card| card.ordinal as u32)) }
}

/// The number in the name of the device file, `/dev/nvidia<N>`.
///
/// # Safety
/// `minor` points to a writable integer, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMinorNumber(handle: Device, minor: *mut u32) -> i32 {
    log_call!(nvmlDeviceGetMinorNumber, handle, minor);
    // SAFETY: promised by the caller.
    unsafe { answer(minor, device(handle).map(|card| card.ordinal as u32)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pci_address_is_read_with_and_without_its_domain() {
        let address = |domain, bus, device| PciAddress {
            domain,
            bus,
            device,
        };
        let cases = [
            ("00000000:06:00.0", Some(address(0, 6, 0))),
            ("0001:0A:1f.0", Some(address(1, 10, 31))),
            ("c4:00.0", Some(address(0, 0xc4, 0))),
            ("0000:06:00", Some(address(0, 6, 0))),
            ("", None),
            ("06", None),
            ("0:0:6:0.0", None),
            ("0000:xy:00.0", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_pci_address(text), expected, "{text}");
        }
    }
}

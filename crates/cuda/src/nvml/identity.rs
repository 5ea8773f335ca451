//! What a card is: its name, numbers, generation and fixed properties.

use std::ffi::{c_char, c_int};

use ghostgpu_device::{Capability, format_uuid};

use super::{Device, answer, answer_text, device, status};
use crate::state::VirtualDevice;
use crate::{log_call, write_out};

/// # Safety
/// `name` points to `room` writable bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetName(handle: Device, name: *mut c_char, room: u32) -> i32 {
    log_call!(nvmlDeviceGetName, handle, name, room);
    let text = device(handle).map(|card| card.sheet.marked_name());
    // SAFETY: promised by the caller.
    unsafe { answer_text(name, room, text.as_deref().map_err(|&code| code)) }
}

/// # Safety
/// `uuid` points to `room` writable bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUUID(handle: Device, uuid: *mut c_char, room: u32) -> i32 {
    log_call!(nvmlDeviceGetUUID, handle, uuid, room);
    let text = device(handle).map(|card| format_uuid(&card.uuid));
    // SAFETY: promised by the caller.
    unsafe { answer_text(uuid, room, text.as_deref().map_err(|&code| code)) }
}

/// # Safety
/// `major` and `minor` point to writable integers or are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCudaComputeCapability(
    handle: Device,
    major: *mut c_int,
    minor: *mut c_int,
) -> i32 {
    log_call!(nvmlDeviceGetCudaComputeCapability, handle, major, minor);
    let capability = match device(handle) {
        Ok(card) => card.sheet.capability,
        Err(code) => return code,
    };
    // SAFETY: promised by the caller.
    unsafe {
        write_out(major, capability.major.cast_signed());
        write_out(minor, capability.minor.cast_signed());
    }
    status::SUCCESS
}

/// `nvmlDeviceArchitecture_t`, which counts the generations.
fn generation(capability: Capability) -> Result<u32, i32> {
    match (capability.major, capability.minor) {
        (3, _) => Ok(2),        // Kepler
        (5, _) => Ok(3),        // Maxwell
        (6, _) => Ok(4),        // Pascal
        (7, 0..5) => Ok(5),     // Volta
        (7, _) => Ok(6),        // Turing
        (8, 9) => Ok(8),        // Ada
        (8, _) => Ok(7),        // Ampere
        (9, _) => Ok(9),        // Hopper
        (10..=12, _) => Ok(10), // Blackwell
        _ => Err(status::NOT_SUPPORTED),
    }
}

/// # Safety
/// `architecture` points to a writable integer or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetArchitecture(handle: Device, architecture: *mut u32) -> i32 {
    log_call!(nvmlDeviceGetArchitecture, handle, architecture);
    let value = device(handle).and_then(|card| generation(card.sheet.capability));
    // SAFETY: promised by the caller.
    unsafe { answer(architecture, value) }
}

/// The first part of `nvmlPciInfo_t`, which all versions of the structure share.
#[repr(C)]
pub struct PciInfo {
    short_bus_id: [u8; 16],
    domain: u32,
    bus: u32,
    device: u32,
    device_and_vendor: u32,
    subsystem: u32,
}

/// `nvmlPciInfo_t` since version 3: followed by the address with its full domain.
#[repr(C)]
pub struct PciInfoV3 {
    shared: PciInfo,
    bus_id: [u8; 32],
}

const _: () = assert!(size_of::<PciInfo>() == 36 && size_of::<PciInfoV3>() == 68);

/// NVIDIA's number as a PCI vendor.
const VENDOR: u32 = 0x10de;

fn fixed_text<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    for (target, source) in bytes.iter_mut().take(N - 1).zip(text.bytes()) {
        *target = source;
    }
    bytes
}

fn pci_info(card: &VirtualDevice) -> PciInfo {
    let pci = card.sheet.pci;
    let number = card.sheet.pci_device_number;
    PciInfo {
        short_bus_id: fixed_text(&format!(
            "{:04X}:{:02X}:{:02X}.0",
            pci.domain, pci.bus, pci.device
        )),
        domain: pci.domain,
        bus: pci.bus,
        device: pci.device,
        device_and_vendor: if number == 0 {
            0
        } else {
            number << 16 | VENDOR
        },
        subsystem: 0,
    }
}

/// # Safety
/// `info` points to a writable structure of the second version, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPciInfo_v2(handle: Device, info: *mut PciInfo) -> i32 {
    log_call!(nvmlDeviceGetPciInfo_v2, handle, info);
    // SAFETY: promised by the caller.
    unsafe { answer(info, device(handle).map(pci_info)) }
}

/// # Safety
/// `info` points to a writable structure of the third version, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPciInfo_v3(handle: Device, info: *mut PciInfoV3) -> i32 {
    log_call!(nvmlDeviceGetPciInfo_v3, handle, info);
    let value = device(handle).map(|card| {
        let pci = card.sheet.pci;
        let bus_id = format!("{:08X}:{:02X}:{:02X}.0", pci.domain, pci.bus, pci.device);
        PciInfoV3 {
            shared: pci_info(card),
            bus_id: fixed_text(&bus_id),
        }
    });
    // SAFETY: promised by the caller.
    unsafe { answer(info, value) }
}

/// The highest clock, in MHz: 0 graphics, 1 multiprocessors, 2 memory.
///
/// # Safety
/// `clock` points to a writable integer or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMaxClockInfo(
    handle: Device,
    kind: c_int,
    clock: *mut u32,
) -> i32 {
    log_call!(nvmlDeviceGetMaxClockInfo, handle, kind, clock);
    let value = device(handle).and_then(|card| match kind {
        0 | 1 if card.sheet.clock_khz > 0 => Ok(card.sheet.clock_khz / 1000),
        2 if card.sheet.memory_clock_khz > 0 => Ok(card.sheet.memory_clock_khz / 1000),
        0..=3 => Err(status::NOT_SUPPORTED),
        _ => Err(status::INVALID_ARGUMENT),
    });
    // SAFETY: promised by the caller.
    unsafe { answer(clock, value) }
}

/// # Safety
/// `bits` points to a writable integer or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryBusWidth(handle: Device, bits: *mut u32) -> i32 {
    log_call!(nvmlDeviceGetMemoryBusWidth, handle, bits);
    let value = device(handle).and_then(|card| match card.sheet.memory_bus_bits {
        0 => Err(status::NOT_SUPPORTED),
        bits => Ok(bits),
    });
    // SAFETY: promised by the caller.
    unsafe { answer(bits, value) }
}

/// Error correction, now and after the next start.
///
/// # Safety
/// `current` and `pending` point to writable integers or are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetEccMode(
    handle: Device,
    current: *mut u32,
    pending: *mut u32,
) -> i32 {
    log_call!(nvmlDeviceGetEccMode, handle, current, pending);
    let enabled = match device(handle) {
        Ok(card) => u32::from(card.sheet.ecc_enabled),
        Err(code) => return code,
    };
    // SAFETY: promised by the caller.
    unsafe {
        write_out(current, enabled);
        write_out(pending, enabled);
    }
    status::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capability_tells_the_generation() {
        for (major, minor, expected) in [(6, 1, 4), (7, 0, 5), (7, 5, 6), (8, 6, 7), (8, 9, 8)] {
            assert_eq!(generation(Capability::new(major, minor)), Ok(expected));
        }
        assert_eq!(generation(Capability::new(12, 0)), Ok(10));
        assert!(generation(Capability::new(42, 0)).is_err());
    }

    #[test]
    fn a_text_that_is_too_long_is_cut_before_the_final_zero() {
        assert_eq!(fixed_text::<4>("abcdef"), *b"abc\0");
        assert_eq!(fixed_text::<4>("a"), *b"a\0\0\0");
    }
}

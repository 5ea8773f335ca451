//! A card's memory: total, used, free.

use super::{Device, answer, device, status};
use crate::log_call;
use crate::state::VirtualDevice;

/// `nvmlMemory_t`.
#[repr(C)]
pub struct Memory {
    total_bytes: u64,
    free_bytes: u64,
    used_bytes: u64,
}

/// `nvmlMemory_v2_t`.
#[repr(C)]
pub struct MemoryV2 {
    version: u32,
    total_bytes: u64,
    reserved_bytes: u64,
    free_bytes: u64,
    used_bytes: u64,
}

/// What the caller must write into `version`: the size and the number of the structure's version.
const MEMORY_V2: u32 = size_of::<MemoryV2>() as u32 | 2 << 24;

/// # Safety
/// `memory` points to a writable structure or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo(handle: Device, memory: *mut Memory) -> i32 {
    log_call!(nvmlDeviceGetMemoryInfo, handle, memory);
    let value = device(handle).map(|card| Memory {
        total_bytes: total_bytes(card),
        free_bytes: card.free_bytes(),
        // The first version has no field for reserved memory and counts it as used.
        used_bytes: used_bytes(card) + card.sheet.reserved_bytes,
    });
    // SAFETY: promised by the caller.
    unsafe { answer(memory, value) }
}

/// # Safety
/// `memory` points to a structure whose `version` the caller has set, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(handle: Device, memory: *mut MemoryV2) -> i32 {
    log_call!(nvmlDeviceGetMemoryInfo_v2, handle, memory);
    if memory.is_null() {
        return status::INVALID_ARGUMENT;
    }
    // SAFETY: promised by the caller.
    let version = unsafe { (&raw const (*memory).version).read_unaligned() };
    if version != MEMORY_V2 {
        return status::ARGUMENT_VERSION_MISMATCH;
    }
    let value = device(handle).map(|card| MemoryV2 {
        version,
        total_bytes: total_bytes(card),
        reserved_bytes: card.sheet.reserved_bytes,
        free_bytes: card.free_bytes(),
        used_bytes: used_bytes(card),
    });
    // SAFETY: promised by the caller.
    unsafe { answer(memory, value) }
}

/// NVML's total is larger than CUDA's: it includes what the driver keeps.
fn total_bytes(card: &VirtualDevice) -> u64 {
    card.sheet.total_bytes + card.sheet.reserved_bytes
}

/// A card with unlimited memory may hold more than it has; NVML's numbers always add up to the total.
fn used_bytes(card: &VirtualDevice) -> u64 {
    card.used_bytes().min(card.sheet.total_bytes)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_structure_with_a_version_has_the_documented_number() {
        assert_eq!(super::MEMORY_V2, 0x0200_0028);
    }
}

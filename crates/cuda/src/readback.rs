//! Copies between host and card. The card holds no values, so reads return zeros unless something is known.

use std::ffi::c_void;

use crate::agent_interface::take_prepared_readback;
use crate::runtime::zero_without_pages;
use crate::{handed_on, state};

/// The direction of a copy, in the numbering of `cudaMemcpyKind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    HostToHost,
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
}

impl Direction {
    /// Reads a `cudaMemcpyKind`; kind 4 ("default") goes by the addresses.
    pub fn from_kind(kind: i32, target: *const c_void, source: *const c_void) -> Option<Self> {
        match kind {
            0 => Some(Self::HostToHost),
            1 => Some(Self::HostToDevice),
            2 => Some(Self::DeviceToHost),
            3 => Some(Self::DeviceToDevice),
            4 => Some(Self::of_addresses(target, source)),
            _ => None,
        }
    }

    pub fn of_addresses(target: *const c_void, source: *const c_void) -> Self {
        let on_card = |pointer: *const c_void| state::device_of_address(pointer as u64).is_some();
        match (on_card(source), on_card(target)) {
            (false, false) => Self::HostToHost,
            (false, true) => Self::HostToDevice,
            (true, false) => Self::DeviceToHost,
            (true, true) => Self::DeviceToDevice,
        }
    }
}

/// Copies `bytes` bytes; only what is on the host is really read or written.
///
/// # Safety
/// The host side of the copy is valid for `bytes` bytes.
pub unsafe fn copy(target: *mut c_void, source: *const c_void, bytes: usize, direction: Direction) {
    if target.is_null() || bytes == 0 {
        return;
    }
    match direction {
        // SAFETY: promised by the caller; `memmove` semantics allow overlap.
        Direction::HostToHost => unsafe {
            std::ptr::copy(source.cast::<u8>(), target.cast::<u8>(), bytes);
        },
        // SAFETY: promised by the caller.
        Direction::DeviceToHost => unsafe { read_back(target.cast(), source as u64, bytes) },
        Direction::HostToDevice => {
            // SAFETY: promised by the caller.
            let sent = unsafe { std::slice::from_raw_parts(source.cast::<u8>(), bytes) };
            handed_on::sent(target as u64, sent);
        }
        Direction::DeviceToDevice => {
            handed_on::handed_on(source as u64, target as u64, bytes);
        }
    }
}

/// Fills host memory with what the card is known to hold, a prepared answer, or zeros.
///
/// # Safety
/// `target` is valid for writes of `bytes` bytes.
unsafe fn read_back(target: *mut u8, source: u64, bytes: usize) {
    if let Some(content) = handed_on::read(source, bytes) {
        // SAFETY: promised by the caller; the content has as many bytes as were asked for.
        unsafe { std::ptr::copy_nonoverlapping(content.as_ptr(), target, bytes) };
        return;
    }
    match take_prepared_readback(bytes) {
        // SAFETY: promised by the caller; an answer is only prepared for at most 8 bytes.
        Some(answer) => unsafe { std::ptr::copy_nonoverlapping(answer.as_ptr(), target, bytes) },
        // SAFETY: promised by the caller.
        None => unsafe {
            if !zero_without_pages(target, bytes) {
                std::ptr::write_bytes(target, 0, bytes);
            }
        },
    }
}

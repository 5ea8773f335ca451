//! NVML, the management library behind `nvidia-smi`, `torch.cuda.device_count()` and PyTorch's
//! out-of-memory text: the cards of this run, their memory and who uses it.
//!
//! Unlike the runtime, NVML sees every card of the machine, whatever `CUDA_VISIBLE_DEVICES` says.
//! Readings that a virtual card does not have (temperature, power, clocks) are "not supported", as on
//! real cards without the sensor: callers can do without them.
//!
//! Declarations written from NVIDIA's public documentation "NVML API Reference Guide", release 580.

mod handles;
mod identity;
mod memory;
mod processes;
mod unsupported;

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::state::{self, VirtualDevice};
use crate::{log_call, runtime, write_out};

/// `nvmlReturn_t`.
mod status {
    pub const SUCCESS: i32 = 0;
    pub const UNINITIALIZED: i32 = 1;
    pub const INVALID_ARGUMENT: i32 = 2;
    pub const NOT_SUPPORTED: i32 = 3;
    pub const NOT_FOUND: i32 = 6;
    pub const INSUFFICIENT_SIZE: i32 = 7;
    pub const DRIVER_NOT_LOADED: i32 = 9;
    pub const ARGUMENT_VERSION_MISMATCH: i32 = 25;
}

/// The driver that the measurements were made with; a virtual card has none of its own.
const DRIVER_VERSION: &CStr = c"580.159.04";
const LIBRARY_VERSION: &CStr = c"13.580.159.04";

/// How many times the library was initialised and not shut down.
static USERS: AtomicUsize = AtomicUsize::new(0);

/// `nvmlDevice_t`: a card's place in the machine, plus one.
type Device = usize;

fn handle_of(device: &VirtualDevice) -> Device {
    device.ordinal + 1
}

fn ensure_initialised() -> Result<(), i32> {
    if USERS.load(Ordering::Acquire) == 0 {
        return Err(status::UNINITIALIZED);
    }
    Ok(())
}

/// The card behind a handle.
fn device(handle: Device) -> Result<&'static VirtualDevice, i32> {
    ensure_initialised()?;
    let ordinal = handle.checked_sub(1).ok_or(status::INVALID_ARGUMENT)?;
    state::devices()
        .get(ordinal)
        .ok_or(status::INVALID_ARGUMENT)
}

/// Stores an answer, or returns the status that says why there is none.
///
/// # Safety
/// `target` points to writable memory for a `T`, or is null.
unsafe fn answer<T>(target: *mut T, value: Result<T, i32>) -> i32 {
    match value {
        Ok(_) if target.is_null() => status::INVALID_ARGUMENT,
        Ok(value) => {
            // SAFETY: promised by the caller.
            unsafe { write_out(target, value) };
            status::SUCCESS
        }
        Err(code) => code,
    }
}

/// Stores a text with its final zero.
///
/// # Safety
/// `target` points to `room` writable bytes, or is null.
unsafe fn answer_text(target: *mut c_char, room: u32, text: Result<&str, i32>) -> i32 {
    let text = match text {
        Ok(text) => text,
        Err(code) => return code,
    };
    if target.is_null() {
        return status::INVALID_ARGUMENT;
    }
    if text.len() >= room as usize {
        return status::INSUFFICIENT_SIZE;
    }
    // SAFETY: promised by the caller; text and final zero fit.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), target.cast::<u8>(), text.len());
        target.add(text.len()).write(0);
    }
    status::SUCCESS
}

fn initialise() -> i32 {
    if state::session().is_none() {
        // No rehearsal, no card: the same answer as on a machine without a driver.
        return status::DRIVER_NOT_LOADED;
    }
    USERS.fetch_add(1, Ordering::AcqRel);
    status::SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit() -> i32 {
    log_call!(nvmlInit);
    initialise()
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> i32 {
    log_call!(nvmlInit_v2);
    initialise()
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInitWithFlags(flags: u32) -> i32 {
    log_call!(nvmlInitWithFlags, flags);
    initialise()
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> i32 {
    log_call!(nvmlShutdown);
    let left = USERS.fetch_update(Ordering::AcqRel, Ordering::Acquire, |users| {
        users.checked_sub(1)
    });
    match left {
        Ok(_) => status::SUCCESS,
        Err(_) => status::UNINITIALIZED,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlErrorString(code: i32) -> *const c_char {
    let text = match code {
        status::SUCCESS => c"Success",
        status::UNINITIALIZED => c"Uninitialized",
        status::INVALID_ARGUMENT => c"Invalid Argument",
        status::NOT_SUPPORTED => c"Not Supported",
        status::NOT_FOUND => c"Not Found",
        status::INSUFFICIENT_SIZE => c"Insufficient Size",
        status::DRIVER_NOT_LOADED => c"Driver Not Loaded",
        status::ARGUMENT_VERSION_MISMATCH => c"Argument Version Mismatch",
        _ => c"Unknown Error",
    };
    text.as_ptr()
}

/// # Safety
/// `version` points to `room` writable bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetDriverVersion(version: *mut c_char, room: u32) -> i32 {
    log_call!(nvmlSystemGetDriverVersion, version, room);
    let text = ensure_initialised().map(|()| DRIVER_VERSION.to_str().unwrap_or_default());
    // SAFETY: promised by the caller.
    unsafe { answer_text(version, room, text) }
}

/// # Safety
/// `version` points to `room` writable bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetNVMLVersion(version: *mut c_char, room: u32) -> i32 {
    log_call!(nvmlSystemGetNVMLVersion, version, room);
    // Documented to work before initialisation.
    let text = Ok(LIBRARY_VERSION.to_str().unwrap_or_default());
    // SAFETY: promised by the caller.
    unsafe { answer_text(version, room, text) }
}

/// # Safety
/// `version` points to a writable integer, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetCudaDriverVersion(version: *mut c_int) -> i32 {
    log_call!(nvmlSystemGetCudaDriverVersion, version);
    // SAFETY: promised by the caller.
    unsafe { answer(version, Ok(runtime::driver_version())) }
}

/// # Safety
/// `version` points to a writable integer, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetCudaDriverVersion_v2(version: *mut c_int) -> i32 {
    log_call!(nvmlSystemGetCudaDriverVersion_v2, version);
    // SAFETY: promised by the caller.
    unsafe { answer(version, Ok(runtime::driver_version())) }
}

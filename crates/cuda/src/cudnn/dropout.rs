//! Dropout descriptors, and the size of the random-number states behind them.

use std::ffi::c_void;
use std::sync::Mutex;

use ghostgpu_library_sizes::Question;

use super::objects::{Registry, descriptor_lifetime, write};
use super::status;
use crate::library_sizes::users_answer;
use crate::{call_log, state};

static DROPOUTS: Registry<Mutex<f32>> = Registry::new();

/// Bytes of random-number state per resident thread. An H200 reports 6,488,064 bytes for 132
/// multiprocessors with 2,048 resident threads each.
const STATE_BYTES_PER_THREAD: u64 = 24;

/// The probability that a dropout descriptor was set to; 0 for an unknown descriptor.
pub fn probability(handle: *mut c_void) -> f32 {
    let found = DROPOUTS.get(handle);
    found.map_or(0.0, |found| found.lock().map_or(0.0, |value| *value))
}

descriptor_lifetime!(
    DROPOUTS,
    Mutex::new(0.0),
    cudnnCreateDropoutDescriptor,
    cudnnDestroyDropoutDescriptor
);

/// # Safety
/// `bytes` must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnDropoutGetStatesSize(_handle: *mut c_void, bytes: *mut usize) -> i32 {
    let Some(sheet) = state::current_sheet() else {
        return status::NOT_INITIALIZED;
    };
    let recorded = users_answer(|| Question::new("cudnnDropoutGetStatesSize"))
        .and_then(|answer| answer.number("state_bytes"));
    let size = match recorded {
        Some(bytes) => bytes as u64,
        None => states_bytes(sheet.multiprocessors, sheet.max_threads_per_multiprocessor),
    };
    call_log::call("cudnnDropoutGetStatesSize", || size.to_string());
    // SAFETY: promised by the caller.
    if unsafe { write(bytes, size as usize) } {
        status::SUCCESS
    } else {
        status::BAD_PARAM_NULL_POINTER
    }
}

fn states_bytes(multiprocessors: u32, threads_per_multiprocessor: u32) -> u64 {
    u64::from(multiprocessors) * u64::from(threads_per_multiprocessor) * STATE_BYTES_PER_THREAD
}

fn set(handle: *mut c_void, probability: f32) -> i32 {
    let Some(found) = DROPOUTS.get(handle) else {
        return status::BAD_PARAM;
    };
    if let Ok(mut value) = found.lock() {
        *value = probability;
    }
    status::SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cudnnSetDropoutDescriptor(
    descriptor: *mut c_void,
    _handle: *mut c_void,
    probability: f32,
    _states: *mut c_void,
    _states_bytes: usize,
    _seed: u64,
) -> i32 {
    call_log::call("cudnnSetDropoutDescriptor", || probability.to_string());
    set(descriptor, probability)
}

#[unsafe(no_mangle)]
pub extern "C" fn cudnnRestoreDropoutDescriptor(
    descriptor: *mut c_void,
    _handle: *mut c_void,
    probability: f32,
    _states: *mut c_void,
    _states_bytes: usize,
    _seed: u64,
) -> i32 {
    call_log::call("cudnnRestoreDropoutDescriptor", || probability.to_string());
    set(descriptor, probability)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_states_of_an_h200_are_as_large_as_measured() {
        assert_eq!(states_bytes(132, 2048), 6_488_064);
    }
}

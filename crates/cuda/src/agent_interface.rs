//! Functions for the Python agent in the same process, which calls them through `ctypes`.

use std::cell::Cell;
use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;

use crate::refuse::{self, RefusalCallback};
use crate::{notes, state};

/// Raised when the meaning of these functions changes.
const API_VERSION: u32 = 1;

#[unsafe(no_mangle)]
pub extern "C" fn ghostgpu_api_version() -> u32 {
    API_VERSION
}

/// Tells the library for which architectures the installed torch ships code (75, 80, 90, …): kernels
/// report the newest of them that the card can run, as they do on a real card.
///
/// # Safety
/// `numbers` points to `count` integers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ghostgpu_set_code_architectures(numbers: *const i32, count: u32) {
    if numbers.is_null() {
        return;
    }
    // SAFETY: promised by the caller.
    let numbers = unsafe { std::slice::from_raw_parts(numbers, count as usize) };
    state::set_code_architectures(
        numbers
            .iter()
            .filter_map(|&n| u32::try_from(n).ok())
            .collect(),
    );
}

/// Registers the function to call when the script calls something that is not simulated.
#[unsafe(no_mangle)]
pub extern "C" fn ghostgpu_set_refusal_callback(callback: Option<RefusalCallback>) {
    refuse::set_callback(callback);
}

/// What is used on a card now, and the most that ever was. Returns 0, or 1 for no such device.
///
/// # Safety
/// `used` and `peak` point to writable integers or are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ghostgpu_device_bytes(
    device: c_int,
    used: *mut u64,
    peak: *mut u64,
) -> c_int {
    let Some(card) = state::visible_device(device) else {
        return 1;
    };
    // SAFETY: promised by the caller.
    unsafe {
        crate::write_out(used, card.used_bytes());
        crate::write_out(peak, card.peak_bytes());
    }
    0
}

/// Moves this process, a forked copy of the script, into the run whose folder is named: what it holds
/// on the cards is counted there, and what was said so far is said there again. Returns 0, or 1 if
/// that folder has no ledger.
///
/// # Safety
/// `run_dir` is a text that ends with a zero, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ghostgpu_continue_in(run_dir: *const c_char) -> c_int {
    if run_dir.is_null() {
        return 1;
    }
    // SAFETY: promised by the caller.
    let run_dir = unsafe { CStr::from_ptr(run_dir) };
    if !state::continue_in(OsStr::from_bytes(run_dir.to_bytes()).into()) {
        return 1;
    }
    notes::say_again();
    0
}

thread_local! {
    static NEXT_READBACK: Cell<Option<(u64, usize)>> = const { Cell::new(None) };
}

/// Makes the next device-to-host copy of exactly `bytes` bytes on this thread yield `value` (little
/// endian) instead of zeros. The agent uses it to answer "how many elements were selected?" with
/// the assumption it states, while PyTorch's own code does everything else.
#[unsafe(no_mangle)]
pub extern "C" fn ghostgpu_answer_next_readback(value: u64, bytes: u32) {
    NEXT_READBACK.set(Some((value, bytes as usize)));
}

/// Takes back an answer that was not asked for.
#[unsafe(no_mangle)]
pub extern "C" fn ghostgpu_forget_next_readback() {
    NEXT_READBACK.set(None);
}

/// The answer prepared for a copy of `bytes` bytes, if there is one; it is used up.
pub fn take_prepared_readback(bytes: usize) -> Option<[u8; 8]> {
    let (value, wanted) = NEXT_READBACK.get()?;
    if wanted != bytes || bytes > 8 {
        return None;
    }
    NEXT_READBACK.set(None);
    Some(value.to_le_bytes())
}

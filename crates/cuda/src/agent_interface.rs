//! Functions for the Python agent in the same process, which calls them through `ctypes`.

use std::cell::Cell;
use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ghostgpu_session::memory_log::LogEntry;

use crate::nccl::awaited;
use crate::nccl::ranks::{self, LineCallback, MembersCallback};
use crate::observer::{self, ContextCell};
use crate::refuse::{self, RefusalCallback};
use crate::{handed_on, notes, state, work};

/// Incremented when the meaning of these functions changes.
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

/// Registers the function that says which line of the script makes a call that involves other ranks.
#[unsafe(no_mangle)]
pub extern "C" fn ghostgpu_set_line_callback(callback: Option<LineCallback>) {
    ranks::set_line_callback(callback);
}

/// Registers the function that says which ranks are in a group, for jobs of which some ranks are not run.
#[unsafe(no_mangle)]
pub extern "C" fn ghostgpu_set_members_callback(callback: Option<MembersCallback>) {
    ranks::set_members_callback(callback);
}

/// Tells the library which rank of its job this process is.
#[unsafe(no_mangle)]
pub extern "C" fn ghostgpu_set_rank(rank: u32) {
    ranks::set_job_rank(rank);
    notes::is_rank(rank);
}

/// Waits until all ranks have made every call that this process has submitted. Returns 0, or an error of the runtime.
#[unsafe(no_mangle)]
pub extern "C" fn ghostgpu_wait_for_ranks() -> c_int {
    let devices = 0..state::visible_count() as c_int;
    let status = devices.map(|device| ranks::host_waits(&awaited::of_device(device)));
    status.max().unwrap_or(0)
}

/// Forgets the bytes that copies and collectives would return (`handed_on`). Called when ranks of other machines take
/// part in a collective: the agent knows its result, and the library does not.
#[unsafe(no_mangle)]
pub extern "C" fn ghostgpu_forget_handed_on() {
    handed_on::forget_all();
}

/// The bytes in use on a card now, and the most that ever were. Returns 0, or 1 if there is no such device.
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

/// Moves this process, a fork of the script, into the run in `run_dir`: what it holds on the cards is
/// counted there, and its notes are written there again. Returns 0, or 1 if that folder has no usage
/// file.
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

/// Starts this process, a copy of a script that had not used the cards yet, in the run that
/// `GHOSTGPU_SESSION` now names. Returns 0, or 1 if the cards have been used.
#[unsafe(no_mangle)]
pub extern "C" fn ghostgpu_reopen_session() -> c_int {
    if !state::reopen_session() {
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

/// Withdraws an answer that was not used.
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

/// Begins the memory log of this process. Returns 0, or 1 if its file cannot be created.
///
/// # Safety
/// `path` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ghostgpu_start_memory_log(path: *const c_char) -> c_int {
    // SAFETY: promised by the caller.
    let path = unsafe { CStr::from_ptr(path) };
    c_int::from(!observer::start(Path::new(OsStr::from_bytes(
        path.to_bytes(),
    ))))
}

/// Writes everything logged so far to the memory log's file.
#[unsafe(no_mangle)]
pub extern "C" fn ghostgpu_flush_memory_log() {
    observer::flush();
}

/// Ends the memory log, for example in a forked child, whose memory is not its parent's.
#[unsafe(no_mangle)]
pub extern "C" fn ghostgpu_stop_memory_log() {
    observer::stop();
}

/// The cell of the calling thread into which the agent writes the number of the running module.
#[unsafe(no_mangle)]
pub extern "C" fn ghostgpu_context_cell() -> *const ContextCell {
    observer::context_cell()
}

/// The script enters another stage.
#[unsafe(no_mangle)]
pub extern "C" fn ghostgpu_note_stage(stage: u8, step: u32) {
    observer::write(LogEntry::Stage { stage, step });
}

/// The script has ended an optimizer step.
#[unsafe(no_mangle)]
pub extern "C" fn ghostgpu_note_step() {
    work::end_step();
}

/// Python handles an operator before the card gets it.
#[unsafe(no_mangle)]
pub extern "C" fn ghostgpu_note_dispatch() {
    work::note_dispatch();
}

/// The memory at each of `count` addresses is of this kind, and has a name.
///
/// # Safety
/// `addresses` and `names` point to `count` numbers each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ghostgpu_note_owners(
    kind: u8,
    addresses: *const u64,
    names: *const u32,
    count: u32,
) {
    if addresses.is_null() || names.is_null() {
        return;
    }
    // SAFETY: promised by the caller.
    let (addresses, names) = unsafe {
        (
            std::slice::from_raw_parts(addresses, count as usize),
            std::slice::from_raw_parts(names, count as usize),
        )
    };
    for (&address, &name) in addresses.iter().zip(names) {
        observer::write(LogEntry::Owner {
            kind,
            name,
            address,
        });
    }
}

/// From here on, `number` means this module.
///
/// # Safety
/// `path` and `class` are C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ghostgpu_name_module(
    number: u32,
    path: *const c_char,
    class: *const c_char,
) {
    // SAFETY: promised by the caller.
    let (path, class) = unsafe { (CStr::from_ptr(path), CStr::from_ptr(class)) };
    observer::write(LogEntry::Module {
        number,
        path: &path.to_string_lossy(),
        class: &class.to_string_lossy(),
    });
}

/// The tensors that a module returned have this many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn ghostgpu_note_module_output(number: u32, bytes: u64) {
    observer::write(LogEntry::ModuleOutput { number, bytes });
}

/// From here on, `number` means this text.
///
/// # Safety
/// `text` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ghostgpu_name_text(number: u32, text: *const c_char) {
    // SAFETY: promised by the caller.
    let text = unsafe { CStr::from_ptr(text) };
    observer::write(LogEntry::Text {
        number,
        text: &text.to_string_lossy(),
    });
}

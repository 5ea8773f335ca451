//! Which thread made a node of the autograd graph.
//!
//! Each thread has its own sequence numbers for nodes, so a number alone is ambiguous if several threads
//! run models. PyTorch's profiler tells nodes apart by the thread that made them. Its mode for NVIDIA's
//! tools leaves the thread out of the announcement, but the announced object contains it.

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::real_library;

const LIBRARY: [&CStr; 1] = [c"libtorch_cpu.so"];

/// A thread, by the number that PyTorch's profiler has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadNumber(pub u64);

/// The calling thread.
pub fn current_thread() -> ThreadNumber {
    type CurrentThreadId = extern "C" fn() -> u64;
    static FUNCTION: OnceLock<Option<CurrentThreadId>> = OnceLock::new();
    let function = FUNCTION.get_or_init(|| {
        // `at::RecordFunction::currentThreadId`.
        let name = c"_ZN2at14RecordFunction15currentThreadIdEv";
        let function = real_library::find_loaded(&LIBRARY, name)?;
        // SAFETY: the function of this name takes nothing and returns a 64-bit number.
        Some(unsafe { std::mem::transmute::<*mut c_void, CurrentThreadId>(function) })
    });
    match function {
        Some(function) => ThreadNumber(function()),
        None => own_number(),
    }
}

/// A number that no thread of PyTorch has, for when PyTorch's own number is not available.
fn own_number() -> ThreadNumber {
    static NEXT: AtomicU64 = AtomicU64::new(1 << 63);
    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(0) };
    }
    if NUMBER.get() == 0 {
        NUMBER.set(NEXT.fetch_add(1, Ordering::Relaxed));
    }
    ThreadNumber(NUMBER.get())
}

thread_local! {
    /// What the calling thread announces at this moment.
    static ANNOUNCED: Cell<*const RecordFunction> = const { Cell::new(std::ptr::null()) };
}

/// The beginning of `at::RecordFunction` (`ATen/record_function.h`, the same from 2.8 to 2.15).
#[repr(C)]
pub struct RecordFunction {
    callbacks_contexts_and_name: [u64; 25],
    sequence: u64,
    inputs_and_outputs: [u64; 12],
    /// For a node of a backward pass: the thread that made it.
    forward_thread: u64,
}

/// `at::RecordFunction::runStartCallbacks`, which makes all announcements.
#[unsafe(export_name = "_ZN2at14RecordFunction17runStartCallbacksEv")]
pub extern "C" fn run_start_callbacks(announced: *const RecordFunction) {
    type RunStartCallbacks = extern "C" fn(*const RecordFunction);
    static ORIGINAL: OnceLock<Option<RunStartCallbacks>> = OnceLock::new();
    let original = ORIGINAL.get_or_init(|| {
        let name = c"_ZN2at14RecordFunction17runStartCallbacksEv";
        let function = real_library::find_loaded(&LIBRARY, name)?;
        // SAFETY: a method without arguments takes its object alone.
        Some(unsafe { std::mem::transmute::<*mut c_void, RunStartCallbacks>(function) })
    });
    if let Some(original) = original {
        let outer = ANNOUNCED.replace(announced);
        original(announced);
        ANNOUNCED.set(outer);
    }
}

/// The thread that made the node that the calling thread announces, if that node has this sequence
/// number. The comparison also detects another layout, which would hardly have the number in this place.
pub fn maker_of_announced_node(sequence: u64) -> Option<ThreadNumber> {
    // SAFETY: PyTorch's object lives while it is being announced, and is only read. In all releases it is
    // longer than the part that is accessed.
    let announced = unsafe { ANNOUNCED.get().as_ref() }?;
    (announced.sequence == sequence).then_some(ThreadNumber(announced.forward_thread))
}

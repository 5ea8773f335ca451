//! Streams. Work on them is done the moment it is handed in, because there is none.

use std::ffi::{c_int, c_void};

use super::errors::{INVALID_RESOURCE_HANDLE, INVALID_VALUE, NO_DEVICE, SUCCESS, report};
use super::graph::Capture;
use crate::handles::Handles;
use crate::{call_log, state, write_out};

pub struct Stream {
    pub priority: c_int,
    pub flags: u32,
    pub device: c_int,
    pub capture: Option<Capture>,
}

/// Handles 0, 1 and 2 are the default streams that exist without being made.
const LAST_DEFAULT_STREAM: usize = 2;

static STREAMS: Handles<Stream> = Handles::starting_at(0x5100_0000);

/// Runs `action` on a stream that was made. `None` for default streams and unknown handles.
pub fn with_stream<R>(handle: usize, action: impl FnOnce(&mut Stream) -> R) -> Option<R> {
    if handle <= LAST_DEFAULT_STREAM {
        return None;
    }
    STREAMS.with(handle, action)
}

pub fn is_stream(handle: usize) -> bool {
    handle <= LAST_DEFAULT_STREAM || STREAMS.with(handle, |_| ()).is_some()
}

/// Something was handed to a stream: a capturing one takes it up as a node of its graph.
pub fn note_work(handle: usize) {
    with_stream(handle, |stream| {
        if let Some(capture) = &mut stream.capture {
            capture.nodes += 1;
        }
    });
}

fn create(function: &str, out: *mut usize, flags: u32, priority: c_int) -> c_int {
    if state::current_with_context().is_none() {
        return report(NO_DEVICE);
    }
    if out.is_null() {
        return report(INVALID_VALUE);
    }
    state::note_new_object(|overhead| overhead.stream_bytes);
    let handle = STREAMS.insert(Stream {
        priority,
        flags,
        device: state::current_index(),
        capture: None,
    });
    call_log::call(function, || {
        format!("flags {flags}, priority {priority} -> {handle:#x}")
    });
    // SAFETY: the exported functions below promise that `out` is writable.
    unsafe { write_out(out, handle) };
    SUCCESS
}

/// # Safety
/// `stream` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaStreamCreate(stream: *mut usize) -> c_int {
    create("cudaStreamCreate", stream, 0, 0)
}

/// # Safety
/// `stream` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaStreamCreateWithFlags(stream: *mut usize, flags: u32) -> c_int {
    create("cudaStreamCreateWithFlags", stream, flags, 0)
}

/// # Safety
/// `stream` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaStreamCreateWithPriority(
    stream: *mut usize,
    flags: u32,
    priority: c_int,
) -> c_int {
    create("cudaStreamCreateWithPriority", stream, flags, priority)
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaStreamDestroy(stream: usize) -> c_int {
    call_log::call("cudaStreamDestroy", || format!("{stream:#x}"));
    match STREAMS.remove(stream) {
        Some(_) => SUCCESS,
        None => report(INVALID_RESOURCE_HANDLE),
    }
}

fn known(stream: usize) -> c_int {
    report(if is_stream(stream) {
        SUCCESS
    } else {
        INVALID_RESOURCE_HANDLE
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaStreamQuery(stream: usize) -> c_int {
    known(stream)
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaStreamSynchronize(stream: usize) -> c_int {
    call_log::call("cudaStreamSynchronize", || format!("{stream:#x}"));
    if let Some(card) = state::current_with_context() {
        card.pool().synchronize(Some(stream as u64), card);
    }
    known(stream)
}

/// Waiting for an event that a capturing stream recorded pulls the waiting stream into the capture.
#[unsafe(no_mangle)]
pub extern "C" fn cudaStreamWaitEvent(stream: usize, event: usize, flags: u32) -> c_int {
    call_log::call("cudaStreamWaitEvent", || {
        format!("{stream:#x}, {event:#x}, flags {flags}")
    });
    if let Some(capture) = super::event::capture_of(event) {
        with_stream(stream, |stream| {
            stream.capture.get_or_insert_with(|| capture.joined());
        });
    }
    known(stream)
}

/// # Safety
/// `priority` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaStreamGetPriority(stream: usize, priority: *mut c_int) -> c_int {
    let value = with_stream(stream, |stream| stream.priority).unwrap_or(0);
    // SAFETY: promised by the caller.
    unsafe { write_out(priority, value) };
    known(stream)
}

/// # Safety
/// `flags` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaStreamGetFlags(stream: usize, flags: *mut u32) -> c_int {
    let value = with_stream(stream, |stream| stream.flags).unwrap_or(0);
    // SAFETY: promised by the caller.
    unsafe { write_out(flags, value) };
    known(stream)
}

/// # Safety
/// `device` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaStreamGetDevice(stream: usize, device: *mut c_int) -> c_int {
    let value = with_stream(stream, |stream| stream.device).unwrap_or_else(state::current_index);
    // SAFETY: promised by the caller.
    unsafe { write_out(device, value) };
    known(stream)
}

type StreamCallback = unsafe extern "C" fn(usize, c_int, *mut c_void);

/// All earlier work is done, so the callback runs at once.
///
/// # Safety
/// `callback` may be called with `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaStreamAddCallback(
    stream: usize,
    callback: Option<StreamCallback>,
    data: *mut c_void,
    _flags: u32,
) -> c_int {
    call_log::call("cudaStreamAddCallback", || format!("{stream:#x}"));
    let Some(callback) = callback else {
        return report(INVALID_VALUE);
    };
    // SAFETY: promised by the caller.
    unsafe { callback(stream, SUCCESS, data) };
    SUCCESS
}

/// All earlier work is done, so the function runs at once, unless the stream is capturing.
///
/// # Safety
/// `function` may be called with `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaLaunchHostFunc(
    stream: usize,
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    data: *mut c_void,
) -> c_int {
    call_log::call("cudaLaunchHostFunc", || format!("{stream:#x}"));
    let Some(function) = function else {
        return report(INVALID_VALUE);
    };
    note_work(stream);
    if with_stream(stream, |stream| stream.capture.is_some()) != Some(true) {
        // SAFETY: promised by the caller.
        unsafe { function(data) };
    }
    SUCCESS
}

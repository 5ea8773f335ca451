//! Streams. Submitted work does nothing but finishes at its time (`clock`).

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use ghostgpu_device::{Order, StreamKey, Time};

use super::capture::{self, Capture};
use super::errors::{
    INVALID_RESOURCE_HANDLE, INVALID_VALUE, NO_DEVICE, NOT_READY, STREAM_CAPTURE_UNSUPPORTED,
    SUCCESS, report,
};
use super::graph::Node;
use crate::handles::Handles;
use crate::nccl::awaited::{self, Awaited};
use crate::nccl::ranks;
use crate::{call_log, clock, state, work, write_out};

pub struct Stream {
    pub priority: c_int,
    pub flags: u32,
    pub device: c_int,
    pub capture: Option<Capture>,
}

/// Handles 0, 1 and 2 are the default streams, which always exist.
const LAST_DEFAULT_STREAM: usize = 2;
/// The per-thread default stream; 0 and 1 are the one that all threads share.
const PER_THREAD_STREAM: usize = 2;

/// `cudaStreamNonBlocking`.
const NON_BLOCKING: u32 = 1;

static STREAMS: Handles<Stream> = Handles::starting_at(0x5100_0000);

/// Runs `action` on a created stream. `None` for default streams and unknown handles.
pub fn with_stream<R>(handle: usize, action: impl FnOnce(&mut Stream) -> R) -> Option<R> {
    if handle <= LAST_DEFAULT_STREAM {
        return None;
    }
    STREAMS.with(handle, action)
}

pub fn is_stream(handle: usize) -> bool {
    handle <= LAST_DEFAULT_STREAM || STREAMS.with(handle, |_| ()).is_some()
}

/// The card that a stream belongs to.
pub fn device_of(handle: usize) -> c_int {
    with_stream(handle, |stream| stream.device).unwrap_or_else(state::current_index)
}

/// A stream's key and order on the timeline.
pub fn on_timeline(handle: usize) -> (StreamKey, Order) {
    let made = with_stream(handle, |stream| (stream.device, stream.flags));
    let (device, order) = match made {
        Some((device, flags)) if flags & NON_BLOCKING != 0 => (device, Order::Independent),
        Some((device, _)) => (device, Order::Blocking),
        None if handle == PER_THREAD_STREAM => (state::current_index(), Order::Blocking),
        None => (state::current_index(), Order::Legacy),
    };
    // The shared default stream has two handles.
    let handle = if order == Order::Legacy { 0 } else { handle };
    (StreamKey { device, handle }, order)
}

/// Submits work to a stream: a capturing one adds it to its graph, any other one executes it.
pub fn submit(handle: usize, node: Node, duration: Time) {
    if !capture::capture_work(handle, node) {
        let (key, order) = on_timeline(handle);
        clock::submit(key, order, duration);
    }
}

/// The capture that a stream takes part in.
pub fn capture_on(handle: usize) -> Option<Capture> {
    with_stream(handle, |stream| stream.capture.clone()).flatten()
}

/// Whether a capture has begun and not ended.
fn is_active(id: u64) -> bool {
    let mut is_active = false;
    STREAMS.for_each(|stream| {
        is_active |= stream
            .capture
            .as_ref()
            .is_some_and(|capture| capture.id == id);
    });
    is_active
}

/// Ends a capture for all streams that took part in it.
pub fn leave_capture(id: u64) {
    STREAMS.for_each(|stream| {
        stream.capture.take_if(|capture| capture.id == id);
    });
}

/// When everything submitted to a stream finishes.
pub fn end_of(handle: usize) -> Time {
    let (key, order) = on_timeline(handle);
    clock::end_of(key, order)
}

/// Work submitted to the stream from now on begins at this time at the earliest.
pub fn wait_until(handle: usize, time: Time) {
    let (key, order) = on_timeline(handle);
    clock::stream_waits_until(key, order, time);
}

/// The calls of other ranks that the work submitted to a stream waits for.
pub fn awaited_by(handle: usize) -> Awaited {
    let (key, order) = on_timeline(handle);
    awaited::of_stream(key, order)
}

/// The host waits for a stream, unless it is capturing: then there is nothing to wait for.
pub fn host_waits_for(handle: usize) -> c_int {
    if capture_on(handle).is_some() {
        return SUCCESS;
    }
    clock::wait_until(end_of(handle));
    work::host_waits();
    ranks::host_waits(&awaited_by(handle))
}

thread_local! {
    static LIBRARY_STREAM: Cell<usize> = const { Cell::new(0) };
}

/// Remembers the stream of a library's handle. PyTorch sets it before each use, in the thread that uses it.
pub fn set_library_stream(handle: usize) {
    LIBRARY_STREAM.set(handle);
}

/// Submits work of an NVIDIA library to the stream that was set for it.
pub fn submit_library_work(duration: Time) {
    submit(LIBRARY_STREAM.get(), Node::Kernel, duration);
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
    let (key, _) = on_timeline(stream);
    match STREAMS.remove(stream) {
        Some(_) => {
            clock::forget(key);
            SUCCESS
        }
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
    if !is_stream(stream) {
        return report(INVALID_RESOURCE_HANDLE);
    }
    if capture::invalidate(stream) {
        return report(STREAM_CAPTURE_UNSUPPORTED);
    }
    match clock::is_past(end_of(stream)) {
        true => SUCCESS,
        false => report(NOT_READY),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaStreamSynchronize(stream: usize) -> c_int {
    call_log::call("cudaStreamSynchronize", || format!("{stream:#x}"));
    if capture::invalidate(stream) {
        return report(STREAM_CAPTURE_UNSUPPORTED);
    }
    let waited = host_waits_for(stream);
    if waited != SUCCESS {
        return report(waited);
    }
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
    const EXTERNAL: u32 = 1;
    let Some(recorded) = super::event::recorded(event) else {
        return report(INVALID_RESOURCE_HANDLE);
    };
    let capture = recorded.capture.filter(|capture| is_active(capture.id));
    match (capture, capture_on(stream)) {
        (_, Some(_)) if flags & EXTERNAL != 0 => {
            capture::capture_work(stream, Node::EventWait);
        }
        (Some(capture), None) => {
            with_stream(stream, |stream| stream.capture = Some(capture.joined()));
        }
        (Some(event), Some(mut own)) => {
            own.wait_for(&event);
            with_stream(stream, |stream| stream.capture = Some(own));
        }
        (None, Some(_)) => {}
        (None, None) => {
            wait_until(stream, recorded.at.unwrap_or(0));
            let (key, order) = on_timeline(stream);
            awaited::stream_waits(key, order, &recorded.awaited);
        }
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
    // SAFETY: promised by the caller.
    unsafe { write_out(device, device_of(stream)) };
    known(stream)
}

type StreamCallback = unsafe extern "C" fn(usize, c_int, *mut c_void);

/// Nothing is done by earlier work, so the callback runs at once.
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

/// Nothing is done by earlier work, so the function runs at once, unless the stream is capturing.
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
    submit(stream, Node::Host, 0);
    if capture_on(stream).is_none() {
        // SAFETY: promised by the caller.
        unsafe { function(data) };
    }
    SUCCESS
}

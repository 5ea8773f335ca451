//! Events. An event is complete as soon as it is recorded.

use std::ffi::c_int;

use super::errors::{INVALID_RESOURCE_HANDLE, INVALID_VALUE, NO_DEVICE, SUCCESS, report};
use super::graph::Capture;
use super::stream::with_stream;
use crate::handles::Handles;
use crate::{call_log, clock, state, write_out};

#[derive(Default)]
struct Event {
    /// When, by the virtual card's clock.
    recorded_at: Option<u64>,
    /// The capture that recorded it, if a capturing stream did.
    capture: Option<Capture>,
}

static EVENTS: Handles<Event> = Handles::starting_at(0xe100_0000);

pub fn capture_of(event: usize) -> Option<Capture> {
    EVENTS.with(event, |event| event.capture.clone()).flatten()
}

/// # Safety
/// `event` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaEventCreateWithFlags(event: *mut usize, flags: u32) -> c_int {
    if state::current_with_context().is_none() {
        return report(NO_DEVICE);
    }
    if event.is_null() {
        return report(INVALID_VALUE);
    }
    let handle = EVENTS.insert(Event::default());
    call_log::call("cudaEventCreateWithFlags", || {
        format!("flags {flags} -> {handle:#x}")
    });
    // SAFETY: promised by the caller.
    unsafe { write_out(event, handle) };
    SUCCESS
}

/// # Safety
/// `event` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaEventCreate(event: *mut usize) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { cudaEventCreateWithFlags(event, 0) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaEventDestroy(event: usize) -> c_int {
    call_log::call("cudaEventDestroy", || format!("{event:#x}"));
    match EVENTS.remove(event) {
        Some(_) => SUCCESS,
        None => report(INVALID_RESOURCE_HANDLE),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaEventRecord(event: usize, stream: usize) -> c_int {
    cudaEventRecordWithFlags(event, stream, 0)
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaEventRecordWithFlags(event: usize, stream: usize, flags: u32) -> c_int {
    call_log::call("cudaEventRecord", || {
        format!("{event:#x}, {stream:#x}, flags {flags}")
    });
    let capture = with_stream(stream, |stream| stream.capture.clone()).flatten();
    let found = EVENTS.with(event, |event| {
        event.recorded_at = Some(clock::now());
        event.capture = capture;
    });
    match found {
        Some(()) => SUCCESS,
        None => report(INVALID_RESOURCE_HANDLE),
    }
}

fn known(event: usize) -> c_int {
    match EVENTS.with(event, |_| ()) {
        Some(()) => SUCCESS,
        None => report(INVALID_RESOURCE_HANDLE),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaEventQuery(event: usize) -> c_int {
    known(event)
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaEventSynchronize(event: usize) -> c_int {
    // Events do not remember their streams; most streams have come as far as the one that is waited for.
    if let Some(card) = state::current_with_context() {
        card.pool().synchronize(None, card);
    }
    known(event)
}

/// # Safety
/// `milliseconds` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaEventElapsedTime(
    milliseconds: *mut f32,
    start: usize,
    end: usize,
) -> c_int {
    let recorded_at = |event| EVENTS.with(event, |event: &mut Event| event.recorded_at);
    match (recorded_at(start).flatten(), recorded_at(end).flatten()) {
        (Some(start), Some(end)) => {
            // SAFETY: promised by the caller.
            unsafe { write_out(milliseconds, clock::elapsed_ms(start, end)) };
            SUCCESS
        }
        _ => report(INVALID_RESOURCE_HANDLE),
    }
}

/// # Safety
/// As for [`cudaEventElapsedTime`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaEventElapsedTime_v2(
    milliseconds: *mut f32,
    start: usize,
    end: usize,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { cudaEventElapsedTime(milliseconds, start, end) }
}

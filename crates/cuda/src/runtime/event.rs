//! Events: when the work finishes that was on a stream when they were recorded.

use std::ffi::c_int;

use ghostgpu_device::Time;

use super::capture::{self, Capture};
use super::errors::{
    INVALID_RESOURCE_HANDLE, INVALID_VALUE, NO_DEVICE, NOT_READY, SUCCESS, report,
};
use super::graph::Node;
use super::stream;
use crate::handles::Handles;
use crate::nccl::awaited::Awaited;
use crate::nccl::ranks;
use crate::{call_log, clock, state, work, write_out};

/// `cudaEventDisableTiming`.
const WITHOUT_TIMING: u32 = 2;
/// `cudaEventRecordExternal`: in a capture, a node of the graph records the event.
const EXTERNAL: u32 = 1;

struct Event {
    device: c_int,
    flags: u32,
    recorded: Recorded,
}

/// What an event was last recorded for; empty until it is recorded.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// When that work finishes, by the virtual clock.
    pub at: Option<Time>,
    pub stream: usize,
    /// What other ranks must have called by then.
    pub awaited: Awaited,
    /// The capture that recorded it, if a capturing stream did.
    pub capture: Option<Capture>,
}

static EVENTS: Handles<Event> = Handles::starting_at(0xe100_0000);

/// What an event was last recorded for; `None` for an unknown event.
pub fn recorded(event: usize) -> Option<Recorded> {
    EVENTS.with(event, |event| event.recorded.clone())
}

/// Records an event as of now on a stream, as its node in a graph does.
pub fn record(event: usize, handle: usize) -> Option<()> {
    let at = Some(stream::end_of(handle));
    let awaited = stream::awaited_by(handle);
    EVENTS.with(event, |event| {
        event.recorded = Recorded {
            at,
            stream: handle,
            awaited,
            capture: None,
        };
    })
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
    let handle = EVENTS.insert(Event {
        device: state::current_index(),
        flags,
        recorded: Recorded::default(),
    });
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
    match EVENTS.with(event, |event| event.device) {
        Some(device) if device == stream::device_of(stream) => {}
        _ => return report(INVALID_RESOURCE_HANDLE),
    }
    match stream::capture_on(stream) {
        Some(_) if flags & EXTERNAL != 0 => {
            capture::capture_work(stream, Node::EventRecord(event));
        }
        Some(capture) => {
            EVENTS.with(event, |event| event.recorded.capture = Some(capture));
        }
        None => {
            record(event, stream);
        }
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaEventQuery(event: usize) -> c_int {
    match recorded(event) {
        Some(Recorded { at: Some(end), .. }) if !clock::is_past(end) => report(NOT_READY),
        Some(_) => SUCCESS,
        None => report(INVALID_RESOURCE_HANDLE),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaEventSynchronize(event: usize) -> c_int {
    let Some(recorded) = recorded(event) else {
        return report(INVALID_RESOURCE_HANDLE);
    };
    if let Some(end) = recorded.at {
        clock::wait_until(end);
        work::host_waits();
        let waited = ranks::host_waits(&recorded.awaited);
        if waited != SUCCESS {
            return report(waited);
        }
        if let Some(card) = state::current_with_context() {
            card.pool().synchronize(Some(recorded.stream as u64), card);
        }
    }
    SUCCESS
}

/// # Safety
/// `milliseconds` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaEventElapsedTime(
    milliseconds: *mut f32,
    start: usize,
    end: usize,
) -> c_int {
    let measured = |event| {
        let found = EVENTS.with(event, |event: &mut Event| {
            (event.flags & WITHOUT_TIMING == 0).then_some((event.device, event.recorded.at?))
        });
        found.flatten()
    };
    let (Some((start_device, start)), Some((end_device, end))) = (measured(start), measured(end))
    else {
        return report(INVALID_RESOURCE_HANDLE);
    };
    if start_device != end_device {
        return report(INVALID_RESOURCE_HANDLE);
    }
    if !clock::is_past(start.max(end)) {
        return report(NOT_READY);
    }
    // SAFETY: promised by the caller.
    unsafe { write_out(milliseconds, clock::elapsed_ms(start, end)) };
    SUCCESS
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

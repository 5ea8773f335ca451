//! Stream capture: enough state that PyTorch's own logic (private pools, warnings about empty graphs) takes the paths it
//! takes on a real card.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use super::errors::{
    ILLEGAL_STATE, INVALID_RESOURCE_HANDLE, INVALID_VALUE, STREAM_CAPTURE_INVALIDATED,
    STREAM_CAPTURE_UNSUPPORTED, SUCCESS, report,
};
use super::graph::{GRAPHS, Graph, Node, node_handle};
use super::stream::{self, capture_on, is_stream, with_stream};
use crate::{call_log, write_out};

/// A capture in progress on a stream.
#[derive(Clone, Debug)]
pub struct Capture {
    pub id: u64,
    /// The graph being built.
    pub graph: usize,
    /// The nodes that the stream's next node depends on.
    last: Vec<usize>,
    /// Whether the capture began on this stream. Others join by waiting for its events.
    is_origin: bool,
}

impl Capture {
    /// This capture for another stream that joins it.
    pub fn joined(&self) -> Self {
        Self {
            is_origin: false,
            ..self.clone()
        }
    }

    /// The stream waits for an event: its next node also depends on what the event was recorded after.
    pub fn wait_for(&mut self, event: &Self) {
        for &node in &event.last {
            if !self.last.contains(&node) {
                self.last.push(node);
            }
        }
    }
}

/// Adds a piece of work to the graph of a capturing stream. False for any other stream.
pub fn capture_work(handle: usize, node: Node) -> bool {
    let taken_up = with_stream(handle, |stream| {
        let capture = stream.capture.as_mut()?;
        GRAPHS.with(capture.graph, |graph| {
            let handle = node_handle(capture.graph, graph.nodes.len());
            graph.nodes.push(node);
            let before = std::mem::replace(&mut capture.last, vec![handle]);
            graph.dependencies.push(before);
        })
    });
    taken_up.flatten().is_some()
}

/// Makes the next node of a capturing stream depend on these nodes too, or on these alone. False for a
/// stream that is not capturing.
pub fn add_dependencies(stream: usize, nodes: &[usize], alone: bool) -> bool {
    let changed = with_stream(stream, |stream| {
        let capture = stream.capture.as_mut()?;
        if alone {
            capture.last.clear();
        }
        for &node in nodes {
            if !capture.last.contains(&node) {
                capture.last.push(node);
            }
        }
        Some(())
    });
    changed.flatten().is_some()
}

/// Invalidates a stream's capture, because something was requested that cannot be captured. False for a
/// stream that is not capturing.
pub fn invalidate(stream: usize) -> bool {
    let Some(capture) = capture_on(stream) else {
        return false;
    };
    GRAPHS.with(capture.graph, |graph| graph.is_invalid = true);
    true
}

static NEXT_CAPTURE: AtomicU64 = AtomicU64::new(1);

const CAPTURE_NONE: c_int = 0;
const CAPTURE_ACTIVE: c_int = 1;
const CAPTURE_INVALIDATED: c_int = 2;

#[unsafe(no_mangle)]
pub extern "C" fn cudaStreamBeginCapture(stream: usize, mode: c_int) -> c_int {
    call_log::call("cudaStreamBeginCapture", || {
        format!("{stream:#x}, mode {mode}")
    });
    let began = with_stream(stream, |stream| {
        if stream.capture.is_some() {
            return ILLEGAL_STATE;
        }
        stream.capture = Some(Capture {
            id: NEXT_CAPTURE.fetch_add(1, Ordering::Relaxed),
            graph: GRAPHS.insert(Graph::default()),
            last: Vec::new(),
            is_origin: true,
        });
        SUCCESS
    });
    // The default streams cannot be captured.
    report(began.unwrap_or(STREAM_CAPTURE_UNSUPPORTED))
}

/// # Safety
/// `graph` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaStreamEndCapture(stream: usize, graph: *mut usize) -> c_int {
    call_log::call("cudaStreamEndCapture", || format!("{stream:#x}"));
    let capture = with_stream(stream, |stream| stream.capture.take()).flatten();
    let Some(capture) = capture.filter(|capture| capture.is_origin) else {
        return report(ILLEGAL_STATE);
    };
    stream::leave_capture(capture.id);
    let is_invalid = GRAPHS.with(capture.graph, |graph| graph.is_invalid);
    if is_invalid != Some(false) {
        GRAPHS.remove(capture.graph);
        // SAFETY: promised by the caller.
        unsafe { write_out(graph, 0) };
        return report(STREAM_CAPTURE_INVALIDATED);
    }
    // SAFETY: promised by the caller.
    unsafe { write_out(graph, capture.graph) };
    SUCCESS
}

/// # Safety
/// `status` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaStreamIsCapturing(stream: usize, status: *mut c_int) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { write_out(status, capture_status(stream)) };
    report(if is_stream(stream) {
        SUCCESS
    } else {
        INVALID_RESOURCE_HANDLE
    })
}

fn capture_status(stream: usize) -> c_int {
    let Some(capture) = capture_on(stream) else {
        return CAPTURE_NONE;
    };
    match GRAPHS.with(capture.graph, |graph| graph.is_invalid) {
        Some(false) => CAPTURE_ACTIVE,
        _ => CAPTURE_INVALIDATED,
    }
}

/// Pointer to and number of the nodes that a stream's next node depends on. The pointer is valid until
/// the stream captures something.
fn last_nodes(stream: usize) -> (*const usize, usize) {
    let found = with_stream(stream, |stream| {
        let last = &stream.capture.as_ref()?.last;
        (!last.is_empty()).then_some((last.as_ptr(), last.len()))
    });
    found.flatten().unwrap_or((std::ptr::null(), 0))
}

/// # Safety
/// Every pointer is null or writable.
unsafe fn capture_info(
    stream: usize,
    status: *mut c_int,
    id: *mut u64,
    graph: *mut usize,
    dependencies: *mut *const usize,
    dependency_count: *mut usize,
) -> c_int {
    let capture = capture_on(stream);
    // SAFETY: promised by the caller.
    unsafe {
        write_out(status, capture_status(stream));
        if let Some(capture) = capture {
            write_out(id, capture.id);
            write_out(graph, capture.graph);
        }
        let (last, count) = last_nodes(stream);
        write_out(dependencies, last);
        write_out(dependency_count, count);
    }
    report(if is_stream(stream) {
        SUCCESS
    } else {
        INVALID_RESOURCE_HANDLE
    })
}

/// The form of CUDA 12.
///
/// # Safety
/// Every pointer is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaStreamGetCaptureInfo_v2(
    stream: usize,
    status: *mut c_int,
    id: *mut u64,
    graph: *mut usize,
    dependencies: *mut *const usize,
    dependency_count: *mut usize,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { capture_info(stream, status, id, graph, dependencies, dependency_count) }
}

/// The form of CUDA 13, which also returns edge data.
///
/// # Safety
/// Every pointer is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaStreamGetCaptureInfo(
    stream: usize,
    status: *mut c_int,
    id: *mut u64,
    graph: *mut usize,
    dependencies: *mut *const usize,
    edge_data: *mut *const c_void,
    dependency_count: *mut usize,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        write_out(edge_data, std::ptr::null());
        capture_info(stream, status, id, graph, dependencies, dependency_count)
    }
}

/// # Safety
/// `mode` is null or valid for reading and writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaThreadExchangeStreamCaptureMode(mode: *mut c_int) -> c_int {
    use std::cell::Cell;
    thread_local! {
        static MODE: Cell<c_int> = const { Cell::new(0) };
    }
    if mode.is_null() {
        return report(INVALID_VALUE);
    }
    // SAFETY: promised by the caller.
    unsafe { mode.write(MODE.replace(mode.read())) };
    SUCCESS
}

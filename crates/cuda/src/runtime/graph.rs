//! Stream capture and graphs: enough state that PyTorch's own logic (private pools, warnings about
//! empty graphs, replays) takes the paths it takes on a real card.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use super::errors::{
    ILLEGAL_STATE, INVALID_RESOURCE_HANDLE, INVALID_VALUE, NOT_SUPPORTED, SUCCESS, report,
};
use super::stream::{is_stream, with_stream};
use crate::handles::Handles;
use crate::refuse::refuse;
use crate::{call_log, handed_on, write_out};

/// A capture in progress on a stream.
#[derive(Clone, Debug)]
pub struct Capture {
    pub id: u64,
    /// The graph being built.
    pub graph: usize,
    pub nodes: u64,
    /// The capture began on this stream; others joined it by waiting for its events.
    is_origin: bool,
}

impl Capture {
    /// This capture as another stream takes part in it.
    pub fn joined(&self) -> Self {
        Self {
            is_origin: false,
            nodes: 0,
            ..self.clone()
        }
    }
}

struct Graph {
    nodes: u64,
}

struct GraphExec;

static GRAPHS: Handles<Graph> = Handles::starting_at(0x6100_0000);
static EXECS: Handles<GraphExec> = Handles::starting_at(0x6e00_0000);
static NEXT_CAPTURE: AtomicU64 = AtomicU64::new(1);

const CAPTURE_NONE: c_int = 0;
const CAPTURE_ACTIVE: c_int = 1;

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
            graph: GRAPHS.insert(Graph { nodes: 0 }),
            nodes: 0,
            is_origin: true,
        });
        SUCCESS
    });
    // The default streams cannot be captured.
    report(began.unwrap_or(super::errors::STREAM_CAPTURE_UNSUPPORTED))
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
    GRAPHS.with(capture.graph, |graph| graph.nodes = capture.nodes);
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
    match with_stream(stream, |stream| stream.capture.is_some()) {
        Some(true) => CAPTURE_ACTIVE,
        _ => CAPTURE_NONE,
    }
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
    let capture = with_stream(stream, |stream| stream.capture.clone()).flatten();
    // SAFETY: promised by the caller.
    unsafe {
        write_out(status, capture_status(stream));
        if let Some(capture) = capture {
            write_out(id, capture.id);
            write_out(graph, capture.graph);
        }
        write_out(dependencies, std::ptr::null());
        write_out(dependency_count, 0);
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

/// Reports how many nodes a graph has; the nodes themselves are numbered within the graph.
///
/// # Safety
/// `count` is null or valid; `nodes` is null or has room for `*count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaGraphGetNodes(
    graph: usize,
    nodes: *mut usize,
    count: *mut usize,
) -> c_int {
    let Some(total) = GRAPHS.with(graph, |graph| graph.nodes as usize) else {
        return report(INVALID_RESOURCE_HANDLE);
    };
    if count.is_null() {
        return report(INVALID_VALUE);
    }
    // SAFETY: promised by the caller.
    unsafe {
        if nodes.is_null() {
            count.write(total);
            return SUCCESS;
        }
        let wanted = count.read().min(total);
        for index in 0..wanted {
            nodes.add(index).write(graph + 1 + index);
        }
        count.write(wanted);
    }
    SUCCESS
}

/// # Safety
/// `exec` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaGraphInstantiateWithFlags(
    exec: *mut usize,
    graph: usize,
    flags: u64,
) -> c_int {
    call_log::call("cudaGraphInstantiateWithFlags", || {
        format!("{graph:#x}, flags {flags}")
    });
    if GRAPHS.with(graph, |_| ()).is_none() {
        return report(INVALID_RESOURCE_HANDLE);
    }
    // SAFETY: promised by the caller.
    unsafe { write_out(exec, EXECS.insert(GraphExec)) };
    SUCCESS
}

/// The form of CUDA 12 and later, whose third parameter is flags as well.
///
/// # Safety
/// `exec` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaGraphInstantiate(exec: *mut usize, graph: usize, flags: u64) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { cudaGraphInstantiateWithFlags(exec, graph, flags) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaGraphLaunch(exec: usize, stream: usize) -> c_int {
    call_log::call("cudaGraphLaunch", || format!("{exec:#x}, {stream:#x}"));
    handed_on::forget_all();
    match EXECS.with(exec, |_| ()) {
        Some(()) => SUCCESS,
        None => report(INVALID_RESOURCE_HANDLE),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaGraphDestroy(graph: usize) -> c_int {
    match GRAPHS.remove(graph) {
        Some(_) => SUCCESS,
        None => report(INVALID_RESOURCE_HANDLE),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaGraphExecDestroy(exec: usize) -> c_int {
    match EXECS.remove(exec) {
        Some(_) => SUCCESS,
        None => report(INVALID_RESOURCE_HANDLE),
    }
}

/// # Safety
/// `graph` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaGraphCreate(graph: *mut usize, _flags: u32) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { write_out(graph, GRAPHS.insert(Graph { nodes: 0 })) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaGraphDebugDotPrint(
    _graph: usize,
    _path: *const c_char,
    _flags: u32,
) -> c_int {
    refuse("CUDA runtime", "cudaGraphDebugDotPrint");
    report(NOT_SUPPORTED)
}

crate::refused! { "CUDA runtime", NOT_SUPPORTED;
    cudaGraphNodeGetDependencies, cudaGraphNodeGetDependencies_v2,
    cudaGraphAddNode, cudaGraphAddNode_v2, cudaGraphAddKernelNode, cudaGraphAddMemcpyNode,
    cudaGraphAddMemsetNode, cudaGraphAddDependencies, cudaGraphConditionalHandleCreate,
    cudaGraphConditionalHandleCreate_v2, cudaGraphExecUpdate, cudaGraphNodeGetType,
    cudaGraphKernelNodeGetParams, cudaGraphKernelNodeSetParams, cudaGraphExecKernelNodeSetParams,
    cudaStreamUpdateCaptureDependencies, cudaStreamUpdateCaptureDependencies_v2,
    cudaStreamBeginCaptureToGraph,
}

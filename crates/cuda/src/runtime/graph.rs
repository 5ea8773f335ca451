//! Graphs and their nodes, captured or built by hand, and their launches.

use std::ffi::{c_char, c_int, c_void};

use super::errors::{INVALID_RESOURCE_HANDLE, INVALID_VALUE, NOT_SUPPORTED, SUCCESS, report};
use super::stream;
use crate::handles::Handles;
use crate::refuse::refuse;
use crate::{call_log, clock, handed_on, real_library, write_out};

/// What a captured piece of work was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    Kernel,
    Copy,
    Fill,
    Host,
    /// Does nothing; it only orders other nodes.
    Empty,
    EventWait,
    /// Records this event whenever the graph is launched.
    EventRecord(usize),
}

impl Node {
    /// `cudaGraphNodeType`.
    fn kind(self) -> c_int {
        match self {
            Self::Kernel => 0,
            Self::Copy => 1,
            Self::Fill => 2,
            Self::Host => 3,
            Self::Empty => 5,
            Self::EventWait => 6,
            Self::EventRecord(_) => 7,
        }
    }
}

/// A graph that is being built or captured.
#[derive(Default)]
pub(super) struct Graph {
    pub nodes: Vec<Node>,
    /// For each node, the handles of the nodes that it depends on.
    pub dependencies: Vec<Vec<usize>>,
    /// Whether its capture contains something that cannot be captured.
    pub is_invalid: bool,
}

struct GraphExec {
    nodes: Vec<Node>,
    flags: u64,
}

/// A node's handle consists of its graph's handle and, below this bit, its number in the graph.
const NODE_SHIFT: u32 = 24;

pub(super) fn node_handle(graph: usize, index: usize) -> usize {
    (graph << NODE_SHIFT) | (index + 1)
}

/// The graph and the number that a node's handle stands for.
fn place_of(handle: usize) -> Option<(usize, usize)> {
    let index = (handle & ((1 << NODE_SHIFT) - 1)).checked_sub(1)?;
    Some((handle >> NODE_SHIFT, index))
}

fn node_of(handle: usize) -> Option<Node> {
    let (graph, index) = place_of(handle)?;
    GRAPHS
        .with(graph, |graph| graph.nodes.get(index).copied())
        .flatten()
}

/// Adds a node that depends on others to a graph. `None` if the graph or one of the others does not exist.
pub fn add_node(graph: usize, node: Node, behind: Vec<usize>) -> Option<usize> {
    GRAPHS
        .with(graph, |contents| {
            let is_in_graph = |&handle: &usize| {
                place_of(handle)
                    .is_some_and(|(other, index)| other == graph && index < contents.nodes.len())
            };
            if !behind.iter().all(is_in_graph) {
                return None;
            }
            let handle = node_handle(graph, contents.nodes.len());
            contents.nodes.push(node);
            contents.dependencies.push(behind);
            Some(handle)
        })
        .flatten()
}

/// Whether the functions without a version in their names take edge data, as in CUDA 13.
pub fn has_edge_data() -> bool {
    const FIRST_WITH_EDGE_DATA: c_int = 13_000;
    real_library::cuda_runtime_version() >= FIRST_WITH_EDGE_DATA
}

pub(super) static GRAPHS: Handles<Graph> = Handles::starting_at(0x6100_0000);
static EXECS: Handles<GraphExec> = Handles::starting_at(0x6e00_0000);
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
    let Some(total) = GRAPHS.with(graph, |graph| graph.nodes.len()) else {
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
            nodes.add(index).write(node_handle(graph, index));
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
    let Some(nodes) = GRAPHS.with(graph, |graph| graph.nodes.clone()) else {
        return report(INVALID_RESOURCE_HANDLE);
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(exec, EXECS.insert(GraphExec { nodes, flags })) };
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
    let Some(nodes) = EXECS.with(exec, |exec| exec.nodes.clone()) else {
        return report(INVALID_RESOURCE_HANDLE);
    };
    let working = nodes.iter().filter(|node| **node != Node::Empty).count();
    stream::submit(stream, Node::Kernel, clock::KERNEL * working as u64);
    for node in nodes {
        if let Node::EventRecord(event) = node {
            super::event::record(event, stream);
        }
    }
    SUCCESS
}

/// # Safety
/// `flags` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaGraphExecGetFlags(exec: usize, flags: *mut u64) -> c_int {
    let Some(answer) = EXECS.with(exec, |exec| exec.flags) else {
        return report(INVALID_RESOURCE_HANDLE);
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(flags, answer) };
    SUCCESS
}

/// # Safety
/// `count` is null or valid; `nodes` is null or has room for `*count` handles.
unsafe fn node_dependencies(node: usize, nodes: *mut usize, count: *mut usize) -> c_int {
    let found = place_of(node).and_then(|(graph, index)| {
        GRAPHS.with(graph, |graph| graph.dependencies.get(index).cloned())?
    });
    let Some(before) = found else {
        return report(INVALID_VALUE);
    };
    if count.is_null() {
        return report(INVALID_VALUE);
    }
    // SAFETY: promised by the caller.
    unsafe {
        if nodes.is_null() {
            count.write(before.len());
            return SUCCESS;
        }
        let wanted = count.read().min(before.len());
        for (place, &handle) in before.iter().take(wanted).enumerate() {
            nodes.add(place).write(handle);
        }
        count.write(wanted);
    }
    SUCCESS
}

/// In CUDA 13 the third parameter is for edge data and the fourth is the count; in CUDA 12 the third is
/// the count. Dependencies of captured work have no edge data.
///
/// # Safety
/// The count is null or valid; `nodes` is null or has room for as many handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaGraphNodeGetDependencies(
    node: usize,
    nodes: *mut usize,
    third: *mut c_void,
    fourth: *mut usize,
) -> c_int {
    let count = if has_edge_data() {
        fourth
    } else {
        third.cast()
    };
    // SAFETY: promised by the caller.
    unsafe { node_dependencies(node, nodes, count) }
}

/// The form of CUDA 12 with edge data.
///
/// # Safety
/// As for [`cudaGraphNodeGetDependencies`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaGraphNodeGetDependencies_v2(
    node: usize,
    nodes: *mut usize,
    _edge_data: *mut c_void,
    count: *mut usize,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { node_dependencies(node, nodes, count) }
}

/// # Safety
/// `kind` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaGraphNodeGetType(node: usize, kind: *mut c_int) -> c_int {
    let Some(node) = node_of(node) else {
        return report(INVALID_VALUE);
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(kind, node.kind()) };
    SUCCESS
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
    unsafe { write_out(graph, GRAPHS.insert(Graph::default())) };
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
    cudaGraphAddNode, cudaGraphAddNode_v2, cudaGraphAddKernelNode, cudaGraphAddMemcpyNode,
    cudaGraphAddMemsetNode, cudaGraphAddDependencies, cudaGraphConditionalHandleCreate,
    cudaGraphConditionalHandleCreate_v2, cudaGraphExecUpdate,
    cudaGraphKernelNodeGetParams, cudaGraphKernelNodeSetParams, cudaGraphExecKernelNodeSetParams,
    cudaStreamBeginCaptureToGraph,
}

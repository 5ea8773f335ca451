//! Empty nodes in a graph that is being captured, and what depends on them. PyTorch 2.9 marks with such a
//! node where a block of memory was freed.

use std::ffi::{c_int, c_void};

use super::capture;
use super::errors::{ILLEGAL_STATE, INVALID_VALUE, SUCCESS, report};
use super::graph::{self, Node};
use crate::write_out;

/// Flag of `cudaStreamUpdateCaptureDependencies`: replace the dependencies instead of adding to them.
const SET: u32 = 1;

/// # Safety
/// `node` is null or writable; `behind` has `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaGraphAddEmptyNode(
    node: *mut usize,
    graph: usize,
    behind: *const usize,
    count: usize,
) -> c_int {
    // SAFETY: promised by the caller.
    let Some(behind) = (unsafe { handles(behind, count) }) else {
        return report(INVALID_VALUE);
    };
    let Some(handle) = graph::add_node(graph, Node::Empty, behind.to_vec()) else {
        return report(INVALID_VALUE);
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(node, handle) };
    SUCCESS
}

/// In CUDA 13 the third parameter is for edge data, followed by count and flags; in CUDA 12 the third
/// parameter is the count, and the fourth has the flags.
///
/// # Safety
/// `nodes` has as many handles as the count says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaStreamUpdateCaptureDependencies(
    stream: usize,
    nodes: *const usize,
    third: usize,
    fourth: usize,
    fifth: u32,
) -> c_int {
    let (count, flags) = if graph::has_edge_data() {
        (fourth, fifth)
    } else {
        // Flags have 32 bits: the upper half of the register is undefined.
        (third, (fourth & 0xffff_ffff) as u32)
    };
    // SAFETY: promised by the caller.
    unsafe { update(stream, nodes, count, flags) }
}

/// The form of CUDA 12 with edge data.
///
/// # Safety
/// `nodes` has `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaStreamUpdateCaptureDependencies_v2(
    stream: usize,
    nodes: *const usize,
    _edge_data: *const c_void,
    count: usize,
    flags: u32,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { update(stream, nodes, count, flags) }
}

/// # Safety
/// `nodes` has `count` handles.
unsafe fn update(stream: usize, nodes: *const usize, count: usize, flags: u32) -> c_int {
    // SAFETY: promised by the caller.
    let Some(nodes) = (unsafe { handles(nodes, count) }) else {
        return report(INVALID_VALUE);
    };
    if capture::add_dependencies(stream, nodes, flags & SET != 0) {
        SUCCESS
    } else {
        report(ILLEGAL_STATE)
    }
}

/// # Safety
/// `first` is null or the first of `count` handles.
unsafe fn handles<'a>(first: *const usize, count: usize) -> Option<&'a [usize]> {
    match (first.is_null(), count) {
        (_, 0) => Some(&[]),
        (true, _) => None,
        // SAFETY: promised by the caller.
        (false, _) => Some(unsafe { std::slice::from_raw_parts(first, count) }),
    }
}

#[cfg(test)]
mod tests {
    use std::ptr::null;

    use super::super::errors::{ILLEGAL_STATE, INVALID_VALUE, SUCCESS};
    use super::super::graph::{cudaGraphCreate, cudaGraphDestroy, cudaGraphNodeGetDependencies_v2};
    use super::super::graph::{cudaGraphGetNodes, cudaGraphNodeGetType};
    use super::{cudaGraphAddEmptyNode, cudaStreamUpdateCaptureDependencies_v2};

    const EMPTY: i32 = 5;

    #[test]
    fn an_empty_node_comes_behind_others_of_its_graph() {
        let (mut graph, mut other, mut first, mut second) = (0, 0, 0, 0);
        // SAFETY: all pointers are to variables of this function.
        unsafe {
            assert_eq!(cudaGraphCreate(&raw mut graph, 0), SUCCESS);
            assert_eq!(cudaGraphCreate(&raw mut other, 0), SUCCESS);
            assert_eq!(
                cudaGraphAddEmptyNode(&raw mut first, graph, null(), 0),
                SUCCESS
            );
            assert_eq!(
                cudaGraphAddEmptyNode(&raw mut second, graph, &raw const first, 1),
                SUCCESS
            );
            let (mut kind, mut behind, mut count) = (-1, 0_usize, 1_usize);
            assert_eq!(cudaGraphNodeGetType(second, &raw mut kind), SUCCESS);
            assert_eq!(kind, EMPTY);
            let edges = std::ptr::null_mut();
            assert_eq!(
                cudaGraphNodeGetDependencies_v2(second, &raw mut behind, edges, &raw mut count),
                SUCCESS
            );
            assert_eq!((count, behind), (1, first));
            let no_nodes = std::ptr::null_mut();
            assert_eq!(cudaGraphGetNodes(graph, no_nodes, &raw mut count), SUCCESS);
            assert_eq!(count, 2);
            assert_eq!(
                cudaGraphAddEmptyNode(&raw mut second, other, &raw const first, 1),
                INVALID_VALUE,
                "the node is in another graph"
            );
        }
        assert_eq!(cudaGraphDestroy(graph), SUCCESS);
        assert_eq!(cudaGraphDestroy(other), SUCCESS);
    }

    #[test]
    fn only_a_capturing_stream_has_an_order_to_change() {
        // SAFETY: there are no nodes to read.
        let changed = unsafe { cudaStreamUpdateCaptureDependencies_v2(0, null(), null(), 0, 1) };
        assert_eq!(changed, ILLEGAL_STATE);
    }
}

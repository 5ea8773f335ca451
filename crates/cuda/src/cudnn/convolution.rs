//! Convolutions of the older interface, which PyTorch uses with `TORCH_CUDNN_V8_API_DISABLED=1`.
//!
//! The sizes are those of the first engine that the newer interface proposes for the same problem. The
//! old algorithm numbers name the same kernels only roughly, so this is an assumption of the answer.

use std::ffi::c_void;

use ghostgpu_oracle::{Attribute, Node, Value, attribute, kind, value_type};

use super::objects::write;
use super::tensors::{self, Convolution, Filter, Tensor};
use super::{computed_in_workspace, data_type, sizes, status};
use crate::{call_log, notes};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Data,
    Filter,
}

/// `cudnnConvolutionFwdAlgoPerf_t`, and its counterparts for the gradients, which have the same layout.
#[repr(C)]
pub struct Performance {
    algorithm: i32,
    status: i32,
    time_ms: f32,
    memory_bytes: usize,
    determinism: i32,
    math_type: i32,
    reserved: [i32; 3],
}

/// Implicit GEMM with precomputed indices, and for the gradients the deterministic algorithm: all 1.
const ALGORITHM: i32 = 1;

fn numbers(name: i32, value_type: i32, values: impl IntoIterator<Item = i64>) -> Attribute {
    Attribute {
        name,
        value_type,
        value: Value::Numbers(values.into_iter().collect()),
    }
}

fn widen(values: &[i32]) -> impl Iterator<Item = i64> + '_ {
    values.iter().map(|&value| i64::from(value))
}

fn tensor_node(id: i64, data_type: i32, dimensions: &[i32], strides: &[i32]) -> Node {
    const BYTE_ALIGNMENT: i32 = 900;
    Node {
        kind: kind::TENSOR,
        attributes: vec![
            numbers(BYTE_ALIGNMENT, value_type::INT64, [32]),
            numbers(attribute::TENSOR_DATA_TYPE, 1, [i64::from(data_type)]),
            numbers(
                attribute::TENSOR_DIMENSIONS,
                value_type::INT64,
                widen(dimensions),
            ),
            numbers(attribute::TENSOR_STRIDES, value_type::INT64, widen(strides)),
            numbers(attribute::TENSOR_UNIQUE_ID, value_type::INT64, [id]),
        ],
    }
}

fn filter_strides(filter: &Filter) -> Vec<i32> {
    const CHANNELS_LAST: i32 = 1;
    let rank = filter.dimensions.len();
    let mut order: Vec<usize> = (0..rank).collect();
    if filter.format == CHANNELS_LAST && rank > 2 {
        order.remove(1);
        order.push(1);
    }
    let mut strides = vec![1; rank];
    let mut running = 1;
    for axis in order.into_iter().rev() {
        strides[axis] = running;
        running *= filter.dimensions[axis];
    }
    strides
}

fn graph(direction: Direction, x: &Tensor, w: &Filter, y: &Tensor, how: &Convolution) -> Node {
    let compute = if x.data_type == data_type::DOUBLE {
        data_type::DOUBLE
    } else {
        how.compute_type
    };
    let convolution = Node {
        kind: kind::CONVOLUTION,
        attributes: vec![
            numbers(100, 1, [i64::from(compute)]),
            numbers(101, 7, [i64::from(how.mode)]),
            numbers(102, value_type::INT64, widen(&how.dilation)),
            numbers(103, value_type::INT64, widen(&how.stride)),
            numbers(104, value_type::INT64, widen(&how.padding)),
            numbers(105, value_type::INT64, widen(&how.padding)),
            numbers(106, value_type::INT64, [how.padding.len() as i64]),
        ],
    };
    let (kind, base) = match direction {
        Direction::Forward => (kind::CONVOLUTION_FORWARD, 700),
        Direction::Data => (kind::CONVOLUTION_BACKWARD_DATA, 706),
        Direction::Filter => (kind::CONVOLUTION_BACKWARD_FILTER, 712),
    };
    let node = |name, node| Attribute {
        name,
        value_type: value_type::DESCRIPTOR,
        value: Value::Nodes(vec![node]),
    };
    let strides = filter_strides(w);
    let float = |value: f32| [i64::from(value.to_bits())];
    let operation = Node {
        kind,
        attributes: vec![
            numbers(base, 4, float(1.0)),
            numbers(base + 1, 4, float(0.0)),
            node(base + 2, convolution),
            node(
                base + 3,
                tensor_node(1, w.data_type, &w.dimensions, &strides),
            ),
            node(
                base + 4,
                tensor_node(2, x.data_type, &x.dimensions, &x.strides),
            ),
            node(
                base + 5,
                tensor_node(3, y.data_type, &y.dimensions, &y.strides),
            ),
        ],
    };
    Node {
        kind: kind::OPERATION_GRAPH,
        attributes: vec![node(attribute::GRAPH_OPERATIONS, operation)],
    }
}

fn workspace_bytes(
    direction: Direction,
    x: *mut c_void,
    w: *mut c_void,
    y: *mut c_void,
    how: *mut c_void,
) -> Result<i64, i32> {
    let (Some(x), Some(w), Some(y), Some(how)) = (
        tensors::tensor(x),
        tensors::filter(w),
        tensors::tensor(y),
        tensors::convolution(how),
    ) else {
        return Err(status::BAD_PARAM);
    };
    notes::assume(
        "convolutions of cuDNN's older interface are sized like the first choice of the newer one",
    );
    let graph = graph(direction, &x, &w, &y, &how).with_counted_ids();
    let configs = sizes::heuristics(&graph, 0, None)?;
    for config in &configs {
        if let Ok(bytes) = sizes::plan_workspace(&graph, config.engine, &config.knobs) {
            return Ok(bytes);
        }
    }
    Err(status::NOT_SUPPORTED)
}

/// # Safety
/// `count` and `results` must be null or valid, the latter for one entry.
unsafe fn answer_algorithm(
    bytes: Result<i64, i32>,
    count: *mut i32,
    results: *mut Performance,
) -> i32 {
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(code) => return code,
    };
    let performance = Performance {
        algorithm: ALGORITHM,
        status: status::SUCCESS,
        time_ms: 1.0,
        memory_bytes: bytes as usize,
        determinism: 1,
        math_type: 1,
        reserved: [0; 3],
    };
    // SAFETY: promised by the caller.
    unsafe {
        write(count, 1);
        write(results, performance);
    }
    status::SUCCESS
}

/// # Safety
/// `bytes` must be null or valid.
unsafe fn answer_size(size: Result<i64, i32>, bytes: *mut usize) -> i32 {
    call_log::call("convolution workspace", || format!("{size:?}"));
    match size {
        Ok(size) => {
            // SAFETY: promised by the caller.
            unsafe { write(bytes, size as usize) };
            status::SUCCESS
        }
        Err(code) => code,
    }
}

/// The three functions for one direction: choose an algorithm, try all of them, and say how much
/// workspace one needs. The directions differ in the order of input `x`, filter `w` and output `y`.
macro_rules! questions {
    (
        $direction:ident of ($x:ident, $w:ident, $y:ident), given ($first:ident, $second:ident),
        wanted $wanted:ident: $choose:ident, $try_all:ident, $size:ident
    ) => {
        /// # Safety
        /// `count` and `results` must be valid.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $choose(
            _handle: *mut c_void,
            $first: *mut c_void,
            $second: *mut c_void,
            how: *mut c_void,
            $wanted: *mut c_void,
            _requested: i32,
            count: *mut i32,
            results: *mut Performance,
        ) -> i32 {
            let bytes = workspace_bytes(Direction::$direction, $x, $w, $y, how);
            // SAFETY: promised by the caller.
            unsafe { answer_algorithm(bytes, count, results) }
        }

        /// # Safety
        /// `count` and `results` must be valid.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $try_all(
            _handle: *mut c_void,
            $first: *mut c_void,
            _first_data: *const c_void,
            $second: *mut c_void,
            _second_data: *const c_void,
            how: *mut c_void,
            $wanted: *mut c_void,
            _wanted_data: *mut c_void,
            _requested: i32,
            count: *mut i32,
            results: *mut Performance,
            _workspace: *mut c_void,
            _workspace_bytes: usize,
        ) -> i32 {
            let bytes = workspace_bytes(Direction::$direction, $x, $w, $y, how);
            // SAFETY: promised by the caller.
            unsafe { answer_algorithm(bytes, count, results) }
        }

        /// # Safety
        /// `bytes` must be valid.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $size(
            _handle: *mut c_void,
            $first: *mut c_void,
            $second: *mut c_void,
            how: *mut c_void,
            $wanted: *mut c_void,
            _algorithm: i32,
            bytes: *mut usize,
        ) -> i32 {
            let size = workspace_bytes(Direction::$direction, $x, $w, $y, how);
            // SAFETY: promised by the caller.
            unsafe { answer_size(size, bytes) }
        }
    };
}

questions!(
    Forward of (x, w, y), given (x, w), wanted y:
    cudnnGetConvolutionForwardAlgorithm_v7,
    cudnnFindConvolutionForwardAlgorithmEx,
    cudnnGetConvolutionForwardWorkspaceSize
);
questions!(
    Data of (x, w, y), given (w, y), wanted x:
    cudnnGetConvolutionBackwardDataAlgorithm_v7,
    cudnnFindConvolutionBackwardDataAlgorithmEx,
    cudnnGetConvolutionBackwardDataWorkspaceSize
);
questions!(
    Filter of (x, w, y), given (x, y), wanted w:
    cudnnGetConvolutionBackwardFilterAlgorithm_v7,
    cudnnFindConvolutionBackwardFilterAlgorithmEx,
    cudnnGetConvolutionBackwardFilterWorkspaceSize
);

computed_in_workspace! {
    cudnnConvolutionForward(handle, alpha, x_layout, x, w_layout, w, convolution, algorithm);
    cudnnConvolutionBackwardData(handle, alpha, w_layout, w, dy_layout, dy, convolution, algorithm);
    cudnnConvolutionBackwardFilter(handle, alpha, x_layout, x, dy_layout, dy, convolution, algorithm);
    cudnnConvolutionBiasActivationForward(
        handle, alpha, x_layout, x, w_layout, w, convolution, algorithm,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_with_channels_last_has_its_channels_next_to_each_other() {
        let filter = Filter {
            data_type: 0,
            format: 1,
            dimensions: vec![64, 32, 3, 3],
        };
        assert_eq!(filter_strides(&filter), [288, 1, 96, 32]);
    }
}

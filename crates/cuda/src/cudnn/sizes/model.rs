//! Workspace sizes without cuDNN: what its usual convolution engines need, from the shapes alone.
//!
//! On cards with tensor cores cuDNN runs most convolutions with engines that want the channels last. Tensors that have
//! them first are transposed into the workspace; those that have them last need next to none. Which tensors are
//! transposed depends on the card. These rules were compared with the first choice of cuDNN 9.10.2, asked without a card, for
//! some 50 convolutions of common networks in each direction (within 5 % of a copy of all three tensors):
//!
//! | single precision | forward | input gradient | filter gradient |
//! |---|---|---|---|
//! | 8.0 | 42 of 59 | 37 of 48 | 24 of 55 |
//! | 8.6 | 38 of 59 | 36 of 48 | 32 of 55 |
//! | 8.9 | 48 of 59 | 30 of 48 | 30 of 55 |
//!
//! In half precision, and on an H200 in single precision, copies of all three are right for about two thirds. The
//! rest differ by partial sums and padding.

use ghostgpu_device::Capability;
use ghostgpu_oracle::{EngineAnswer, EngineConfig, Node, attribute, kind};

use super::attention;
use crate::cudnn::{data_type, status};
use crate::state;

/// The one engine of the model.
const MODEL_ENGINE: i64 = 0;
/// What the transposing engines take beside the copies.
const SMALL_CHANGE_BYTES: i64 = 147;

pub fn heuristics(graph: &Node) -> Result<Vec<EngineConfig>, i32> {
    workspace(graph)?;
    Ok(vec![EngineConfig {
        engine: MODEL_ENGINE,
        ..EngineConfig::default()
    }])
}

pub fn engine(graph: &Node, index: i64) -> Result<EngineAnswer, i32> {
    workspace(graph)?;
    if index == MODEL_ENGINE {
        Ok(EngineAnswer::default())
    } else {
        Err(status::NOT_SUPPORTED)
    }
}

/// Attention and convolutions only: without cuDNN there is no telling which other graphs it supports,
/// and PyTorch has other ways to run them.
pub fn workspace(graph: &Node) -> Result<i64, i32> {
    let multiprocessors = state::current_sheet().map_or(0, |sheet| sheet.multiprocessors);
    if let Some(bytes) = attention::workspace(graph, multiprocessors) {
        return Ok(bytes);
    }
    let operations = graph.nodes(attribute::GRAPH_OPERATIONS);
    let convolution = operations.iter().find(|operation| {
        [
            kind::CONVOLUTION_FORWARD,
            kind::CONVOLUTION_BACKWARD_DATA,
            kind::CONVOLUTION_BACKWARD_FILTER,
        ]
        .contains(&operation.kind)
    });
    let convolution = convolution.ok_or(status::NOT_SUPPORTED)?;
    let capability = state::current_sheet().map(|sheet| sheet.capability);
    Ok(convolution_bytes(convolution, capability))
}

/// How cuDNN treats tensors with the channels first, by the card's capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Habit {
    /// No tensor cores for this type.
    Nothing,
    /// All three tensors are transposed.
    CopyAll,
    /// Forward, the output is written as it is to be (A100).
    CopyForwardInput,
    /// The same, and gradients of few channels are computed without transposing (Ampere's and Ada's other cards).
    CopyWhereWorthwhile,
}

impl Habit {
    fn of(capability: Option<Capability>, is_single: bool) -> Self {
        let Some(Capability { major, minor }) = capability else {
            return Self::CopyAll;
        };
        match (major, minor) {
            (..=6, _) => Self::Nothing,
            (7, _) if is_single => Self::Nothing,
            (8, 0) if is_single => Self::CopyForwardInput,
            (8 | 12, _) if is_single => Self::CopyWhereWorthwhile,
            _ => Self::CopyAll,
        }
    }
}

/// What one convolution takes, of any direction.
fn convolution_bytes(convolution: &Node, capability: Option<Capability>) -> i64 {
    // The attributes of an operation are numbered alike: descriptor, filter, input, output.
    let first = match convolution.kind {
        kind::CONVOLUTION_FORWARD => 703,
        kind::CONVOLUTION_BACKWARD_DATA => 709,
        _ => 715,
    };
    let tensor = |offset: i32| convolution.nodes(first + offset).first();
    let (Some(filter), Some(input), Some(output)) = (tensor(0), tensor(1), tensor(2)) else {
        return 0;
    };
    let copy_of = |tensor: &Node| {
        if has_channels_first(tensor) {
            tensor_bytes(tensor)
        } else {
            0
        }
    };
    let all = [filter, input, output].into_iter().map(copy_of).sum();
    let sizes = filter.numbers(attribute::TENSOR_DIMENSIONS);
    let (Some(&out_channels), Some(&channels)) = (sizes.first(), sizes.get(1)) else {
        return 0;
    };
    let is_grouped = input.numbers(attribute::TENSOR_DIMENSIONS).get(1) != Some(&channels);
    let is_pointwise = sizes.iter().skip(2).all(|&size| size == 1);
    let is_strided = convolution
        .nodes(first - 1)
        .iter()
        .flat_map(|descriptor| descriptor.numbers(CONVOLUTION_STRIDES))
        .any(|&stride| stride > 1);
    let is_single = element_type(input) == i64::from(data_type::FLOAT);
    let habit = Habit::of(capability, is_single);
    let copies = match (habit, convolution.kind) {
        (Habit::Nothing, _) => 0,
        (Habit::CopyAll, _) => all,
        _ if is_grouped => all,
        (_, kind::CONVOLUTION_FORWARD) if channels <= 4 || is_pointwise && channels < 128 => 0,
        (_, kind::CONVOLUTION_FORWARD) => copy_of(input) + copy_of(filter),
        (Habit::CopyForwardInput, _) => all,
        (_, kind::CONVOLUTION_BACKWARD_DATA) if channels < 256 || is_strided => 0,
        (_, kind::CONVOLUTION_BACKWARD_DATA) => all,
        _ if is_pointwise && channels.min(out_channels) < 256 => 0,
        _ if !is_pointwise && (channels <= 4 || out_channels <= 32) => 0,
        _ => all,
    };
    if copies == 0 {
        0
    } else {
        copies + SMALL_CHANGE_BYTES
    }
}

/// `CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES`.
const CONVOLUTION_STRIDES: i32 = 103;

fn element_type(tensor: &Node) -> i64 {
    let types = tensor.numbers(attribute::TENSOR_DATA_TYPE);
    types.first().copied().unwrap_or(0)
}

fn has_channels_first(tensor: &Node) -> bool {
    let dimensions = tensor.numbers(attribute::TENSOR_DIMENSIONS);
    let strides = tensor.numbers(attribute::TENSOR_STRIDES);
    let has_several = |axis: usize| dimensions.get(axis).is_some_and(|&size| size > 1);
    has_several(1)
        && (2..dimensions.len()).any(has_several)
        && strides.get(1).is_some_and(|&stride| stride != 1)
}

fn tensor_bytes(tensor: &Node) -> i64 {
    let elements: i64 = tensor
        .numbers(attribute::TENSOR_DIMENSIONS)
        .iter()
        .product();
    elements * data_type::bytes(element_type(tensor) as i32) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use ghostgpu_oracle::{Attribute, Value};

    fn attribute_of(name: i32, value: Value) -> Attribute {
        Attribute {
            name,
            value_type: 0,
            value,
        }
    }

    fn tensor(dimensions: [i64; 4], strides: [i64; 4]) -> Node {
        Node {
            kind: kind::TENSOR,
            attributes: vec![
                attribute_of(901, Value::Numbers(vec![0])),
                attribute_of(902, Value::Numbers(dimensions.to_vec())),
                attribute_of(903, Value::Numbers(strides.to_vec())),
            ],
        }
    }

    fn forward(tensors: [Node; 3]) -> Node {
        let [w, x, y] = tensors;
        let operation = Node {
            kind: kind::CONVOLUTION_FORWARD,
            attributes: vec![
                attribute_of(703, Value::Nodes(vec![w])),
                attribute_of(704, Value::Nodes(vec![x])),
                attribute_of(705, Value::Nodes(vec![y])),
            ],
        };
        Node {
            kind: kind::OPERATION_GRAPH,
            attributes: vec![attribute_of(801, Value::Nodes(vec![operation]))],
        }
    }

    #[test]
    fn channels_first_costs_a_copy_of_each_tensor() {
        // What cuDNN 9.19 and 9.10.2 answer on an H200 is 102,908,051.
        let image = tensor([64, 64, 56, 56], [200_704, 3136, 56, 1]);
        let filter = tensor([64, 64, 3, 3], [576, 9, 3, 1]);
        let graph = forward([filter, image.clone(), image]);
        assert_eq!(workspace(&graph), Ok(102_908_051));
    }

    /// Bytes of the workspace of a 3×3 convolution (or 1×1) on 32 images of 28×28, in units of an image tensor of
    /// 128 channels.
    fn copies(operation: i32, sizes: (i64, i64, i64), of_type: i64, capability: (u32, u32)) -> f64 {
        let (channels, out_channels, side) = sizes;
        let image = |channels: i64| Node {
            kind: kind::TENSOR,
            attributes: vec![
                attribute_of(901, Value::Numbers(vec![of_type])),
                attribute_of(902, Value::Numbers(vec![32, channels, 28, 28])),
                attribute_of(903, Value::Numbers(vec![channels * 784, 784, 28, 1])),
            ],
        };
        let filter = tensor(
            [out_channels, channels, side, side],
            [channels * side * side, side * side, side, 1],
        );
        let first = match operation {
            kind::CONVOLUTION_FORWARD => 703,
            kind::CONVOLUTION_BACKWARD_DATA => 709,
            _ => 715,
        };
        let node = Node {
            kind: operation,
            attributes: vec![
                attribute_of(first, Value::Nodes(vec![filter])),
                attribute_of(first + 1, Value::Nodes(vec![image(channels)])),
                attribute_of(first + 2, Value::Nodes(vec![image(out_channels)])),
            ],
        };
        let capability = Capability::new(capability.0, capability.1);
        let element = data_type::bytes(of_type as i32) as f64;
        convolution_bytes(&node, Some(capability)) as f64 / (32.0 * 128.0 * 784.0 * element)
    }

    #[test]
    fn each_kind_of_card_copies_what_cudnn_copies_there() {
        const SINGLE: i64 = data_type::FLOAT as i64;
        const HALF: i64 = data_type::HALF as i64;
        let (forward, data, filter) = (
            kind::CONVOLUTION_FORWARD,
            kind::CONVOLUTION_BACKWARD_DATA,
            kind::CONVOLUTION_BACKWARD_FILTER,
        );
        let wide = (256, 256, 3);
        let narrow = (64, 64, 3);
        for (operation, sizes, of_type, capability, images) in [
            // An A100 copies the input forward, and everything backward.
            (forward, wide, SINGLE, (8, 0), 2),
            (data, wide, SINGLE, (8, 0), 4),
            (data, narrow, SINGLE, (8, 0), 1),
            // Other cards of that generation spare narrow layers.
            (forward, narrow, SINGLE, (8, 6), 0),
            (data, narrow, SINGLE, (8, 6), 0),
            (data, wide, SINGLE, (8, 6), 4),
            (filter, narrow, SINGLE, (8, 9), 1),
            (filter, (64, 64, 1), SINGLE, (8, 9), 0),
            (filter, (3, 64, 3), SINGLE, (8, 9), 0),
            (forward, (3, 64, 3), SINGLE, (8, 6), 0),
            // Tensor cores of Volta and Turing know half precision only.
            (forward, wide, SINGLE, (7, 5), 0),
            (forward, wide, HALF, (7, 5), 4),
            (filter, narrow, HALF, (8, 6), 1),
        ] {
            let copied = copies(operation, sizes, of_type, capability);
            let expected = f64::from(images);
            // The filter is small beside the images; half an image is what narrow layers have forward.
            assert!(
                (expected..expected + 0.6).contains(&copied),
                "{operation} {sizes:?} {capability:?}: {copied} for {images}"
            );
        }
    }

    #[test]
    fn channels_last_costs_nothing() {
        let image = tensor([64, 64, 56, 56], [200_704, 1, 3584, 64]);
        let filter = tensor([64, 64, 3, 3], [576, 1, 192, 64]);
        assert_eq!(workspace(&forward([filter, image.clone(), image])), Ok(0));
    }
}

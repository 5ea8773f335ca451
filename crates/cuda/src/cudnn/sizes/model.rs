//! Workspace sizes without cuDNN: what its usual convolution engines need, from the shapes alone.
//!
//! On cards with tensor cores for the type (capability 8.0 and later; 7.0 and 7.5 in half precision)
//! cuDNN runs most convolutions with engines that want the channels last. Tensors that have them first
//! are transposed into the workspace, so that it holds a copy of each of the three tensors; those that
//! have them last need next to none. This is what cuDNN 9 answers for the first choice of about two
//! thirds of the layers of common networks on an H200; the rest differ by partial sums and padding.
//!
//! cuDNN 9.10 and later spare some of these copies on Ampere and Ada in single precision. Rules made after
//! their answers were tried here and taken out again: this model is needed for older ones, and the peaks
//! that others measured with cuDNN 9.1 on an RTX 3060 (`ground_truth/published`) are closer to it.

use ghostgpu_device::Capability;
use ghostgpu_oracle::{EngineAnswer, EngineConfig, Node, attribute, kind};

use super::FALLBACK_MODE;
use super::attention;
use crate::cudnn::{data_type, status};
use crate::state;

/// The engine that the model proposes.
const MODEL_ENGINE: i64 = 0;
/// The engine that cuDNN falls back to where memory is short: for every convolution it documents an algorithm that
/// takes no workspace.
const FALLBACK_ENGINE: i64 = 1;
/// What the transposing engines take besides the copies.
const SMALL_CHANGE_BYTES: i64 = 147;

pub fn heuristics(graph: &Node, mode: i32) -> Result<Vec<EngineConfig>, i32> {
    let engine = match mode {
        FALLBACK_MODE => FALLBACK_ENGINE,
        _ => MODEL_ENGINE,
    };
    workspace(graph, engine)?;
    Ok(vec![EngineConfig {
        engine,
        ..EngineConfig::default()
    }])
}

pub fn engine(graph: &Node, index: i64) -> Result<EngineAnswer, i32> {
    workspace(graph, index)?;
    Ok(EngineAnswer::default())
}

/// Attention and convolutions only: without cuDNN it is not known which other graphs it supports, and
/// PyTorch has other ways to run them.
pub fn workspace(graph: &Node, engine: i64) -> Result<i64, i32> {
    let multiprocessors = state::current_sheet().map_or(0, |sheet| sheet.multiprocessors);
    if engine == MODEL_ENGINE
        && let Some(bytes) = attention::workspace(graph, multiprocessors)
    {
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
    match engine {
        MODEL_ENGINE => Ok(convolution_bytes(convolution, capability)),
        FALLBACK_ENGINE => Ok(0),
        _ => Err(status::NOT_SUPPORTED),
    }
}

/// What one convolution takes on a card of this capability; if it is unknown, on any card with tensor cores.
fn convolution_bytes(convolution: &Node, capability: Option<Capability>) -> i64 {
    let tensors = convolution
        .attributes
        .iter()
        .flat_map(|one| convolution.nodes(one.name))
        .filter(|node| node.kind == kind::TENSOR)
        .filter(|tensor| has_tensor_cores(capability, element_type(tensor)));
    let copies: i64 = tensors
        .filter(|tensor| has_channels_first(tensor))
        .map(tensor_bytes)
        .sum();
    if copies == 0 {
        0
    } else {
        copies + SMALL_CHANGE_BYTES
    }
}

fn has_tensor_cores(capability: Option<Capability>, element_type: i32) -> bool {
    match capability {
        Some(Capability { major: ..=6, .. }) => false,
        Some(Capability { major: 7, .. }) => element_type == data_type::HALF,
        _ => true,
    }
}

fn element_type(tensor: &Node) -> i32 {
    let types = tensor.numbers(attribute::TENSOR_DATA_TYPE);
    types.first().copied().unwrap_or(0) as i32
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
    elements * data_type::bytes(element_type(tensor)) as i64
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

    fn operation(tensors: [Node; 3]) -> Node {
        let [w, x, y] = tensors;
        Node {
            kind: kind::CONVOLUTION_FORWARD,
            attributes: vec![
                attribute_of(703, Value::Nodes(vec![w])),
                attribute_of(704, Value::Nodes(vec![x])),
                attribute_of(705, Value::Nodes(vec![y])),
            ],
        }
    }

    fn forward(tensors: [Node; 3]) -> Node {
        Node {
            kind: kind::OPERATION_GRAPH,
            attributes: vec![attribute_of(801, Value::Nodes(vec![operation(tensors)]))],
        }
    }

    #[test]
    fn only_cards_with_tensor_cores_for_the_type_transpose() {
        for (capability, of_type, transposes) in [
            ((6, 1), data_type::HALF, false),
            ((7, 0), data_type::FLOAT, false),
            ((7, 5), data_type::FLOAT, false),
            ((7, 5), data_type::HALF, true),
            ((7, 5), data_type::BFLOAT16, false),
            ((8, 0), data_type::FLOAT, true),
            ((8, 6), data_type::BFLOAT16, true),
            ((12, 0), data_type::FLOAT, true),
        ] {
            let mut image = tensor([64, 64, 56, 56], [200_704, 3136, 56, 1]);
            image.attributes[0].value = Value::Numbers(vec![i64::from(of_type)]);
            let convolution = operation([image.clone(), image.clone(), image]);
            let capability = Capability::new(capability.0, capability.1);
            let bytes = convolution_bytes(&convolution, Some(capability));
            assert_eq!(bytes > 0, transposes, "{capability} {of_type}");
        }
    }

    #[test]
    fn where_memory_is_short_a_convolution_runs_without_a_workspace() {
        let image = tensor([64, 64, 56, 56], [200_704, 3136, 56, 1]);
        let graph = forward([image.clone(), image.clone(), image]);
        let bytes_of = |mode| {
            let configs = heuristics(&graph, mode).expect("convolutions are supported");
            workspace(&graph, configs[0].engine)
        };
        assert!(bytes_of(0) > Ok(0));
        assert_eq!(bytes_of(FALLBACK_MODE), Ok(0));
        assert!(workspace(&graph, 2).is_err());
    }

    #[test]
    fn channels_first_costs_a_copy_of_each_tensor() {
        // What cuDNN 9.19 and 9.10.2 answer on an H200 is 102,908,051.
        let image = tensor([64, 64, 56, 56], [200_704, 3136, 56, 1]);
        let filter = tensor([64, 64, 3, 3], [576, 9, 3, 1]);
        let graph = forward([filter, image.clone(), image]);
        assert_eq!(workspace(&graph, MODEL_ENGINE), Ok(102_908_051));
    }

    #[test]
    fn channels_last_costs_nothing() {
        let image = tensor([64, 64, 56, 56], [200_704, 1, 3584, 64]);
        let filter = tensor([64, 64, 3, 3], [576, 1, 192, 64]);
        assert_eq!(
            workspace(&forward([filter, image.clone(), image]), MODEL_ENGINE),
            Ok(0)
        );
    }
}

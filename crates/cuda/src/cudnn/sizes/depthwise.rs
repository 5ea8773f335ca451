//! The workspace of depthwise convolutions by engines that compile their kernel at run time.
//!
//! cuDNN could be asked for these too, but it compiles the kernel for every shape before it answers,
//! which takes more than a second each. Their workspace is simple: none, except that one engine for
//! filter gradients with channels last keeps partial sums. This matches cuDNN 9.19 on an H200 for 215
//! plans and, for the partial sums, its answers without a card at five other batch sizes.

use ghostgpu_oracle::{Node, attribute, kind};

/// The workspace, if `engine` is one of those.
pub fn workspace(graph: &Node, engine: i64) -> Option<i64> {
    let [operation] = graph.nodes(attribute::GRAPH_OPERATIONS) else {
        return None;
    };
    let (known_engines, first): (&[i64], i32) = match operation.kind {
        kind::CONVOLUTION_FORWARD => (&[5], 703),
        kind::CONVOLUTION_BACKWARD_DATA => (&[6], 709),
        kind::CONVOLUTION_BACKWARD_FILTER => (&[PARTIAL_SUMS_ENGINE, 19], 715),
        _ => return None,
    };
    let dimensions = |offset: i32| {
        let tensor = operation.nodes(first + offset).first();
        tensor.map(|tensor| tensor.numbers(attribute::TENSOR_DIMENSIONS))
    };
    let (filter, input) = (dimensions(0)?, dimensions(1)?);
    let (&channels_per_group, &channels) = (filter.get(1)?, input.get(1)?);
    if !known_engines.contains(&engine) || channels_per_group != 1 || channels < 2 {
        return None;
    }
    let strides = operation
        .nodes(first + 1)
        .first()?
        .numbers(attribute::TENSOR_STRIDES);
    let has_channels_last = strides.get(1) == Some(&1);
    if engine == PARTIAL_SUMS_ENGINE && has_channels_last {
        let taps: i64 = filter.get(2..)?.iter().product();
        let images = *input.first()?;
        let padded_channels = (channels + 31) / 32 * 32;
        return Some(SUMS_PER_IMAGE * images * padded_channels * taps * 4);
    }
    Some(0)
}

const PARTIAL_SUMS_ENGINE: i64 = 16;
const SUMS_PER_IMAGE: i64 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use ghostgpu_oracle::{Attribute, Value};

    fn tensor(dimensions: [i64; 4], strides: [i64; 4]) -> Value {
        let numbers = |name, values: [i64; 4]| Attribute {
            name,
            value_type: 3,
            value: Value::Numbers(values.to_vec()),
        };
        Value::Nodes(vec![Node {
            kind: kind::TENSOR,
            attributes: vec![
                numbers(attribute::TENSOR_DIMENSIONS, dimensions),
                numbers(attribute::TENSOR_STRIDES, strides),
            ],
        }])
    }

    fn filter_gradient(images: i64, channels: i64, size: i64, taps: i64, groups: i64) -> Node {
        let below = |name, value| Attribute {
            name,
            value_type: 15,
            value,
        };
        let strides = [channels * size * size, 1, channels * size, channels];
        let image = [images, channels, size, size];
        let filter = [channels, channels / groups, taps, taps];
        let operation = Node {
            kind: kind::CONVOLUTION_BACKWARD_FILTER,
            attributes: vec![
                below(715, tensor(filter, [taps * taps, 1, taps, 1])),
                below(716, tensor(image, strides)),
                below(717, tensor(image, strides)),
            ],
        };
        Node {
            kind: kind::OPERATION_GRAPH,
            attributes: vec![below(801, Value::Nodes(vec![operation]))],
        }
    }

    #[test]
    fn partial_sums_are_as_large_as_on_an_h200() {
        assert_eq!(
            workspace(&filter_gradient(32, 144, 56, 3, 144), 16),
            Some(1_474_560)
        );
        assert_eq!(
            workspace(&filter_gradient(32, 480, 14, 5, 480), 16),
            Some(12_288_000)
        );
        assert_eq!(
            workspace(&filter_gradient(32, 480, 14, 5, 480), 19),
            Some(0)
        );
    }

    #[test]
    fn other_engines_and_other_convolutions_are_asked_for() {
        assert_eq!(workspace(&filter_gradient(32, 144, 56, 3, 144), 65), None);
        assert_eq!(workspace(&filter_gradient(32, 144, 56, 3, 1), 16), None);
    }
}

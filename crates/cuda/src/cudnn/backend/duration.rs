//! How long a plan takes, for programs that time cuDNN's engines and keep the fastest.
//!
//! PyTorch does so under `cudnn.benchmark`, and the layer then always takes the workspace of the fastest plan. Which
//! one is fastest on a real card is not known here. cuDNN lists its engines by their expected speed, and in 60 % of
//! 490 searches on an H200 the workspace was that of the first one. So all plans take the same time, and the first
//! one wins, with two exceptions. Engines that transform their operands (unfused Winograd) write a multiple of them to
//! memory and read it again: in the four searches in which cuDNN listed such an engine first, for layers with few
//! channels, another one won. And a layer that reads images computes so little per element that a change of layout
//! costs more than it gains: there an engine without one won (a ResNet's first layer, the filter gradient of a ViT's
//! patches).

use ghostgpu_oracle::{Node, Value, attribute, kind};

use crate::cudnn::data_type;

/// A workspace larger than this many times the operands makes an engine slow.
const MOST_TIMES_THE_OPERANDS: u64 = 4;

/// A layer with at most this many channels on one side computes little per element of the other side.
const FEW_CHANNELS: i64 = 4;

/// Whether a plan with this workspace is slower than others because of what it moves through memory.
pub fn moves_much(graph: &Node, workspace_bytes: i64) -> bool {
    let workspace_bytes = u64::try_from(workspace_bytes).unwrap_or(0);
    let operand_bytes = operand_bytes(graph);
    if reads_pictures(graph) {
        return workspace_bytes > operand_bytes / 2;
    }
    workspace_bytes > MOST_TIMES_THE_OPERANDS.saturating_mul(operand_bytes)
}

/// Whether a convolution has few channels on either side, stored as separate planes.
fn reads_pictures(graph: &Node) -> bool {
    let mut tensors = Vec::new();
    collect_tensors(graph, &mut tensors);
    // The filter comes first; its second dimension is small in grouped convolutions too.
    tensors.iter().skip(1).any(|tensor| {
        let channels = tensor.numbers(attribute::TENSOR_DIMENSIONS).get(1);
        let stride = tensor.numbers(attribute::TENSOR_STRIDES).get(1);
        channels.is_some_and(|&channels| channels <= FEW_CHANNELS)
            && stride.is_some_and(|&stride| stride != 1)
    })
}

fn collect_tensors<'a>(node: &'a Node, found: &mut Vec<&'a Node>) {
    if node.kind == kind::TENSOR {
        found.push(node);
        return;
    }
    for each in &node.attributes {
        if let Value::Nodes(nodes) = &each.value {
            for below in nodes {
                collect_tensors(below, found);
            }
        }
    }
}

fn operand_bytes(node: &Node) -> u64 {
    if node.kind == kind::TENSOR {
        let data_type = node.numbers(attribute::TENSOR_DATA_TYPE).first();
        let bytes = data_type.map_or(1, |&data_type| data_type::bytes(data_type as i32));
        let elements = node.numbers(attribute::TENSOR_DIMENSIONS).iter();
        return elements.fold(bytes, |product, &size| {
            product.saturating_mul(size.unsigned_abs())
        });
    }
    let below = node.attributes.iter().map(|one| match &one.value {
        Value::Nodes(nodes) => nodes.iter().map(operand_bytes).sum(),
        Value::Numbers(_) => 0,
    });
    below.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ghostgpu_oracle::{Attribute, value_type};

    fn numbers(name: i32, numbers: &[i64]) -> Attribute {
        Attribute {
            name,
            value_type: value_type::INT64,
            value: Value::Numbers(numbers.to_vec()),
        }
    }

    fn tensor(dimensions: [i64; 4]) -> Node {
        let [_, channels, rows, columns] = dimensions;
        let strides = [channels * rows * columns, rows * columns, columns, 1];
        Node {
            kind: kind::TENSOR,
            attributes: vec![
                numbers(attribute::TENSOR_DATA_TYPE, &[i64::from(data_type::HALF)]),
                numbers(attribute::TENSOR_DIMENSIONS, &dimensions),
                numbers(attribute::TENSOR_STRIDES, &strides),
            ],
        }
    }

    fn convolution(filter: [i64; 4], input: [i64; 4], output: [i64; 4]) -> Node {
        Node {
            kind: kind::CONVOLUTION_FORWARD,
            attributes: vec![Attribute {
                name: 704,
                value_type: value_type::DESCRIPTOR,
                value: Value::Nodes(vec![tensor(filter), tensor(input), tensor(output)]),
            }],
        }
    }

    #[test]
    fn a_transform_of_many_times_the_operands_is_slow_and_a_copy_of_them_is_not() {
        // A layer of a small ResNet: 128 pictures of 32 by 32, 16 channels, half precision.
        let picture = [128, 16, 32, 32];
        let operation = convolution([16, 16, 3, 3], picture, picture);
        assert_eq!(operand_bytes(&operation), 2 * 4_194_304 + 4_608);
        // What cuDNN 9.19 answers for engines 3, 6 and 45 on an H200; the last one won there.
        assert!(moves_much(&operation, 77_865_984));
        assert!(moves_much(&operation, 37_785_600));
        assert!(!moves_much(&operation, 8_393_232));
    }
    #[test]
    fn a_first_layer_is_slowed_down_by_a_change_of_layout() {
        // 128 pictures of 32 by 32 in three colours, 64 filters of 7 by 7.
        let first = convolution([64, 3, 7, 7], [128, 3, 32, 32], [128, 64, 16, 16]);
        assert!(moves_much(&first, 5_000_000));
        assert!(!moves_much(&first, 0));
        // Each filter of a depthwise layer reads one channel, but the layer has many.
        let depthwise = convolution([64, 1, 3, 3], [128, 64, 16, 16], [128, 64, 16, 16]);
        assert!(!moves_much(&depthwise, 5_000_000));
    }
}

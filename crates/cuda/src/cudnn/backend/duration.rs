//! How long a plan takes, for programs that time cuDNN's engines and keep the fastest.
//!
//! PyTorch does so under `cudnn.benchmark`, and the workspace of the plan that wins is what the layer takes from
//! then on. Which one wins on a real card is not known here. cuDNN lists its engines by how fast it believes
//! them to be, and in 60 % of 490 searches on an H200 the workspace was that of the first one; so all take
//! the same time, and the first one wins. There is one exception: engines that transform their operands
//! (Winograd's algorithm, not fused) write a multiple of them to memory and read it again. In the four searches in
//! which cuDNN listed such a one first, for layers with few channels, another one won.

use ghostgpu_oracle::{Node, Value, attribute, kind};

use crate::cudnn::data_type;

/// Workspace that is written and read many times over the operands' own size.
const MOST_TIMES_THE_OPERANDS: u64 = 4;

/// Whether a plan with this workspace is slower than others for what it moves through memory.
pub fn moves_much(graph: &Node, workspace_bytes: i64) -> bool {
    let workspace_bytes = u64::try_from(workspace_bytes).unwrap_or(0);
    workspace_bytes > MOST_TIMES_THE_OPERANDS.saturating_mul(operand_bytes(graph))
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
        Node {
            kind: kind::TENSOR,
            attributes: vec![
                numbers(attribute::TENSOR_DATA_TYPE, &[i64::from(data_type::HALF)]),
                numbers(attribute::TENSOR_DIMENSIONS, &dimensions),
            ],
        }
    }

    #[test]
    fn a_transform_of_many_times_the_operands_is_slow_and_a_copy_of_them_is_not() {
        // A layer of a small ResNet: 128 pictures of 32 by 32, 16 channels, half precision.
        let picture = [128, 16, 32, 32];
        let operation = Node {
            kind: kind::CONVOLUTION_FORWARD,
            attributes: vec![Attribute {
                name: 704,
                value_type: value_type::DESCRIPTOR,
                value: Value::Nodes(vec![
                    tensor(picture),
                    tensor([16, 16, 3, 3]),
                    tensor(picture),
                ]),
            }],
        };
        assert_eq!(operand_bytes(&operation), 2 * 4_194_304 + 4_608);
        // What cuDNN 9.19 answers for engines 3, 6 and 45 on an H200; the last one won there.
        assert!(moves_much(&operation, 77_865_984));
        assert!(moves_much(&operation, 37_785_600));
        assert!(!moves_much(&operation, 8_393_232));
    }
}

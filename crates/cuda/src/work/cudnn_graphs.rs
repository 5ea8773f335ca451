//! What a cuDNN operation graph does: a convolution, attention, or something else.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use ghostgpu_cost::{Operation, Pass, Precision};
use ghostgpu_oracle::{Node, Value, attribute, kind};

use super::recorder;
use crate::cudnn::data_type;

/// A graph is executed.
pub fn execute(graph: &Arc<Node>) {
    if recorder::is_on() {
        recorder::record(known_operation(graph));
    }
}

/// Cached, because plans are made once and executed often. Graphs in the cache are kept alive, so that no
/// other graph gets their address.
fn known_operation(graph: &Arc<Node>) -> Operation {
    type Known = HashMap<usize, (Arc<Node>, Operation)>;
    static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let address = Arc::as_ptr(graph) as usize;
    let (_, operation) = known
        .entry(address)
        .or_insert_with(|| (Arc::clone(graph), operation(graph)));
    operation.clone()
}

/// `cudnnBackendDescriptorType_t` and attributes that only matter here.
const POINTWISE: i32 = 0;
const POINTWISE_MODE: i32 = 0;
/// `CUDNN_POINTWISE_GEN_INDEX`, which masks that depend on positions (causal ones) are made with.
const MODE_INDEX: i64 = 501;
const MATMUL: i32 = 19;
const MATMUL_A: i32 = 1520;
const MATMUL_C: i32 = 1522;
const TENSOR_IS_VIRTUAL: i32 = 907;

fn operation(graph: &Node) -> Operation {
    let operations = nodes(graph, attribute::GRAPH_OPERATIONS);
    let convolution = operations.iter().find_map(convolution);
    convolution
        .or_else(|| attention(operations))
        .unwrap_or_else(|| Operation::Kernel {
            name: "cudnn".to_owned(),
            bytes: tensor_bytes(graph),
        })
}

fn convolution(node: &Node) -> Option<Operation> {
    let (pass, first) = match node.kind {
        kind::CONVOLUTION_FORWARD => (Pass::Forward, 703),
        kind::CONVOLUTION_BACKWARD_DATA => (Pass::Backward, 709),
        kind::CONVOLUTION_BACKWARD_FILTER => (Pass::BackwardFilter, 715),
        _ => return None,
    };
    let tensor = |place: i32| nodes(node, first + place).first();
    // Filter, input and result, or their gradients. In both forms of backward passes the gradient of the
    // result is last or second.
    let (w, x, y) = (tensor(0)?, tensor(1)?, tensor(2)?);
    let size = |value: &i64| value.unsigned_abs();
    let (filters, rest) = w.numbers(attribute::TENSOR_DIMENSIONS).split_first()?;
    let channels = x.numbers(attribute::TENSOR_DIMENSIONS).get(1).map(size)?;
    let [samples, _, space @ ..] = y.numbers(attribute::TENSOR_DIMENSIONS) else {
        return None;
    };
    let strides = y.numbers(attribute::TENSOR_STRIDES);
    let per_group = rest.first().map_or(1, size).max(1);
    Some(Operation::Convolution {
        pass,
        pixels: size(samples) * space.iter().map(size).product::<u64>(),
        filters: size(filters),
        window: rest.iter().map(size).product(),
        groups: (channels / per_group).max(1),
        precision: precision(x),
        is_channels_last: strides.get(1) == Some(&1),
        bytes: [w, x, y].into_iter().map(bytes).sum(),
    })
}

/// Two products or more in one graph are attention; forward passes have two, backward passes five.
fn attention(operations: &[Node]) -> Option<Operation> {
    let products: Vec<&Node> = operations
        .iter()
        .filter(|node| node.kind == MATMUL)
        .collect();
    if products.len() < 2 {
        return None;
    }
    let dimensions = |name: i32| {
        let tensor = nodes(products[0], name).first()?;
        Some(tensor.numbers(attribute::TENSOR_DIMENSIONS))
    };
    let [.., _, width] = dimensions(MATMUL_A)? else {
        return None;
    };
    let [outer @ .., queries, keys] = dimensions(MATMUL_C)? else {
        return None;
    };
    let size = |value: &i64| value.unsigned_abs();
    Some(Operation::Attention {
        pass: if products.len() > 2 {
            Pass::Backward
        } else {
            Pass::Forward
        },
        heads: outer.iter().map(size).product(),
        queries: size(queries),
        keys: size(keys),
        width: size(width),
        is_causal: operations.iter().any(makes_index),
        precision: precision(nodes(products[0], MATMUL_A).first()?),
    })
}

fn makes_index(operation: &Node) -> bool {
    operation.attributes.iter().any(|one| match &one.value {
        Value::Nodes(below) => below.iter().any(|node| {
            node.kind == POINTWISE && node.numbers(POINTWISE_MODE).first() == Some(&MODE_INDEX)
        }),
        Value::Numbers(_) => false,
    })
}

fn precision(tensor: &Node) -> Precision {
    let number = tensor.numbers(attribute::TENSOR_DATA_TYPE).first();
    match number.map(|&number| number as i32) {
        Some(data_type::DOUBLE) => Precision::Double,
        Some(data_type::HALF) => Precision::Half,
        Some(data_type::BFLOAT16) => Precision::Bfloat16,
        // PyTorch lets convolutions use TF32 unless it is told not to.
        _ => Precision::Tf32,
    }
}

fn nodes(node: &Node, name: i32) -> &[Node] {
    let found = node.attributes.iter().find(|one| one.name == name);
    match found.map(|one| &one.value) {
        Some(Value::Nodes(nodes)) => nodes,
        _ => &[],
    }
}

fn bytes(tensor: &Node) -> u64 {
    let data_type = tensor.numbers(attribute::TENSOR_DATA_TYPE).first();
    let each = data_type.map_or(1, |&data_type| data_type::bytes(data_type as i32));
    tensor
        .numbers(attribute::TENSOR_DIMENSIONS)
        .iter()
        .fold(each, |product, &size| {
            product.saturating_mul(size.unsigned_abs())
        })
}

/// The bytes of all tensors in memory, each counted once.
fn tensor_bytes(graph: &Node) -> u64 {
    fn collect(node: &Node, found: &mut BTreeMap<i64, u64>) {
        if node.kind == kind::TENSOR {
            let id = node.numbers(attribute::TENSOR_UNIQUE_ID).first();
            if node
                .numbers(TENSOR_IS_VIRTUAL)
                .first()
                .is_none_or(|&is| is == 0)
            {
                found.insert(id.copied().unwrap_or(0), bytes(node));
            }
            return;
        }
        for one in &node.attributes {
            if let Value::Nodes(below) = &one.value {
                below.iter().for_each(|node| collect(node, found));
            }
        }
    }
    let mut found = BTreeMap::new();
    collect(graph, &mut found);
    found.values().sum()
}

//! The workspace of scaled dot-product attention, computed from its shapes.
//!
//! cuDNN spends seconds compiling an attention kernel before it says what workspace it takes, so it is
//! only asked whether it supports a graph, and the size is computed here. The formulas reproduce all of
//! the 300 sizes recorded on an H200 with cuDNN 9.19 (`ground_truth/cudnn`): forward and backward, causal
//! or not, with and without dropout, bias, and grouped heads, head sizes 8 to 256, one query to 4,096.

use ghostgpu_oracle::{Node, attribute};

/// `cudnnBackendDescriptorType_t` of the operations attention is made of.
mod operation {
    pub const MATRIX_PRODUCT: i32 = 19;
    pub const ATTENTION_FORWARD: i32 = 41;
    pub const ATTENTION_BACKWARD: i32 = 43;
}

/// Bytes of one value of the inputs: attention runs in half precision only.
const VALUE_BYTES: i64 = 2;
const ACCUMULATOR_BYTES: i64 = 4;
const HEADER_BYTES: i64 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    is_backward: bool,
    batch: i64,
    heads: i64,
    key_heads: i64,
    queries: i64,
    keys: i64,
    query_size: i64,
    value_size: i64,
}

/// The workspace of an attention graph on a card with this many multiprocessors; `None` for other
/// graphs.
pub fn workspace(graph: &Node, multiprocessors: u32) -> Option<i64> {
    let shape = Shape::read(graph)?;
    Some(if shape.is_backward {
        backward_bytes(&shape)
    } else {
        forward_bytes(&shape, i64::from(multiprocessors))
    })
}

impl Shape {
    fn read(graph: &Node) -> Option<Self> {
        let operations = graph.nodes(attribute::GRAPH_OPERATIONS);
        let unified = operations.iter().find_map(|one| match one.kind {
            operation::ATTENTION_FORWARD => Some((one, false, 2800)),
            operation::ATTENTION_BACKWARD => Some((one, true, 2851)),
            _ => None,
        });
        if let Some((one, is_backward, first)) = unified {
            let dimensions = |offset: i32| dimensions(one.nodes(first + offset).first()?);
            return Self::new(is_backward, dimensions(0)?, dimensions(1)?, dimensions(2)?);
        }
        Self::read_products(operations)
    }

    /// Attention spelled out: two matrix products forward, five backward. The first one multiplies the
    /// queries with the transposed keys.
    fn read_products(operations: &[Node]) -> Option<Self> {
        let products: Vec<&Node> = operations
            .iter()
            .filter(|one| one.kind == operation::MATRIX_PRODUCT)
            .collect();
        let is_backward = match products.len() {
            2 => false,
            5 => true,
            _ => return None,
        };
        let first = products.first()?;
        let [batch, heads, queries, query_size] = dimensions(first.nodes(1520).first()?)?;
        let [_, key_heads, _, keys] = dimensions(first.nodes(1521).first()?)?;
        let value_size = if is_backward {
            // The gradient of the output, multiplied with the transposed values.
            let second = products.iter().skip(1).find_map(|product| {
                let factor = dimensions(product.nodes(1521).first()?)?;
                (factor[3] == keys).then_some(factor[2])
            });
            second.unwrap_or(query_size)
        } else {
            dimensions(products.get(1)?.nodes(1521).first()?)?[3]
        };
        Some(Self {
            is_backward,
            batch,
            heads,
            key_heads,
            queries,
            keys,
            query_size,
            value_size,
        })
    }

    fn new(is_backward: bool, q: [i64; 4], k: [i64; 4], v: [i64; 4]) -> Option<Self> {
        let [batch, heads, queries, query_size] = q;
        let [_, key_heads, keys, _] = k;
        Some(Self {
            is_backward,
            batch,
            heads,
            key_heads,
            queries,
            keys,
            query_size,
            value_size: v[3],
        })
    }
}

fn dimensions(tensor: &Node) -> Option<[i64; 4]> {
    tensor.numbers(attribute::TENSOR_DIMENSIONS).try_into().ok()
}

fn forward_bytes(shape: &Shape, multiprocessors: i64) -> i64 {
    if shape.queries > 1 {
        return HEADER_BYTES;
    }
    // A single query: the keys are split, and each part leaves a result, a maximum and a sum.
    let parts = key_parts(shape, multiprocessors);
    if parts < 2 {
        return 0;
    }
    let rows = shape.batch * shape.heads * parts;
    let aligned = |bytes: i64| (bytes + 127) / 128 * 128;
    let results = rows * shape.value_size * ACCUMULATOR_BYTES;
    results + 2 * aligned(rows * ACCUMULATOR_BYTES) + 128
}

/// A power of two, at least 128 keys a part, and at most two parts per multiprocessor.
fn key_parts(shape: &Shape, multiprocessors: i64) -> i64 {
    const LONGEST_WITHOUT_PARTS: i64 = 512;
    if shape.keys <= LONGEST_WITHOUT_PARTS {
        return 1;
    }
    let mut parts = 1;
    while parts * 2 * 128 <= shape.keys
        && shape.batch * shape.key_heads * parts * 2 <= 2 * multiprocessors
    {
        parts *= 2;
    }
    parts
}

/// The workspace of the plan itself; the front end adds the queries' gradient in single precision and a
/// sum per query. If several heads share their keys, each head's own gradients of keys and values are
/// kept until they are summed.
fn backward_bytes(shape: &Shape) -> i64 {
    if shape.key_heads == shape.heads {
        return HEADER_BYTES;
    }
    let key_rows = shape.batch * shape.heads * shape.keys;
    HEADER_BYTES + key_rows * (shape.query_size + shape.value_size) * VALUE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_query_shares_out_long_keys() {
        let check = |batch, heads, key_heads, keys, size, expected| {
            let shape = Shape {
                is_backward: false,
                batch,
                heads,
                key_heads,
                queries: 1,
                keys,
                query_size: size,
                value_size: size,
            };
            assert_eq!(
                forward_bytes(&shape, 132),
                expected,
                "{keys} keys, {heads} heads"
            );
        };
        check(4, 8, 8, 512, 64, 0);
        check(4, 8, 8, 1000, 64, 33_920);
        check(4, 8, 8, 4096, 64, 67_712);
        check(1, 32, 8, 4096, 128, 532_608);
        check(1, 12, 12, 4096, 64, 50_816);
    }

    #[test]
    fn several_queries_take_a_header_only() {
        let forward = Shape {
            is_backward: false,
            batch: 4,
            heads: 8,
            key_heads: 8,
            queries: 512,
            keys: 512,
            query_size: 64,
            value_size: 64,
        };
        assert_eq!(forward_bytes(&forward, 132), 256);
    }

    #[test]
    fn heads_that_share_keys_keep_their_own_gradients() {
        let shared = Shape {
            is_backward: true,
            batch: 4,
            heads: 8,
            key_heads: 2,
            queries: 1024,
            keys: 1024,
            query_size: 128,
            value_size: 128,
        };
        // 33,685,760 on an H200, of which the front end takes 16,908,288.
        assert_eq!(backward_bytes(&shared), 33_685_760 - 16_908_288);
        let single = Shape {
            key_heads: 8,
            ..shared
        };
        assert_eq!(backward_bytes(&single), 256);
    }
}

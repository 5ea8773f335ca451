//! Into how many parts the sum of a left-over tile is split.
//!
//! cuDNN weighs shorter sums against the cost of adding the parts up; the cost depends on data
//! type, tile and depth. We let it decide: it is asked about a problem with one left-over tile of the
//! same kind on as many multiprocessors as may share one. That reaches to 18 of them; beyond, its
//! known rule is applied.

use ghostgpu_oracle::{Attribute, Node, Value, attribute, kind, value_type};

use super::problem::{Configuration, Direction, Problem};
use super::{AskWorkspace, DEVICELESS_MULTIPROCESSORS, SLACK_BYTES, SPLIT_HEADER_BYTES};
use crate::cudnn::data_type;

/// A tile is never split into more parts.
const MOST_SPLITS: u64 = 128;
/// A part must have more than this many terms of the sum when there are many parts and no full rounds
/// before them.
const LEAST_TERMS: u64 = 1024;
/// A part of a tile that comes after full rounds is never shorter.
const LEAST_TERMS_OF_A_PART: u64 = 128;

/// How many ways each left-over tile is split on `blocks` resident blocks.
pub fn splits(
    problem: &Problem,
    configuration: &Configuration,
    tiles: u64,
    blocks: u64,
    ask: &AskWorkspace<'_>,
) -> u64 {
    let left_over = tiles % blocks;
    if !configuration.may_split || left_over == 0 {
        return 1;
    }
    let most = blocks / left_over;
    if most < 2 {
        return 1;
    }
    let comes_after_full_rounds = tiles > blocks;
    let iterations = problem.iterations(configuration);
    if most > DEVICELESS_MULTIPROCESSORS && !comes_after_full_rounds {
        return splits_by_rule(problem, configuration, iterations, most.min(MOST_SPLITS));
    }
    let asked = most.min(DEVICELESS_MULTIPROCESSORS);
    let model = ModelProblem {
        direction: problem.direction,
        data_type: problem.data_type,
        // The same number of full rounds: the more there are, the less a split saves.
        tiles: tiles / blocks * asked + 1,
        terms: iterations * problem.depth(configuration),
    };
    let knobs = configuration.without_clusters();
    let graph = model.graph(configuration);
    let Some(bytes) = ask(&graph, configuration.engine, &knobs, Some(asked as i32)) else {
        return splits_by_rule(problem, configuration, iterations, most.min(MOST_SPLITS));
    };
    let sums = (bytes - SLACK_BYTES - SPLIT_HEADER_BYTES).max(0) as u64;
    let found = (sums / configuration.tile_bytes()).max(1);
    // It would have split further: then parts of equal length decide.
    if most > asked && found + 2 >= asked {
        let shortest = LEAST_TERMS_OF_A_PART.div_ceil(problem.depth(configuration));
        let most = most.min(MOST_SPLITS).min(iterations / shortest).max(1);
        return parts_of_equal_length(iterations, most);
    }
    found
}

/// How many parts there are if at most `most` are allowed and all but the last are equally long.
fn parts_of_equal_length(iterations: u64, most: u64) -> u64 {
    iterations.div_ceil(iterations.div_ceil(most))
}

/// cuDNN's rule for tiles that do not come after full rounds.
fn splits_by_rule(
    problem: &Problem,
    configuration: &Configuration,
    iterations: u64,
    most: u64,
) -> u64 {
    let depth = problem.depth(configuration);
    let enough = iterations / (LEAST_TERMS / depth + 1);
    if enough > 8 {
        return most.min(enough);
    }
    let addition = addition_cost(problem, configuration);
    let cost = |splits: u64| {
        let rounds = u64::from(splits.next_power_of_two().trailing_zeros());
        iterations.div_ceil(splits) + addition * rounds
    };
    (1..=most).min_by_key(|&splits| cost(splits)).unwrap_or(1)
}

/// What one round of additions costs, in iterations: larger tiles spread it over more work.
fn addition_cost(problem: &Problem, configuration: &Configuration) -> u64 {
    let area = configuration.tile_rows * configuration.tile_columns / 4096;
    // In 1/8 of an iteration of depth 64 in half precision, as read from where the choice changes.
    let eighths = match area {
        0 | 1 => 99,
        2 => 68,
        3 => 58,
        4 => 52,
        _ => 44,
    };
    let depth = problem.depth(configuration);
    match problem.data_type {
        // cuDNN assumes that bfloat16 iterations are eight times as fast as half-precision ones.
        data_type::BFLOAT16 => eighths * 64 / depth,
        _ => eighths * 64 / depth / 8,
    }
}

/// A 1×1 convolution with the channels last that has given numbers of tiles and terms per sum.
struct ModelProblem {
    direction: Direction,
    data_type: i32,
    tiles: u64,
    terms: u64,
}

impl ModelProblem {
    fn graph(&self, configuration: &Configuration) -> Node {
        const PIXELS_PER_IMAGE: u64 = 32;
        let (rows, columns) = (configuration.tile_rows, configuration.tile_columns);
        let (images, width, channels, filters) = match self.direction {
            Direction::Forward => (self.tiles, rows, self.terms, columns),
            Direction::Data => (self.tiles, rows, columns, self.terms),
            Direction::Filter => (
                self.terms / PIXELS_PER_IMAGE,
                PIXELS_PER_IMAGE,
                columns * self.tiles,
                rows,
            ),
        };
        let x = self.tensor(1, [images, channels, 1, width]);
        let w = self.tensor(2, [filters, channels, 1, 1]);
        let y = self.tensor(3, [images, filters, 1, width]);
        let (kind, base) = match self.direction {
            Direction::Forward => (kind::CONVOLUTION_FORWARD, 700),
            Direction::Data => (kind::CONVOLUTION_BACKWARD_DATA, 706),
            Direction::Filter => (kind::CONVOLUTION_BACKWARD_FILTER, 712),
        };
        let float = |value: f32| vec![i64::from(value.to_bits())];
        let operation = Node {
            kind,
            attributes: vec![
                numbers(base, FLOAT_TYPE, float(1.0)),
                numbers(base + 1, FLOAT_TYPE, float(0.0)),
                node(base + 2, convolution()),
                node(base + 3, w),
                node(base + 4, x),
                node(base + 5, y),
            ],
        };
        Node {
            kind: kind::OPERATION_GRAPH,
            attributes: vec![node(attribute::GRAPH_OPERATIONS, operation)],
        }
    }

    fn tensor(&self, id: i64, [images, channels, height, width]: [u64; 4]) -> Node {
        let strides = [channels * height * width, 1, channels * width, channels];
        let widen = |values: [u64; 4]| values.iter().map(|&value| value as i64).collect();
        Node {
            kind: kind::TENSOR,
            attributes: vec![
                numbers(900, value_type::INT64, vec![32]),
                numbers(
                    attribute::TENSOR_DATA_TYPE,
                    1,
                    vec![i64::from(self.data_type)],
                ),
                numbers(
                    attribute::TENSOR_DIMENSIONS,
                    value_type::INT64,
                    widen([images, channels, height, width]),
                ),
                numbers(attribute::TENSOR_STRIDES, value_type::INT64, widen(strides)),
                numbers(attribute::TENSOR_UNIQUE_ID, value_type::INT64, vec![id]),
            ],
        }
    }
}

/// `CUDNN_TYPE_FLOAT`
const FLOAT_TYPE: i32 = 4;

fn convolution() -> Node {
    Node {
        kind: kind::CONVOLUTION,
        attributes: vec![
            numbers(100, 1, vec![i64::from(data_type::FLOAT)]),
            // Cross-correlation.
            numbers(101, 7, vec![1]),
            numbers(102, value_type::INT64, vec![1, 1]),
            numbers(103, value_type::INT64, vec![1, 1]),
            numbers(104, value_type::INT64, vec![0, 0]),
            numbers(105, value_type::INT64, vec![0, 0]),
            numbers(106, value_type::INT64, vec![2]),
        ],
    }
}

fn numbers(name: i32, value_type: i32, values: Vec<i64>) -> Attribute {
    Attribute {
        name,
        value_type,
        value: Value::Numbers(values),
    }
}

fn node(name: i32, below: Node) -> Attribute {
    Attribute {
        name,
        value_type: value_type::DESCRIPTOR,
        value: Value::Nodes(vec![below]),
    }
}

//! Workspace and reserve of a recurrent network, as cuDNN 9.19 sizes them on an H200.
//!
//! `cudnnGetRNNTempSpaceSizes` wants a handle, so it cannot be asked without a card. Its answers were
//! recorded for thousands of networks (`ground_truth/cudnn`), and they are sums of a few buffers, each
//! rounded up to 32 bytes: copies of the weights, of the padded input and output, of states and gates.
//! The workspace of a training step is that of the forward or of the backward pass, whichever is larger.

use super::network::{Cell, Network, algorithm};
use crate::cudnn::data_type;

/// What the size of a pass depends on beside the network.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    pub size: u64,
    pub longest: u64,
    /// Time steps over the whole batch: with padding, or without if the network takes packed input.
    pub steps: u64,
}

/// For cuBLAS, once per layer and direction.
const MATRIX_PRODUCT_BYTES: u64 = 8 << 20;
const HEADER_BYTES: u64 = 256;
/// The forward pass of one direction keeps the gates of so many time steps at most.
const GATE_WINDOW_STEPS: u64 = 256;

fn aligned(bytes: u64) -> u64 {
    bytes.next_multiple_of(32)
}

/// The sizes that all buffers are made of, in bytes.
struct Units {
    /// One value per hidden unit and direction, for every time step of the batch.
    per_step: u64,
    /// One value per hidden unit, direction and layer, for every sequence of the batch.
    per_sequence: u64,
    /// One value per hidden unit and direction, for every sequence of the batch.
    per_sequence_of_layer: u64,
    /// The input.
    input: u64,
    /// Input or hidden state of one direction, whichever is wider, for every time step.
    widest: u64,
}

impl Units {
    fn new(network: &Network, batch: &Batch) -> Self {
        let element = network.element_bytes;
        let across = network.hidden * network.directions * element;
        Self {
            per_step: batch.steps * across,
            per_sequence: batch.size * across * network.layers,
            per_sequence_of_layer: batch.size * across,
            input: batch.steps * network.input * element,
            widest: batch.steps * network.input.max(network.hidden) * element,
        }
    }
}

/// Workspace of a forward pass, or of the larger of both passes when training.
pub fn work_bytes(network: &Network, batch: &Batch, is_training: bool) -> u64 {
    let forward = forward_bytes(network, batch);
    if is_training {
        forward.max(backward_bytes(network, batch))
    } else {
        forward
    }
}

/// What the network keeps from the forward for the backward pass.
pub fn reserve_bytes(network: &Network, batch: &Batch) -> u64 {
    let units = Units::new(network, batch);
    let layers = network.layers;
    let per_layer: &[u64] = match network.cell {
        Cell::Plain => &[1],
        Cell::Lstm => &[4, 1],
        Cell::Gru => &[6],
    };
    let kept: u64 = per_layer
        .iter()
        .map(|count| aligned(count * layers * units.per_step))
        .sum();
    let between_layers = aligned((layers - 1) * units.per_step);
    let projected = if network.has_projection() {
        let narrow = batch.steps * network.projection * network.directions * network.element_bytes;
        aligned(layers * units.per_step) + aligned(layers * narrow)
    } else {
        0
    };
    HEADER_BYTES + kept + between_layers + projected + mask_bytes(network, batch)
}

/// Dropout between layers: one bit per value, padding included.
fn mask_bytes(network: &Network, batch: &Batch) -> u64 {
    if !network.has_dropout {
        return 0;
    }
    let values = batch.longest * batch.size * network.hidden * network.directions;
    (network.layers - 1) * network.directions * aligned(values.div_ceil(8))
}

fn is_small(network: &Network) -> bool {
    // In half precision cuDNN runs its usual algorithm under this name.
    network.algorithm == algorithm::PERSIST_STATIC_SMALL_H
        && network.data_type != data_type::HALF
}

/// Weights in cuDNN's own order, and room for the matrix products.
fn common_bytes(network: &Network) -> u64 {
    HEADER_BYTES
        + aligned(network.matrix_elements() * network.element_bytes)
        + network.layers * network.directions * MATRIX_PRODUCT_BYTES
}

fn forward_bytes(network: &Network, batch: &Batch) -> u64 {
    let units = Units::new(network, batch);
    let gates = network.cell.gates();
    let mut bytes = common_bytes(network);
    if network.is_padded {
        bytes += aligned(units.input) + aligned(units.per_step) + aligned(8 * batch.size);
    }
    if is_small(network) {
        bytes += small_forward_states(network, &units);
    } else {
        let states: &[u64] = match (network.cell, network.is_padded) {
            (Cell::Lstm, true) => &[4, 2, 1, 1, 1, 1],
            (Cell::Lstm, false) => &[4, 2],
            (Cell::Gru, true) => &[3, 1, 1],
            (Cell::Gru, false) => &[3],
            (Cell::Plain, true) => &[1, 1, 1],
            (Cell::Plain, false) => &[1],
        };
        bytes += sum_aligned(states, units.per_sequence);
        let window = GATE_WINDOW_STEPS * units.per_sequence_of_layer;
        bytes += if network.directions == 1 {
            aligned(gates * units.per_step.min(window))
        } else {
            aligned(gates * units.per_step) + aligned(2 * units.per_sequence)
        };
    }
    if network.directions == 2 {
        bytes += aligned(2 * units.per_step);
    } else if network.has_dropout {
        bytes += aligned(units.per_step);
    }
    bytes
}

fn small_forward_states(network: &Network, units: &Units) -> u64 {
    let gates = network.cell.gates();
    let states = match network.cell {
        Cell::Lstm => 8,
        Cell::Gru | Cell::Plain => 4,
    };
    if network.directions == 1 {
        aligned(5 * gates * units.per_step) + aligned(states * units.per_sequence)
    } else {
        aligned(3 * gates * units.per_step) + aligned((states + 1) * units.per_sequence)
    }
}

fn backward_bytes(network: &Network, batch: &Batch) -> u64 {
    let units = Units::new(network, batch);
    let mut bytes = common_bytes(network);
    let mut states: Vec<u64> = match network.cell {
        Cell::Lstm => vec![2, 1],
        Cell::Gru | Cell::Plain => vec![1],
    };
    if network.is_padded {
        bytes += aligned(8 * batch.size) + 2 * aligned(units.input) + 2 * aligned(units.per_step);
        let padded_states = if network.cell == Cell::Lstm { 8 } else { 4 };
        states.extend(std::iter::repeat_n(1, padded_states));
    }
    if network.directions == 2 {
        states.push(2);
        bytes += aligned(4 * units.widest);
        bytes += aligned(units.per_step) * network.layers.min(2);
    } else {
        bytes += aligned(units.widest);
        bytes += match chunk_steps(network, batch) {
            Some(steps) => aligned(units.per_step.min(steps * units.per_sequence_of_layer)),
            None => aligned(units.per_step),
        };
    }
    bytes += sum_aligned(&states, units.per_sequence);
    if is_small(network) {
        bytes += small_backward_extra(network, &units);
    }
    bytes
}

fn small_backward_extra(network: &Network, units: &Units) -> u64 {
    let per_step = match network.cell {
        Cell::Lstm => 12,
        Cell::Gru => 14,
        Cell::Plain => 9,
    };
    let mut bytes = per_step * (units.per_step / network.directions);
    if network.directions == 1 {
        bytes += units.per_sequence;
        if network.layers > 1 {
            bytes += units.per_step;
        }
    }
    aligned(bytes)
}

/// How many time steps the backward pass through several layers works on at once; all if `None`.
fn chunk_steps(network: &Network, batch: &Batch) -> Option<u64> {
    if network.layers == 1 || is_small(network) {
        return None;
    }
    let steps = match (network.cell, network.layers, batch.size) {
        (Cell::Plain, 2, ..=1) => 96,
        (_, 2, ..=8) => 48,
        (_, 2, ..=16) => 24,
        (Cell::Plain, 2, ..=96) => 16,
        (Cell::Plain, 2, _) => 12,
        (_, 2, _) => 24,
        (Cell::Plain, 3, 100..) => 14,
        (_, 3, _) => 32,
        (Cell::Plain, 4, ..=96) => 40,
        (_, _, _) => 16,
    };
    Some(steps)
}

fn sum_aligned(counts: &[u64], unit: u64) -> u64 {
    counts.iter().map(|count| aligned(count * unit)).sum()
}

/// What is not measured about a network's sizes, said aloud.
pub fn doubt(network: &Network) -> Option<&'static str> {
    if network.has_projection() {
        return Some("the workspace of an LSTM with projections is estimated, not measured");
    }
    if network.algorithm == algorithm::PERSIST_STATIC {
        return Some("the workspace of a persistent RNN kernel is estimated, not measured");
    }
    None
}

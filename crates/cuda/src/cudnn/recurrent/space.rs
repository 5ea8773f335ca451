//! Workspace and reserve of a recurrent network, as cuDNN 9.19 sizes them on an H200.
//!
//! `cudnnGetRNNTempSpaceSizes` requires a handle, so it cannot be asked without a card. Its answers were
//! recorded for 18,700 networks (`ground_truth/cudnn`). They are sums of a few buffers, each rounded up
//! to 32 bytes: copies of the weights, of the padded input and output, of states and gates. All reserves
//! and 99.8 % of the workspaces are reproduced; [`doubt`] knows the rest.
//! The workspace of a training step is that of the forward or of the backward pass, whichever is larger.

use super::network::{Cell, Network, algorithm};
use crate::cudnn::data_type;

/// What the size of a pass depends on besides the network.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    pub size: u64,
    pub longest: u64,
    /// Time steps over the whole batch: with padding, or without if the network takes packed input.
    pub steps: u64,
}

/// Workspace for cuBLAS, once per layer and direction.
const MATRIX_PRODUCT_BYTES: u64 = 8 << 20;
const HEADER_BYTES: u64 = 256;
/// The forward pass of one direction keeps the gates of at most this many time steps.
const GATE_WINDOW_STEPS: u64 = 256;

fn aligned(bytes: u64) -> u64 {
    bytes.next_multiple_of(32)
}

/// The sizes that all buffers are made of, in bytes.
struct Units {
    /// One value per hidden unit and direction, for every time step of the batch.
    per_step: u64,
    /// The output: like `per_step`, but narrower when the hidden state is projected.
    output: u64,
    /// One value per hidden unit, direction and layer, for every sequence of the batch.
    per_sequence: u64,
    /// The same for the projected hidden state.
    projected_per_sequence: u64,
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
        let projected_across = network.projection * network.directions * element;
        Self {
            per_step: batch.steps * across,
            output: batch.steps * projected_across,
            projected_per_sequence: batch.size * projected_across * network.layers,
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
        aligned(layers * units.per_step) + aligned(layers * units.output)
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
    let values = batch.longest * batch.size * network.projection * network.directions;
    (network.layers - 1) * network.directions * aligned(values.div_ceil(8))
}

/// The whole sequence runs in one kernel, which keeps more at once.
fn is_persistent(network: &Network) -> bool {
    match network.algorithm {
        algorithm::PERSIST_STATIC => true,
        // In bfloat16 cuDNN runs its usual algorithm under this name.
        algorithm::PERSIST_STATIC_SMALL_H => network.data_type != data_type::BFLOAT16,
        _ => false,
    }
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
        bytes += aligned(units.input) + aligned(units.output) + aligned(8 * batch.size);
    }
    if network.has_projection() {
        bytes += aligned(units.per_step);
    }
    if is_persistent(network) {
        bytes += persistent_forward_states(network, &units);
    } else {
        let states: &[u64] = match (network.cell, network.is_padded) {
            (Cell::Lstm, true) => &[4, 2, 1, 1],
            (Cell::Lstm, false) => &[4, 2],
            (Cell::Gru, _) => &[3],
            (Cell::Plain, _) => &[1],
        };
        bytes += sum_aligned(states, units.per_sequence);
        if network.is_padded {
            // The hidden state before and after, in the order of the padded batch.
            bytes += 2 * aligned(units.projected_per_sequence);
        }
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

fn persistent_forward_states(network: &Network, units: &Units) -> u64 {
    let gates = network.cell.gates();
    let states: &[u64] = match network.cell {
        Cell::Lstm => &[2, 2, 1, 1, 1, 1],
        Cell::Gru | Cell::Plain => &[2, 1, 1],
    };
    let bytes = sum_aligned(states, units.per_sequence);
    if network.directions == 1 {
        bytes + aligned(5 * gates * units.per_step)
    } else {
        bytes + aligned(3 * gates * units.per_step) + aligned(units.per_sequence)
    }
}

fn backward_bytes(network: &Network, batch: &Batch) -> u64 {
    let units = Units::new(network, batch);
    let mut bytes = common_bytes(network);
    let is_persistent = is_persistent(network);
    // A persistent kernel of one direction keeps one more state.
    let one = if is_persistent && network.directions == 1 {
        2
    } else {
        1
    };
    let mut states: Vec<u64> = match network.cell {
        Cell::Lstm => vec![2, one],
        Cell::Gru | Cell::Plain => vec![one],
    };
    if network.is_padded {
        bytes += aligned(8 * batch.size) + 2 * aligned(units.input) + 2 * aligned(units.output);
        bytes += 4 * aligned(units.projected_per_sequence);
        if network.cell == Cell::Lstm {
            states.extend([1; 4]);
        }
    }
    if network.has_projection() {
        bytes += aligned(units.per_step);
    }
    if network.directions == 2 {
        states.push(2);
        bytes += aligned(4 * units.widest);
        bytes += aligned(units.per_step * network.layers.min(2));
    } else {
        bytes += aligned(units.widest);
        bytes += match chunk_steps(network, batch) {
            Some(steps) => aligned(units.per_step.min(steps * units.per_sequence_of_layer)),
            None => aligned(units.per_step),
        };
    }
    bytes += sum_aligned(&states, units.per_sequence);
    if is_persistent {
        bytes += persistent_backward_extra(network, &units);
    }
    bytes
}

fn persistent_backward_extra(network: &Network, units: &Units) -> u64 {
    let per_step = match network.cell {
        Cell::Lstm => 12,
        Cell::Gru => 14,
        Cell::Plain => 9,
    };
    let mut bytes = per_step * (units.per_step / network.directions);
    if network.directions == 1 && network.layers > 1 {
        bytes += units.per_step;
    }
    aligned(bytes)
}

/// How many time steps the backward pass through several layers works on at once; all if `None`.
///
/// Layers run side by side, each a few steps behind the one above it.
fn chunk_steps(network: &Network, batch: &Batch) -> Option<u64> {
    const LONG_SEQUENCE: u64 = 128;
    if network.layers == 1 || is_persistent(network) {
        return None;
    }
    let lead = match batch.size {
        ..=1 => 32,
        2..=8 => 16,
        9..=16 => 8,
        _ if batch.longest >= LONG_SEQUENCE => 8,
        17..=96 => 4,
        _ => 2,
    };
    Some(lead * network.layers + lead.max(8))
}

fn sum_aligned(counts: &[u64], unit: u64) -> u64 {
    counts.iter().map(|count| aligned(count * unit)).sum()
}

/// A sentence for networks whose sizes the formulas are known to miss.
pub fn doubt(network: &Network, batch: &Batch) -> Option<&'static str> {
    const SHORT_SEQUENCE: u64 = 32;
    let is_short = batch.longest < SHORT_SEQUENCE;
    (network.algorithm == algorithm::PERSIST_STATIC && is_short).then_some(
        "the backward workspace of a persistent RNN kernel over few time steps may be up to 3 MB larger",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const LSTM: Network = Network {
        algorithm: 0,
        cell: Cell::Lstm,
        directions: 1,
        element_bytes: 4,
        data_type: data_type::FLOAT,
        input: 256,
        hidden: 512,
        projection: 512,
        layers: 2,
        has_dropout: false,
        is_padded: true,
    };

    /// Compares with (inference workspace, training workspace, reserve) read on an H200.
    fn check(network: &Network, size: u64, longest: u64, expected: (u64, u64, u64)) {
        let batch = Batch {
            size,
            longest,
            steps: size * longest,
        };
        let found = (
            work_bytes(network, &batch, false),
            work_bytes(network, &batch, true),
            reserve_bytes(network, &batch),
        );
        assert_eq!(found, expected, "{network:?}, {batch:?}");
    }

    #[test]
    fn sizes_follow_the_sequence_length() {
        check(&LSTM, 16, 1, (32_293_248, 32_342_400, 360_704));
        check(&LSTM, 16, 32, (37_880_192, 37_880_192, 11_534_592));
        check(&LSTM, 16, 512, (90_833_280, 100_073_856, 184_549_632));
        check(&LSTM, 16, 1000, (114_819_456, 164_036_992, 360_448_256));
    }

    #[test]
    fn a_wide_input_makes_the_backward_pass_the_larger_one() {
        let wide = Network {
            input: 2048,
            ..LSTM
        };
        check(&wide, 16, 32, (56_230_272, 62_325_120, 11_534_592));
    }

    #[test]
    fn dropout_adds_a_mask_of_bits() {
        let network = Network {
            input: 512,
            hidden: 1024,
            projection: 1024,
            has_dropout: true,
            ..LSTM
        };
        let batch = Batch {
            size: 64,
            longest: 128,
            steps: 64 * 128,
        };
        assert_eq!(work_bytes(&network, &batch, true), 298_844_928);
        assert_eq!(reserve_bytes(&network, &batch), 370_147_584);
    }

    #[test]
    fn a_small_hidden_state_runs_in_one_kernel() {
        let small = Network {
            algorithm: algorithm::PERSIST_STATIC_SMALL_H,
            input: 64,
            hidden: 128,
            projection: 128,
            layers: 1,
            ..LSTM
        };
        check(&small, 100, 100, (119_272_480, 119_272_480, 25_600_256));
    }
}

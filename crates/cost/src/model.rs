//! How long a card takes for a step's work.
//!
//! Every operation takes the longer of two times: that of its arithmetic, at the share of the card's peak that kernels of
//! its kind reach, and that of the bytes it moves. The work between two waits takes the longer of the card's time for it
//! and the host's time to submit it. The shares of the peaks and the host's times ([`Efficiency`]) were fitted to
//! measurements on one card; `docs/step-time.md` gives the error for other measurements on it.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::{Direction, Efficiency, HostCalls, Operation, Pass, Precision, Rates, Work};

/// How long one step takes, and what it is spent on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepTime {
    pub seconds: f64,
    /// What the card is busy with. The sum is less than `seconds` if the card waits for the host.
    pub card: CardTime,
    /// The time the host needs to submit everything, mostly while the card is busy.
    pub host_seconds: f64,
}

/// Seconds of a card, by what it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CardTime {
    pub products: f64,
    pub convolutions: f64,
    pub attention: f64,
    /// Kernels that move memory rather than compute.
    pub other_kernels: f64,
    pub transfers: f64,
}

impl CardTime {
    pub fn total(&self) -> f64 {
        self.products + self.convolutions + self.attention + self.other_kernels + self.transfers
    }

    fn of(operation: &Operation, times: f64, rates: &Rates, efficiency: &Efficiency) -> Self {
        let mut time = Self::default();
        let (part, seconds) = match operation {
            Operation::Product { .. } => {
                (&mut time.products, product(operation, rates, efficiency))
            }
            Operation::Convolution { .. } => (
                &mut time.convolutions,
                convolution(operation, rates, efficiency),
            ),
            Operation::Attention { .. } => {
                (&mut time.attention, attention(operation, rates, efficiency))
            }
            Operation::Kernel { bytes, .. } => {
                (&mut time.other_kernels, moving(*bytes, rates, efficiency))
            }
            Operation::Copy { direction, .. } => match direction {
                Direction::OnCard => (
                    &mut time.other_kernels,
                    transfer(operation, rates, efficiency),
                ),
                _ => (&mut time.transfers, transfer(operation, rates, efficiency)),
            },
        };
        *part = times * (seconds + efficiency.kernel_seconds);
        time
    }
}

impl AddAssign for CardTime {
    fn add_assign(&mut self, other: Self) {
        self.products += other.products;
        self.convolutions += other.convolutions;
        self.attention += other.attention;
        self.other_kernels += other.other_kernels;
        self.transfers += other.transfers;
    }
}

/// How long a card with these rates takes for one step.
pub fn step_time(work: &Work, rates: &Rates) -> StepTime {
    step_time_at(work, rates, &Efficiency::FITTED)
}

/// The same with other shares of those rates.
pub fn step_time_at(work: &Work, rates: &Rates, efficiency: &Efficiency) -> StepTime {
    let mut step = StepTime::default();
    for stretch in &work.stretches {
        let times = f64::from(stretch.times);
        let mut card = CardTime::default();
        for each in &stretch.operations {
            card += CardTime::of(
                &each.operation,
                times * f64::from(each.times),
                rates,
                efficiency,
            );
        }
        let host = times * host_seconds(stretch.host, efficiency);
        step.seconds += card.total().max(host) + times * efficiency.wait_seconds;
        step.host_seconds += host;
        step.card += card;
    }
    step
}

fn host_seconds(calls: HostCalls, efficiency: &Efficiency) -> f64 {
    f64::from(calls.with_graph) * efficiency.host_with_graph_seconds
        + f64::from(calls.repeated) * efficiency.host_repeated_seconds
        + f64::from(calls.without_graph) * efficiency.host_without_graph_seconds
        + f64::from(calls.in_backward) * efficiency.host_in_backward_seconds
        + f64::from(calls.dispatched) * efficiency.host_dispatched_seconds
}

fn moving(bytes: u64, rates: &Rates, efficiency: &Efficiency) -> f64 {
    float(bytes) / (rates.memory * efficiency.memory)
}

fn product(operation: &Operation, rates: &Rates, efficiency: &Efficiency) -> f64 {
    let &Operation::Product {
        m,
        n,
        k,
        batch,
        precision,
        is_aligned,
    } = operation
    else {
        return 0.0;
    };
    let operations = 2.0 * float(m) * float(n) * float(k) * float(batch);
    let share = match precision {
        Precision::Single => efficiency.single_product,
        Precision::Double => efficiency.double_product,
        Precision::Tf32 | Precision::Bfloat16 | Precision::Half | Precision::Eight => {
            if is_aligned {
                efficiency.matrix_product
            } else {
                efficiency.unaligned_product
            }
        }
    };
    let rate = rates.operations(precision) * share * occupied(m, n, k, batch, rates);
    let numbers = batch.saturating_mul(m * k + k * n + m * n);
    (operations / rate).max(moving(numbers * precision.bytes(), rates, efficiency))
}

fn convolution(operation: &Operation, rates: &Rates, efficiency: &Efficiency) -> f64 {
    let &Operation::Convolution {
        pass,
        pixels,
        filters,
        window,
        groups,
        precision,
        is_channels_last,
        bytes,
    } = operation
    else {
        return 0.0;
    };
    let operations = 2.0 * float(pixels) * float(filters) * float(window);
    let (m, n, k) = match pass {
        Pass::Forward => (pixels, filters / groups, window),
        Pass::Backward => (pixels, window, filters / groups),
        Pass::BackwardFilter => (filters / groups, window, pixels),
    };
    let share = match precision {
        Precision::Single | Precision::Double => efficiency.single_product,
        _ if is_channels_last => efficiency.convolution_channels_last,
        _ => efficiency.convolution,
    };
    let rate = rates.operations(precision) * share * occupied(m, n, k, groups, rates);
    // Kernels of the matrix units read channels last; other layouts are converted before and after.
    let passes = if is_channels_last {
        1.0
    } else {
        efficiency.conversion_passes
    };
    (operations / rate).max(passes * moving(bytes, rates, efficiency))
}

fn attention(operation: &Operation, rates: &Rates, efficiency: &Efficiency) -> f64 {
    let &Operation::Attention {
        pass,
        heads,
        queries,
        keys,
        width,
        is_causal,
        precision,
    } = operation
    else {
        return 0.0;
    };
    // Two products in forward passes, five in backward ones; with a causal mask, half of each is skipped.
    let products = if pass == Pass::Forward { 2.0 } else { 5.0 };
    let unmasked = if is_causal { 0.5 } else { 1.0 };
    let one = 2.0 * float(heads) * float(queries) * float(keys) * float(width);
    let share = match (precision, pass) {
        (Precision::Single | Precision::Tf32 | Precision::Double, Pass::Forward) => {
            efficiency.single_attention
        }
        (Precision::Single | Precision::Tf32 | Precision::Double, _) => {
            efficiency.single_attention_backward
        }
        (_, Pass::Forward) => efficiency.half_attention,
        _ => efficiency.half_attention_backward,
    };
    let rate = match precision {
        Precision::Single | Precision::Tf32 => rates.operations(Precision::Single),
        other => rates.operations(other),
    };
    let tensors = if pass == Pass::Forward { 4 } else { 8 };
    let bytes = tensors * heads * queries.max(keys) * width * precision.bytes();
    (products * unmasked * one / (rate * share)).max(moving(bytes, rates, efficiency))
}

fn transfer(operation: &Operation, rates: &Rates, efficiency: &Efficiency) -> f64 {
    let &Operation::Copy {
        direction,
        bytes,
        is_pinned,
    } = operation
    else {
        return 0.0;
    };
    match direction {
        // Read and written.
        Direction::OnCard => 2.0 * moving(bytes, rates, efficiency),
        Direction::ToCard | Direction::ToHost if !is_pinned => {
            float(bytes) / (rates.link * efficiency.pageable_link)
        }
        Direction::ToCard | Direction::ToHost | Direction::BetweenCards => {
            float(bytes) / (rates.link * efficiency.link)
        }
    }
}

/// The share of the multiprocessors that a product keeps busy.
///
/// The multiprocessors compute tiles of the result, in rounds. A product with few tiles is also split along its sums, as
/// long as the pieces are large enough.
fn occupied(m: u64, n: u64, k: u64, batch: u64, rates: &Rates) -> f64 {
    const TILE: u64 = 128;
    const SHORTEST_PIECE: u64 = 512;
    let processors = u64::from(rates.multiprocessors).max(1);
    let tiles = (m.div_ceil(TILE) * n.div_ceil(TILE))
        .saturating_mul(batch)
        .max(1);
    let pieces = (processors / tiles).clamp(1, (k / SHORTEST_PIECE).max(1));
    let work = tiles * pieces;
    float(work) / float(work.next_multiple_of(processors))
}

/// Sizes and counts are far below the limit of exact integers in a float.
#[allow(clippy::cast_precision_loss)]
fn float(number: u64) -> f64 {
    number as f64
}

//! The work that one optimizer step gives a card, as the library calls it makes.

use serde::{Deserialize, Serialize};

/// The arithmetic of a product, which decides which units of the card compute it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    Double,
    Single,
    /// Single precision in memory, rounded to TF32 for the matrix units.
    Tf32,
    Bfloat16,
    Half,
    /// 8-bit floating point or integers.
    Eight,
}

impl Precision {
    /// Bytes of a number in memory.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Double => 8,
            Self::Single | Self::Tf32 => 4,
            Self::Bfloat16 | Self::Half => 2,
            Self::Eight => 1,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pass {
    Forward,
    /// The gradient of a layer's input, or of everything if one kernel computes all gradients.
    Backward,
    /// The gradient of a convolution's filters.
    BackwardFilter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    ToCard,
    ToHost,
    OnCard,
    BetweenCards,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// `batch` products of an m×k and a k×n matrix.
    Product {
        m: u64,
        n: u64,
        k: u64,
        batch: u64,
        precision: Precision,
        /// The matrix units can read every row in whole vectors.
        is_aligned: bool,
    },
    /// A convolution as the product it is: one row for each output pixel, one column for each
    /// filter, and a filter's window in between.
    Convolution {
        pass: Pass,
        pixels: u64,
        filters: u64,
        /// Numbers that one filter multiplies: channels of its group times height times width.
        window: u64,
        groups: u64,
        precision: Precision,
        is_channels_last: bool,
        /// The bytes of all three tensors together.
        bytes: u64,
    },
    /// Scaled dot-product attention in one kernel.
    Attention {
        pass: Pass,
        /// Heads times samples.
        heads: u64,
        queries: u64,
        keys: u64,
        width: u64,
        is_causal: bool,
        precision: Precision,
    },
    /// Any other kernel, with the bytes of its arguments.
    Kernel { name: String, bytes: u64 },
    Copy {
        direction: Direction,
        bytes: u64,
        /// The host's memory is pinned; copies without are staged by the driver.
        is_pinned: bool,
    },
}

/// An operation, and how often it occurs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Repeated {
    pub times: u32,
    #[serde(flatten)]
    pub operation: Operation,
}

/// How many calls the host makes, by how long the host takes between two of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HostCalls {
    /// From Python, with autograd's graph being built: forward passes.
    pub with_graph: u32,
    /// The same within a backward pass: what checkpointing repeats, including the hooks for saved tensors.
    pub repeated: u32,
    /// From Python without a graph: optimizers, evaluation.
    pub without_graph: u32,
    /// From autograd's own threads.
    pub in_backward: u32,
    /// Operators that go through Python on their way, as in selective checkpointing. Their calls count above, too.
    #[serde(default)]
    pub dispatched: u32,
}

/// The work that the host submits between two moments at which it waits for the card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// How many stretches of the step are equal to this one.
    pub times: u32,
    pub host: HostCalls,
    pub operations: Vec<Repeated>,
}

/// The work that one process gives its card from the end of one optimizer step to the end of the next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The number of the step, counted from 1. The first one differs from all others: it includes everything before it,
    /// and optimizers create their state in it.
    pub step: u64,
    pub stretches: Vec<Stretch>,
}

impl Work {
    /// The step that represents a training: the one with the median number of calls, and not the first unless it is the
    /// only one.
    pub fn typical(mut steps: Vec<Self>) -> Option<Self> {
        if steps.iter().any(|work| work.step > 1) {
            steps.retain(|work| work.step > 1);
        }
        steps.sort_by_key(|work| (work.calls(), work.step));
        let middle = steps.len().checked_sub(1)? / 2;
        Some(steps.swap_remove(middle))
    }

    /// The number of kernels, library calls and copies that the host submits.
    pub fn calls(&self) -> u64 {
        self.operations().map(|(times, _)| times).sum()
    }

    /// Every operation, and how often it occurs in the whole step.
    pub fn operations(&self) -> impl Iterator<Item = (u64, &Operation)> {
        self.stretches.iter().flat_map(|stretch| {
            let times = u64::from(stretch.times);
            stretch
                .operations
                .iter()
                .map(move |each| (times * u64::from(each.times), &each.operation))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(step: u64, calls: u32) -> Work {
        let operation = Operation::Kernel {
            name: "fill".to_owned(),
            bytes: 512,
        };
        let operations = vec![Repeated {
            times: calls,
            operation,
        }];
        Work {
            step,
            stretches: vec![Stretch {
                times: 1,
                host: HostCalls::default(),
                operations,
            }],
        }
    }

    #[test]
    fn the_first_step_stands_for_others_only_if_there_are_none() {
        let typical = |steps: &[(u64, u32)]| {
            let steps = steps.iter().map(|&(step, calls)| work(step, calls));
            Work::typical(steps.collect()).map(|work| work.step)
        };
        assert_eq!(typical(&[]), None);
        assert_eq!(typical(&[(1, 900)]), Some(1));
        assert_eq!(typical(&[(1, 900), (2, 300)]), Some(2));
        // A step that also evaluates is not a typical one.
        assert_eq!(typical(&[(1, 900), (2, 300), (3, 800), (4, 300)]), Some(4));
        assert_eq!(typical(&[(2, 300), (3, 300), (4, 300)]), Some(3));
    }

    #[test]
    fn repetitions_multiply() {
        let mut twice = work(2, 5);
        twice.stretches[0].times = 3;
        assert_eq!(twice.calls(), 15);
    }

    #[test]
    fn work_is_the_same_after_writing_and_reading() {
        let line = r#"{"step":2,"stretches":[{"times":1,"host":{"with_graph":1,"repeated":0,"without_graph":0,"in_backward":3,"dispatched":2},"operations":[{"times":4,"product":{"m":768,"n":8192,"k":3072,"batch":1,"precision":"bfloat16","is_aligned":true}}]}]}"#;
        let read: Work = serde_json::from_str(line).expect("valid");
        assert_eq!(serde_json::to_string(&read).expect("plain data"), line);
    }
}

//! Which situation a failure is in, with the figures that show it.

mod allocator;
mod clues;
mod elsewhere;
mod others;
mod suspects;

use serde::Serialize;

use crate::account::Account;
use crate::finding::Finding;
use crate::reader::Log;

pub use clues::{Stage, stage};
pub use suspects::{Suspect, suspect};

/// The cause of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Situation {
    OneLargeRequest,
    Fragmentation,
    OtherProcess,
    ModelDoesNotFit,
    OptimizerState,
    Activations,
    Evaluation,
    Growth,
    ShapeBug,
    FractionLimit,
    /// The driver had more free than was requested, and refused.
    FreeButRefused,
    /// Libraries or contexts found no memory outside PyTorch's allocator.
    OutsideTheAllocator,
    HostMemory,
    SharedMemory,
    PinnedMemory,
    KernelSharedMemory,
    ServingCache,
    /// The framework had preallocated the card, or its share of it was too small.
    FrameworkPool,
    /// Tensors in use fill the card.
    Full,
}

impl Situation {
    pub fn words(self) -> &'static str {
        match self {
            Self::OneLargeRequest => "one large request with little memory left",
            Self::Fragmentation => {
                "fragmentation: PyTorch's cache has room, but in pieces that are too small"
            }
            Self::OtherProcess => "another process holds part of the card's memory",
            Self::ModelDoesNotFit => "the model alone does not fit",
            Self::OptimizerState => "the optimizer state does not fit next to the model",
            Self::Activations => "activations fill the card: they grow with the batch size",
            Self::Evaluation => "evaluation, not training, needs too much memory",
            Self::Growth => "memory grows from step to step",
            Self::ShapeBug => "a request larger than the card: most likely a wrong shape",
            Self::FractionLimit => "the process reached its own limit, not the card's",
            Self::FreeButRefused => "the driver refused although enough memory was free",
            Self::OutsideTheAllocator => "no memory left outside PyTorch for CUDA's libraries",
            Self::HostMemory => "host memory (RAM) ran out, not the GPU's",
            Self::SharedMemory => "shared memory (/dev/shm) ran out, not the GPU's",
            Self::PinnedMemory => "pinned host memory ran out, not the GPU's",
            Self::KernelSharedMemory => {
                "a kernel needs more on-chip memory than the card has, not more GPU memory"
            }
            Self::ServingCache => "the server's KV cache does not fit",
            Self::FrameworkPool => "the framework's GPU memory pool is exhausted",
            Self::Full => "tensors in use fill the card",
        }
    }
}

/// A situation, with its reasons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reasoned {
    pub situation: Situation,
    pub reasons: Vec<String>,
}

impl Reasoned {
    fn new(situation: Situation, reason: impl Into<String>) -> Self {
        Self {
            situation,
            reasons: vec![reason.into()],
        }
    }

    fn and(mut self, reason: impl Into<String>) -> Self {
        self.reasons.push(reason.into());
        self
    }

    fn and_if(self, reason: Option<String>) -> Self {
        match reason {
            Some(reason) => self.and(reason),
            None => self,
        }
    }
}

/// Every situation that applies, the most likely first; never empty.
pub fn situations(finding: &Finding, account: &Account, log: &Log) -> Vec<Reasoned> {
    match finding.kind.is_caching_allocator() {
        true => allocator::situations(finding, account, log),
        false => vec![elsewhere::situation(finding)],
    }
}

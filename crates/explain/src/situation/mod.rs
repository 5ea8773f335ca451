//! Which situation a failure is, with the numbers that led to it.

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

/// What is behind a failure.
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
    /// The driver had more than was asked for, and did not give it.
    FreeButRefused,
    /// Libraries and contexts found no room beside PyTorch.
    OutsideTheAllocator,
    HostMemory,
    SharedMemory,
    PinnedMemory,
    KernelSharedMemory,
    ServingCache,
    /// The framework had taken the card beforehand, or its share of it was too small.
    FrameworkPool,
    /// The card is full of tensors that are in use.
    Full,
}

impl Situation {
    pub fn words(self) -> &'static str {
        match self {
            Self::OneLargeRequest => "one large request against little memory",
            Self::Fragmentation => {
                "fragmentation: PyTorch's cache has room, but in too small pieces"
            }
            Self::OtherProcess => "another process holds a part of the card",
            Self::ModelDoesNotFit => "the model alone does not fit",
            Self::OptimizerState => "the optimizer's state no longer fits beside the model",
            Self::Activations => "activations fill the card: they grow with the batch",
            Self::Evaluation => "evaluation, not training, needs too much",
            Self::Growth => "memory grows from step to step",
            Self::ShapeBug => "a request larger than the card: most likely a wrong shape",
            Self::FractionLimit => "the process's own limit, not the card's",
            Self::FreeButRefused => "the driver had enough free, and refused",
            Self::OutsideTheAllocator => "no room left beside PyTorch for CUDA's own libraries",
            Self::HostMemory => "the machine's memory (RAM), not the GPU's",
            Self::SharedMemory => "shared memory between processes (/dev/shm), not the GPU's",
            Self::PinnedMemory => "page-locked memory of the machine, not the GPU's",
            Self::KernelSharedMemory => "a kernel too large for the chip, not a lack of GPU memory",
            Self::ServingCache => "the server's KV cache",
            Self::FrameworkPool => "the framework's pool of GPU memory",
            Self::Full => "the card is full of tensors in use",
        }
    }
}

/// A situation, and why.
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

/// Everything that fits, the most telling first; never empty.
pub fn situations(finding: &Finding, account: &Account, log: &Log) -> Vec<Reasoned> {
    match finding.kind.is_caching_allocator() {
        true => allocator::situations(finding, account, log),
        false => vec![elsewhere::situation(finding)],
    }
}

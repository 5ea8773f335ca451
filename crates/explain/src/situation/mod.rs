//! Which situation a failure is in, with the figures that show it.

mod allocator;
mod clues;
mod elsewhere;
mod others;
mod suspects;

use serde::Serialize;

use crate::account::Account;
use crate::catalogue::Catalogue;
use crate::finding::Finding;
use crate::kind::Kind;
use crate::reader::Log;
use crate::say;

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
    /// What is in use fills the card.
    Full,
    /// Two ranks of a job use the same card.
    RanksOnOneCard,
    /// The message does not say which memory ran out.
    Unsaid,
}

impl Situation {
    pub fn words(self, catalogue: &Catalogue) -> String {
        let id = match self {
            Self::OneLargeRequest => "situation-one-large-request",
            Self::Fragmentation => "situation-fragmentation",
            Self::OtherProcess => "situation-other-process",
            Self::ModelDoesNotFit => "situation-model-does-not-fit",
            Self::OptimizerState => "situation-optimizer-state",
            Self::Activations => "situation-activations",
            Self::Evaluation => "situation-evaluation",
            Self::Growth => "situation-growth",
            Self::ShapeBug => "situation-shape-bug",
            Self::FractionLimit => "situation-fraction-limit",
            Self::FreeButRefused => "situation-free-but-refused",
            Self::OutsideTheAllocator => "situation-outside-the-allocator",
            Self::HostMemory => "situation-host-memory",
            Self::SharedMemory => "situation-shared-memory",
            Self::PinnedMemory => "situation-pinned-memory",
            Self::KernelSharedMemory => "situation-kernel-shared-memory",
            Self::ServingCache => "situation-serving-cache",
            Self::FrameworkPool => "situation-framework-pool",
            Self::Full => "situation-full",
            Self::RanksOnOneCard => "situation-ranks-on-one-card",
            Self::Unsaid => "situation-unsaid",
        };
        say!(catalogue, id)
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
pub fn situations(
    finding: &Finding,
    account: &Account,
    log: &Log,
    catalogue: &Catalogue,
) -> Vec<Reasoned> {
    let reasoner = allocator::Reasoner {
        finding,
        account,
        log,
        catalogue,
    };
    match finding.kind.is_caching_allocator() {
        true => reasoner.situations(),
        // Without figures, only what the program was doing tells.
        false if finding.kind == Kind::CudaAllocatorBare => {
            let by_stage = reasoner.by_stage();
            vec![by_stage.unwrap_or_else(|| elsewhere::situation(finding, catalogue))]
        }
        false => vec![elsewhere::situation(finding, catalogue)],
    }
}

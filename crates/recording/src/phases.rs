//! What the script was doing.

use crate::names::NameId;

/// The stages of a training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Anything else: building the model, loading data, logging.
    Script,
    /// The model is moved to the card, or created there.
    Moving,
    /// A model runs with autograd.
    Forward,
    Backward,
    OptimizerStep,
    ZeroGrad,
    /// A model runs without autograd.
    Evaluation,
}

impl Stage {
    pub const ALL: [Self; 7] = [
        Self::Script,
        Self::Moving,
        Self::Forward,
        Self::Backward,
        Self::OptimizerStep,
        Self::ZeroGrad,
        Self::Evaluation,
    ];

    /// Its name in JSON and in the exchange with the agent.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Script => "script",
            Self::Moving => "moving",
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::OptimizerStep => "optimizer_step",
            Self::ZeroGrad => "zero_grad",
            Self::Evaluation => "evaluation",
        }
    }

    /// Its title in reports.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Script => "script",
            Self::Moving => "moving the model",
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::OptimizerStep => "optimizer step",
            Self::ZeroGrad => "zero_grad",
            Self::Evaluation => "evaluation",
        }
    }
}

/// A range of time that the script named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedRange {
    pub name: NameId,
    /// Microseconds since the card's first event.
    pub begin_us: u64,
    /// The same; `None` if it was open at the end.
    pub end_us: Option<u64>,
}

/// An interval of a card's events in one stage of one step. Phases follow each other without gaps and
/// cover all events, or there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    pub stage: Stage,
    /// How many optimizer steps were completed before; 0 in the first forward, backward and step.
    pub step: u32,
    /// Index of its first event.
    pub first_event: u32,
}

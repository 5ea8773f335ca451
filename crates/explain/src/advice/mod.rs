//! What to do in a situation, best first, each with its command; and what would not help.

mod by_situation;
mod device;
mod habits;
mod host;
mod serving;
mod unhelpful;

use serde::Serialize;

pub use by_situation::advice;
pub use unhelpful::unhelpful;

/// One thing that may help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Advice {
    pub what: String,
    /// What to type or write, on one line.
    pub command: String,
    pub why: String,
    pub effect: Effect,
    /// The change that a rehearsal can check.
    pub candidate: Option<Candidate>,
    /// Why no rehearsal can check it. Set exactly when `candidate` is not.
    pub not_rehearsed_because: Option<String>,
}

/// How advice affects the results of the training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Not at all.
    Identical,
    /// Up to rounding; `why` names exceptions such as batch norm.
    Rounding,
    Precision,
    /// The batch, data, model or optimizer changes.
    Training,
    /// A server accepts less: shorter sequences, a shorter context.
    Service,
}

impl Effect {
    pub fn words(self) -> &'static str {
        match self {
            Self::Identical => "same results",
            Self::Rounding => "same results up to rounding",
            Self::Precision => "changes the precision",
            Self::Training => "changes the training",
            Self::Service => "changes what the server accepts",
        }
    }
}

/// A change that may help, and that a rehearsal can check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Candidate {
    /// The unchanged script, alone on the card.
    EmptyCard,
    ExpandableSegments,
    MaxSplitSize,
    SmallerBatch,
    LargerCard,
    Autocast,
    Checkpointing,
    #[serde(rename = "bfloat16-weights")]
    Bfloat16Weights,
    LeanOptimizer,
    ShorterSamples,
    NoGradEvaluation,
    SmallEvaluationBatch,
    DropGradients,
    DropLast,
    NoCudnnBenchmark,
    LeaveRoom,
    NoLimit,
    /// Fixes for lines that keep a loss with its graph.
    FixedLosses,
    /// Fixes for lines that collect outputs on the card.
    FixedOutputs,
    /// Fixes for lines that carry a graph from step to step.
    FixedState,
}

/// Common advice that does not help here, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unhelpful {
    pub what: &'static str,
    pub why: String,
    /// The rehearsal that may show the contrary.
    #[serde(skip)]
    pub candidate: Option<Candidate>,
}

/// Why a diagnostic step is not rehearsed.
const FINDS_THE_CAUSE: &str = "it finds the cause and changes nothing";

impl Advice {
    fn new(what: impl Into<String>, command: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            command: command.into(),
            why: why.into(),
            effect: Effect::Identical,
            candidate: None,
            not_rehearsed_because: None,
        }
    }

    fn with_effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    fn rehearsed_as(mut self, candidate: Candidate) -> Self {
        self.candidate = Some(candidate);
        self
    }

    /// Says why no rehearsal can check it.
    pub fn not_rehearsed(mut self, because: impl Into<String>) -> Self {
        self.candidate = None;
        self.not_rehearsed_because = Some(because.into());
        self
    }
}

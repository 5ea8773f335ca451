//! What to do, ranked for a situation, each with its command; and what would not help.

mod by_situation;
mod device;
mod habits;
mod host;
mod serving;
mod unhelpful;

use serde::Serialize;

pub use by_situation::advice;
pub use unhelpful::unhelpful;

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Advice {
    pub what: String,
    /// What to type or write, on one line.
    pub command: String,
    pub why: String,
    pub effect: Effect,
    /// How a dry run can try it.
    pub trial: Option<Trial>,
    /// Why none can; every advice has this or a trial.
    pub untried_because: Option<String>,
}

/// What it does to the training's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Nothing at all.
    Identical,
    /// The same up to rounding.
    Rounding,
    Precision,
    /// Another training: batch, data, model or optimizer.
    Training,
    /// A server that takes less.
    Service,
}

impl Effect {
    pub fn words(self) -> &'static str {
        match self {
            Self::Identical => "same results",
            Self::Rounding => "same results up to rounding",
            Self::Precision => "changes the precision",
            Self::Training => "changes the training",
            Self::Service => "changes what is served",
        }
    }
}

/// What a dry run can try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trial {
    /// The script as it is, on the card by itself.
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
    /// Lines that keep a loss with its graph, mended.
    MendedLosses,
    /// Lines that gather outputs on the card, mended.
    MendedOutputs,
    /// Lines that carry a graph from step to step, mended.
    MendedState,
}

/// Old advice that does not help here, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unhelpful {
    pub what: &'static str,
    pub why: String,
    /// The rehearsal that may show the contrary.
    #[serde(skip)]
    pub trial: Option<Trial>,
}

impl Advice {
    fn new(what: impl Into<String>, command: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            command: command.into(),
            why: why.into(),
            effect: Effect::Identical,
            trial: None,
            untried_because: None,
        }
    }

    fn with_effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    fn tried_by(mut self, trial: Trial) -> Self {
        self.trial = Some(trial);
        self
    }

    /// Says why no dry run can try it.
    pub fn untried(mut self, because: impl Into<String>) -> Self {
        self.trial = None;
        self.untried_because = Some(because.into());
        self
    }
}

//! What to do in a situation, best first, each with its command; and what would not help.

mod by_situation;
mod device;
mod habits;
mod host;
mod inference;
mod libraries;
mod serving;
mod unhelpful;

use serde::Serialize;

pub use by_situation::advice;
pub use unhelpful::unhelpful;

use fluent_bundle::FluentValue;

use crate::catalogue::Catalogue;
use crate::say;

/// One thing that may help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// The same in all languages.
    pub name: String,
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
    pub fn words(self, catalogue: &Catalogue) -> String {
        let id = match self {
            Self::Identical => "effect-identical",
            Self::Rounding => "effect-rounding",
            Self::Precision => "effect-precision",
            Self::Training => "effect-training",
            Self::Service => "effect-service",
        };
        say!(catalogue, id)
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
    pub what: String,
    pub why: String,
    /// The rehearsal that may show the contrary.
    #[serde(skip)]
    pub candidate: Option<Candidate>,
}

/// Makes advice in one language.
#[derive(Clone, Copy, Debug)]
pub struct Advisor<'a> {
    pub catalogue: &'a Catalogue,
}

impl Advisor<'_> {
    /// Advice with what to type or write; a remark from the catalogue stands behind it.
    fn advise(&self, id: &str, command: impl Into<String>) -> Advice {
        self.advise_with(id, command, &[])
    }

    fn advise_with(
        &self,
        id: &str,
        command: impl Into<String>,
        variables: &[(&str, FluentValue<'static>)],
    ) -> Advice {
        let mut command = command.into();
        if let Some(remark) = self.catalogue.attribute(id, "remark", variables) {
            command.push_str("   # ");
            command.push_str(&remark);
        }
        let why = self.catalogue.attribute(id, "why", variables);
        Advice {
            name: id.to_owned(),
            what: self.catalogue.say(id, variables),
            command,
            why: why.unwrap_or_default(),
            effect: Effect::Identical,
            candidate: None,
            not_rehearsed_because: None,
        }
    }

    /// Says why no rehearsal can check this.
    fn unrehearsed(&self, advice: Advice, because: &str) -> Advice {
        advice.not_rehearsed(say!(self.catalogue, because))
    }

    fn all_unrehearsed(&self, all: Vec<Advice>, because: &str) -> Vec<Advice> {
        let all = all.into_iter();
        all.map(|each| self.unrehearsed(each, because)).collect()
    }
}

impl Advice {
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

//! Which tricks a plan may use.

use std::collections::BTreeSet;

use ghostgpu_tricks::{Catalogue, Numerics};

/// A kind of change to the training's numbers that the user can allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Allowance {
    /// Fewer bits: autocast, weights in bfloat16.
    Precision,
    /// Another optimizer, or its state in fewer bits.
    Optimizer,
    /// Shorter sequences.
    Sequence,
    /// Smaller batches, several of them per step.
    Batch,
    /// Adapters in place of all weights.
    Lora,
}

impl Allowance {
    pub const ALL: [Self; 5] = [
        Self::Precision,
        Self::Optimizer,
        Self::Sequence,
        Self::Batch,
        Self::Lora,
    ];

    /// The name that users type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Precision => "precision",
            Self::Optimizer => "optimizer",
            Self::Sequence => "sequence",
            Self::Batch => "batch",
            Self::Lora => "lora",
        }
    }

    /// The allowance that a trick needs; `None` for tricks that keep the numbers, or that no plan uses.
    pub fn of_trick(name: &str) -> Option<Self> {
        Some(match name {
            "autocast" | "bfloat16-weights" => Self::Precision,
            "eight-bit-optimizer" | "adafactor" => Self::Optimizer,
            "shorter-sequences" => Self::Sequence,
            "smaller-batch" | "accumulation" => Self::Batch,
            "lora" => Self::Lora,
            _ => return None,
        })
    }
}

/// How far a plan may change the numbers. Tricks that keep them the same up to rounding are always allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    pub changes: BTreeSet<Allowance>,
    /// Changes to the numbers are not rehearsed even if nothing else fits.
    pub keeps_numerics: bool,
    /// If not empty, only these tricks are used.
    pub only: BTreeSet<String>,
}

impl Allowed {
    /// Whether a plan may use this trick.
    pub fn permits(&self, name: &str) -> bool {
        let is_wanted = self.only.is_empty() || self.only.contains(name);
        is_wanted && (keeps_numbers(name) || self.permits_change(name))
    }

    fn permits_change(&self, name: &str) -> bool {
        Allowance::of_trick(name).is_some_and(|allowance| self.changes.contains(&allowance))
    }

    /// The same with every change to the numbers allowed, for a job that nothing else helps.
    pub fn with_all_changes(&self) -> Self {
        Self {
            changes: Allowance::ALL.into_iter().collect(),
            ..self.clone()
        }
    }
}

fn keeps_numbers(name: &str) -> bool {
    let trick = Catalogue::builtin().find(name);
    trick.is_some_and(|trick| trick.numerics <= Numerics::Rounding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tricks_that_change_the_numbers_must_be_allowed() {
        let default = Allowed::default();
        let precise = Allowed {
            changes: [Allowance::Precision].into(),
            ..Allowed::default()
        };
        for (name, by_default, with_precision) in [
            ("checkpointing", true, true),
            ("chunking", true, true),
            ("autocast", false, true),
            ("adafactor", false, false),
            ("drop-last", false, false),
            ("no-such-trick", false, false),
        ] {
            assert_eq!(default.permits(name), by_default, "{name}");
            assert_eq!(precise.permits(name), with_precision, "{name}");
        }
    }

    #[test]
    fn every_allowance_permits_some_trick_of_the_catalogue() {
        let tricks = &Catalogue::builtin().tricks;
        for allowance in Allowance::ALL {
            let is_used = |name: &str| Allowance::of_trick(name) == Some(allowance);
            assert!(
                tricks.iter().any(|trick| is_used(&trick.name)),
                "{allowance:?}"
            );
        }
    }
}

//! Which rules check a file, and how severe their findings are.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::Severity;
use crate::rules::Rule;

/// The settings for one file; by default every rule runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Names of rules that do not run.
    pub off: BTreeSet<&'static str>,
    /// Severities other than the rule's own.
    pub severities: BTreeMap<&'static str, Severity>,
}

impl Settings {
    pub fn selects(&self, rule: &Rule) -> bool {
        !self.off.contains(rule.name)
    }

    /// Whether a rule runs: selected, or on by default.
    pub fn was_asked_as_usual(&self, rule: &Rule) -> bool {
        self.selects(rule) || !rule.is_on_by_default()
    }

    /// The severity of a finding; `own` unless configured otherwise.
    pub fn severity(&self, rule: &Rule, own: Severity) -> Severity {
        self.severities.get(rule.name).copied().unwrap_or(own)
    }
}

/// Which findings make the check fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailOn {
    /// Findings of this severity and above.
    AtLeast(Severity),
    Never,
}

impl FailOn {
    pub const WORDS: [&str; 4] = ["note", "warning", "error", "never"];

    pub fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "note" => Self::AtLeast(Severity::Note),
            "warning" => Self::AtLeast(Severity::Warning),
            "error" => Self::AtLeast(Severity::Error),
            "never" => Self::Never,
            _ => return None,
        })
    }

    /// Whether a finding of this severity makes the check fail.
    pub fn counts(self, severity: Severity) -> bool {
        match self {
            Self::AtLeast(least) => severity >= least,
            Self::Never => false,
        }
    }
}

impl Default for FailOn {
    /// Notes are advice.
    fn default() -> Self {
        Self::AtLeast(Severity::Warning)
    }
}

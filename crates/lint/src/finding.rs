//! What a rule reports: where, what, and how to fix it. Plain data.

use std::ops::Range;

use crate::rules::Rule;

/// How certain and how costly a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Advice: memory that could be saved, or something to keep in mind.
    Note,
    /// Memory is very likely wasted, or the training is very likely not what was intended.
    Warning,
    /// Memory grows until the card is full, or the training is wrong.
    Error,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One place in a file where a rule found its mistake.
#[derive(Debug, Clone)]
pub struct Finding {
    pub rule: &'static Rule,
    /// The rule's severity, unless this finding is known to be worse.
    pub severity: Severity,
    /// One sentence about this place, with the names from the script.
    pub message: String,
    /// What to do about it, in one sentence.
    pub help: String,
    /// Bytes of the source text (for a notebook, of its code cells joined).
    pub range: Range<usize>,
    pub fix: Option<Fix>,
}

/// Whether a fix can change what the script computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Safety {
    /// The script computes the same; `--fix` applies it.
    Safe,
    /// It can change results or needs review; only `--unsafe-fixes` applies it.
    Unsafe,
}

/// Text edits that remove a finding and touch nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// What the edit does, in the imperative: "Add `.item()`".
    pub title: String,
    pub safety: Safety,
    /// In order of position, not overlapping.
    pub edits: Vec<Edit>,
}

impl Fix {
    pub fn safe(title: impl Into<String>, edits: Vec<Edit>) -> Self {
        Self {
            title: title.into(),
            safety: Safety::Safe,
            edits,
        }
    }

    pub fn unsafe_(title: impl Into<String>, edits: Vec<Edit>) -> Self {
        Self {
            title: title.into(),
            safety: Safety::Unsafe,
            edits,
        }
    }
}

/// Replaces `range` by `text`; an empty range inserts, an empty text deletes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    pub range: Range<usize>,
    pub text: String,
}

impl Edit {
    pub fn insert(at: usize, text: impl Into<String>) -> Self {
        Self {
            range: at..at,
            text: text.into(),
        }
    }

    pub fn replace(range: Range<usize>, text: impl Into<String>) -> Self {
        Self {
            range,
            text: text.into(),
        }
    }

    pub fn delete(range: Range<usize>) -> Self {
        Self {
            range,
            text: String::new(),
        }
    }
}

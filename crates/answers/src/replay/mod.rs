//! What a recorded history would have been under another setting.

mod assumptions;
mod json;
mod text;

pub use assumptions::assumptions;
use ghostgpu_allocator::replay::WhatIf;
use ghostgpu_whatif::{Found, History, Question};

use crate::in_json;
use crate::style::Style;

/// The result of a replay.
#[derive(Debug)]
pub struct Replayed<'a> {
    /// The snapshot's path, as the user typed it.
    pub file: String,
    pub history: &'a History,
    pub question: Question,
    /// The card's memory, and how much of it is outside the allocator.
    pub card: Option<CardMemory>,
    pub outcome: Outcome,
    pub assumptions: Vec<String>,
}

/// What was replayed.
#[derive(Debug)]
pub enum Outcome {
    /// One setting.
    One(Box<WhatIf>),
    /// Many of them, the best first.
    Ranked { found: Vec<Found>, shown: usize },
}

impl Outcome {
    /// Whether the program would have completed, under the given setting or under any.
    pub fn fits(&self) -> bool {
        match self {
            Self::One(answer) => answer.failure.is_none(),
            Self::Ranked { found, .. } => found.iter().any(Found::fits),
        }
    }
}

/// A card's memory, and how much of it the allocator can use.
#[derive(Debug, Clone)]
pub struct CardMemory {
    pub name: Option<String>,
    pub total_bytes: u64,
    /// Context, libraries and other programs.
    pub outside_bytes: u64,
    /// The user did not say how much is outside, so it is assumed.
    pub is_outside_assumed: bool,
}

impl CardMemory {
    pub fn for_the_allocator_bytes(&self) -> u64 {
        self.total_bytes.saturating_sub(self.outside_bytes)
    }
}

impl Replayed<'_> {
    pub fn text(&self, style: Style) -> String {
        text::render(self, style)
    }

    /// The document, which `docs/replay-json.md` describes.
    pub fn json(&self) -> serde_json::Result<String> {
        in_json(&json::document(self))
    }
}

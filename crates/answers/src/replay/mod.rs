//! What another setting would have made of a recorded history.

mod assumptions;
mod json;
mod text;

pub use assumptions::assumptions;
use ghostgpu_allocator::replay::WhatIf;
use ghostgpu_whatif::{Found, History, Question};

use crate::in_json;
use crate::look::Look;

/// What a replay came to.
#[derive(Debug)]
pub struct Replayed<'a> {
    /// The snapshot, as the user calls it.
    pub file: String,
    pub history: &'a History,
    pub question: Question,
    /// The card's memory, and what of it is out of the allocator's reach.
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
    /// Whether the program would have run to its end, under the setting that was asked for or under any.
    pub fn fits(&self) -> bool {
        match self {
            Self::One(answer) => answer.failure.is_none(),
            Self::Ranked { found, .. } => found.iter().any(Found::fits),
        }
    }
}

/// A card's memory, as far as the allocator goes.
#[derive(Debug, Clone)]
pub struct CardMemory {
    pub name: Option<String>,
    pub total_bytes: u64,
    /// Context, libraries and other programs.
    pub outside_bytes: u64,
    /// Nobody said how much is outside.
    pub is_outside_assumed: bool,
}

impl CardMemory {
    pub fn for_the_allocator_bytes(&self) -> u64 {
        self.total_bytes.saturating_sub(self.outside_bytes)
    }
}

impl Replayed<'_> {
    pub fn text(&self, look: Look) -> String {
        text::render(self, look)
    }

    /// The document, which `docs/replay-json.md` describes.
    pub fn json(&self) -> serde_json::Result<String> {
        in_json(&json::document(self))
    }
}

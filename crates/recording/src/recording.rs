//! The recording as a whole.

use crate::allocation::Allocation;
use crate::events::Event;
use crate::names::Names;
use crate::phases::Phase;

/// What happened in one process of a rehearsal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    pub about: About,
    pub names: Names,
    /// The cards that were used.
    pub cards: Vec<CardMemory>,
    /// What is missing from it, in sentences.
    pub warnings: Vec<String>,
}

/// What was rehearsed, where, and with which result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The script and its arguments.
    pub command: Vec<String>,
    pub torch: String,
    /// The card's name, its memory, its capability (`9.0`).
    pub gpu: String,
    pub gpu_total_bytes: u64,
    pub capability: String,
    /// Optimizer steps that were complete at the end.
    pub steps: u32,
    /// The answer of the rehearsal: the document that `ghostgpu run --json` writes.
    pub answer_json: String,
}

/// What happened on one card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CardMemory {
    pub index: u32,
    /// On the card, but not from PyTorch's allocator: the CUDA context and what libraries hold.
    pub outside_bytes: u64,
    /// Memory that PyTorch's allocator had reserved before the first event.
    pub reserved_before: Vec<crate::SegmentChange>,
    pub allocations: Vec<Allocation>,
    pub events: Vec<Event>,
    /// Time of each event in microseconds since the first; as many as there are events.
    pub times_us: Vec<u64>,
    pub phases: Vec<Phase>,
}

impl CardMemory {
    /// The phase that an event belongs to.
    pub fn phase_of(&self, event: u32) -> Option<&Phase> {
        let after = self
            .phases
            .partition_point(|phase| phase.first_event <= event);
        self.phases.get(after.checked_sub(1)?)
    }
}

//! Whether a job that barely fits would also fit if the driver placed its segments elsewhere.

use ghostgpu_rehearse::Run;
use ghostgpu_whatif::History;

use crate::need::{Proposal, flushes, memory_limit};

/// A run in which PyTorch may have flushed its cache. What a flush frees depends on where segments lie, so such a run
/// may end differently on another machine.
pub struct TightRun<'a> {
    history: &'a History,
    /// How much memory PyTorch could get.
    memory_bytes: u64,
}

impl<'a> TightRun<'a> {
    /// `None` if the placement does not matter, or if that cannot be determined. `card_bytes` is the part of the card
    /// that the job may use.
    pub fn of(run: &'a Run, card_bytes: u64) -> Option<Self> {
        if flushes(run) == Some(0) {
            return None;
        }
        let outside = Proposal::outside_bytes_of(run)?;
        let limit = memory_limit(run).map_or(u64::MAX, |limit| limit.limit_bytes);
        Some(Self {
            history: run.history.as_ref()?,
            memory_bytes: card_bytes.saturating_sub(outside).min(limit),
        })
    }

    /// Whether it also completes if the host's own mappings lie elsewhere between the segments.
    pub fn ends_in_other_layouts(&self) -> bool {
        self.history.ends_in_other_layouts(self.memory_bytes)
    }

    /// Whether it also completes if pages of kernel code lie between the segments.
    pub fn ends_beside_code(&self) -> bool {
        self.history.ends_beside_code(self.memory_bytes)
    }
}

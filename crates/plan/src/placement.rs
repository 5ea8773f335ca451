//! Whether a job that only just ends does so wherever the driver puts its segments.

use ghostgpu_rehearse::Run;
use ghostgpu_whatif::History;

use crate::need::{Proposal, flushes, memory_limit};

/// What a run did, where it had to flush PyTorch's cache and so may depend on where segments lie.
pub struct TightRun<'a> {
    history: &'a History,
    /// What PyTorch had at most.
    memory_bytes: u64,
}

impl<'a> TightRun<'a> {
    /// None where nothing depends on it, or it cannot be told. `card_bytes` is what the job may have of the card.
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

    /// Whether it also ends where the host's own memory lies differently between segments.
    pub fn ends_in_other_layouts(&self) -> bool {
        self.history.ends_in_other_layouts(self.memory_bytes)
    }

    /// Whether it also ends where the code of kernels lies between them.
    pub fn ends_beside_code(&self) -> bool {
        self.history.ends_beside_code(self.memory_bytes)
    }
}

//! What a replay of a run's history says about its smallest memory.

use ghostgpu_rehearse::Run;

/// What the replica proposes. Bytes are those of PyTorch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The least with which the recorded program ends.
    pub smallest_bytes: u64,
    /// From here on it never flushes its cache.
    pub comfortable_bytes: u64,
    /// What is on the card beside it: the context, libraries.
    pub outside_bytes: u64,
}

impl Proposal {
    /// None without a history, or where others have memory on the same card, too: how much they could do
    /// without is not in it.
    pub fn of(run: &Run) -> Option<Self> {
        let history = run.history.as_ref()?;
        let findings = &run.findings;
        let main = findings.main_process()?;
        let uses = || {
            let uses = findings.process_use.iter();
            uses.filter(|each| each.peak_bytes > 0)
        };
        let mut own = uses().filter(|each| each.process == main.pid);
        let (Some(card), None) = (own.next(), own.next()) else {
            return None;
        };
        if uses().any(|each| each.device == card.device && each.process != main.pid) {
            return None;
        }
        let reserved = main.peaks.iter().map(|peaks| peaks.peak_reserved_bytes).max()?;
        Some(Self {
            smallest_bytes: history.smallest_memory()?,
            comfortable_bytes: history.ask(&history.question()).peak_reserved_bytes(),
            outside_bytes: findings.peak_device_bytes().saturating_sub(reserved),
        })
    }
}

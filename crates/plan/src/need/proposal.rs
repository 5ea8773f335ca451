//! The smallest memory according to a replay of a run's history.

use ghostgpu_rehearse::Run;
use ghostgpu_session::MemoryLimit;

use super::flushes;

/// What the replica proposes. Bytes are PyTorch's reserved memory unless stated otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The smallest memory with which the recorded program completes.
    pub smallest_bytes: u64,
    /// Less than that, with which it completes as well, though not with something in between: what PyTorch caches depends
    /// on how much there is.
    pub below_gap_bytes: Option<u64>,
    /// The smallest memory with which PyTorch never flushes its cache.
    pub comfortable_bytes: u64,
    /// What else is on the card: the context and libraries.
    pub outside_bytes: u64,
    /// With `smallest_bytes`, convolutions fall back to smaller workspaces.
    pub takes_smaller_workspaces: bool,
    /// How often PyTorch flushes its cache with `smallest_bytes`.
    pub flushes: u64,
    /// The script's own limit for PyTorch, as a part of the card, if it set one.
    pub limit: Option<MemoryLimit>,
    /// With `smallest_bytes`, libraries would replace workspaces that are a notable part of the memory, and the sizes
    /// of the replacements are unknown. The true minimum may be smaller.
    pub is_estimate: bool,
}

/// A replaced workspace of unknown size matters if it is more than one part in this many.
const MATTERS: u64 = 20;

impl Proposal {
    /// `None` without a history, or if other processes use the same card: the history does not say how much memory
    /// those could do without.
    pub fn of(run: &Run) -> Option<Self> {
        let history = run.history.as_ref()?;
        let outside_bytes = Self::outside_bytes_of(run)?;
        let smallest_bytes = history.smallest_memory()?;
        let tight = history.with_memory(smallest_bytes);
        Some(Self {
            smallest_bytes,
            below_gap_bytes: history.memory_below_gap(smallest_bytes),
            comfortable_bytes: match flushes(run) {
                Some(0) => reserved_bytes(run)?,
                _ => history.ask(&history.question()).peak_reserved_bytes(),
            },
            outside_bytes,
            takes_smaller_workspaces: tight.largest_replaced_bytes > 0,
            flushes: tight.retries(),
            limit: memory_limit(run),
            is_estimate: tight.largest_unknown_replaced_bytes > smallest_bytes / MATTERS,
        })
    }

    /// The smallest card on which PyTorch can reserve this much.
    pub fn card_for(&self, reserved_bytes: u64) -> u64 {
        let by_limit = self.limit.map_or(0, |limit| {
            part(reserved_bytes, limit.total_bytes, limit.limit_bytes).saturating_add(1)
        });
        (reserved_bytes + self.outside_bytes).max(by_limit)
    }

    /// How much PyTorch can reserve on a card of this size.
    pub fn reserved_on(&self, card_bytes: u64) -> u64 {
        let by_limit = self.limit.map_or(u64::MAX, |limit| {
            part(card_bytes, limit.limit_bytes, limit.total_bytes)
        });
        card_bytes.saturating_sub(self.outside_bytes).min(by_limit)
    }

    /// What is on the card besides PyTorch's memory; `None` if other processes use the same card.
    pub fn outside_bytes_of(run: &Run) -> Option<u64> {
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
        let reserved = reserved_bytes(run)?;
        Some(findings.peak_device_bytes().saturating_sub(reserved))
    }
}

/// The limit that the script set for PyTorch on the card it uses.
pub(crate) fn memory_limit(run: &Run) -> Option<MemoryLimit> {
    let main = run.findings.main_process()?;
    let used = main
        .peaks
        .iter()
        .max_by_key(|peaks| peaks.peak_reserved_bytes)?;
    let mut limits = main.memory_limits.iter();
    let limit = limits.find(|limit| limit.device == used.device && limit.limit_bytes > 0);
    limit.copied()
}

/// `bytes` times `share` out of `whole`.
fn part(bytes: u64, share: u64, whole: u64) -> u64 {
    let product = u128::from(bytes) * u128::from(share);
    let part = product / u128::from(whole.max(1));
    u64::try_from(part).unwrap_or(u64::MAX)
}

/// The most that PyTorch reserved on a card.
fn reserved_bytes(run: &Run) -> Option<u64> {
    let peaks = run.findings.main_process()?.peaks.iter();
    peaks.map(|peaks| peaks.peak_reserved_bytes).max()
}

//! What the ledger says about one card, as far as the page shows it before anybody asks.

use ghostgpu_ledger::{CardLedger, Groups, Level, Moment, Overview, PhaseSums};
use ghostgpu_recording::{CardMemory, Failure, Recording};

/// An overview has at most this many stretches: more than any screen has columns of pixels.
const MOST_STRETCHES: usize = 16_384;

pub(super) struct Counted {
    pub overview: Overview,
    pub phases: Vec<PhaseSums>,
    /// The highest moments, those before the first event included.
    pub peak: Level,
    pub peak_reserved: Level,
    pub last_failure: Option<LastFailure>,
}

/// The last request that failed.
pub(super) struct LastFailure {
    pub event: u32,
    pub failure: Failure,
    /// What was reserved then.
    pub reserved_bytes: u64,
}

impl Counted {
    pub fn of(recording: &Recording, card: &CardMemory, groups: &Groups) -> Self {
        let ledger = CardLedger::new(recording, card);
        let last = card.failed_requests().next_back();
        Self {
            overview: ledger.overview(groups, MOST_STRETCHES),
            phases: ledger.phases(),
            peak: ledger.peak(),
            peak_reserved: ledger.peak_reserved(),
            last_failure: last.map(|(event, failure)| LastFailure {
                event,
                failure,
                reserved_bytes: ledger.reserved_bytes(Moment(event as usize)),
            }),
        }
    }
}

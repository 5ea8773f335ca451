//! The moment at which memory ran out.

use ghostgpu_recording::Failure;

use crate::accounts::Accounts;
use crate::card_ledger::CardLedger;
use crate::moment::Moment;
use crate::places::PlaceSum;

/// The last request that failed, and what held the card then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RanOut {
    pub event: u32,
    pub failure: Failure,
    /// PyTorch frees every unused segment before it gives up, so what is still cached could not serve the request.
    pub accounts: Accounts,
    /// The lines that held live memory, the largest first.
    pub lines: Vec<PlaceSum>,
}

/// Why a request could not be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedBecause {
    /// All unused memory together would not have been enough.
    Full,
    /// The unused memory would have been enough in one piece.
    Fragmented,
    /// The card had room for it, but PyTorch's own limit did not allow it.
    Limited,
}

/// The segments that PyTorch asks the driver for: a fixed size for small requests, else a multiple of one.
const SMALL_SEGMENT_BYTES: u64 = 2 << 20;
const LARGE_SEGMENT_BYTES: u64 = 20 << 20;
const LARGEST_SMALL_REQUEST_BYTES: u64 = 1 << 20;
const FEWEST_BYTES_OF_OWN_SEGMENT: u64 = 10 << 20;

impl RanOut {
    /// Why it failed; `None` if the recording does not say how much memory the driver had left.
    pub fn because(&self) -> Option<RefusedBecause> {
        let left = self.failure.driver_free_bytes?;
        let requested = self.failure.requested_bytes;
        let unused = left.saturating_add(self.accounts.cached_bytes());
        Some(match () {
            () if left >= segment_bytes(requested) => RefusedBecause::Limited,
            () if unused >= requested => RefusedBecause::Fragmented,
            () => RefusedBecause::Full,
        })
    }
}

/// The size of the segment that PyTorch would ask for to serve a request.
fn segment_bytes(requested: u64) -> u64 {
    if requested <= LARGEST_SMALL_REQUEST_BYTES {
        return SMALL_SEGMENT_BYTES;
    }
    if requested < FEWEST_BYTES_OF_OWN_SEGMENT {
        return LARGE_SEGMENT_BYTES;
    }
    let multiple = requested.checked_next_multiple_of(SMALL_SEGMENT_BYTES);
    multiple.unwrap_or(u64::MAX)
}

impl CardLedger<'_> {
    /// The last request that failed, if any.
    pub fn ran_out(&self) -> Option<RanOut> {
        let (event, failure) = self.card.failed_requests().next_back()?;
        let moment = Moment(event as usize);
        Some(RanOut {
            event,
            failure,
            accounts: self.accounts(moment),
            lines: self.by_place(moment),
        })
    }
}

#[cfg(test)]
mod tests {
    use ghostgpu_recording::Category;
    use ghostgpu_recording::made_up::ByHand;

    use super::*;

    fn failing(requested_bytes: u64, driver_free_bytes: Option<u64>) -> RanOut {
        let mut by_hand = ByHand::new();
        by_hand.allocate(3 << 20, Category::Parameter, Default::default());
        by_hand.allocate(1 << 20, Category::Activation, Default::default());
        let event = by_hand.card().fail(Failure {
            requested_bytes,
            driver_free_bytes,
            ..Failure::default()
        });
        by_hand.push(event);
        by_hand.allocate(1 << 20, Category::Input, Default::default());
        let recording = by_hand.recording;
        let ledger = CardLedger::new(&recording, &recording.cards[0]);
        ledger.ran_out().expect("a request failed")
    }

    #[test]
    fn what_held_the_card_is_what_was_live_when_the_request_failed() {
        let ran_out = failing(1 << 30, Some(0));
        assert_eq!(ran_out.accounts.requested_bytes(), 4 << 20);
        let held = ran_out.lines.iter().map(|line| line.held.requested_bytes());
        assert_eq!(held.sum::<u64>(), 4 << 20);
    }

    #[test]
    fn a_request_fails_because_the_card_is_full_fragmented_or_limited() {
        use RefusedBecause::{Fragmented, Full, Limited};
        for (requested, left, expected) in [
            (1 << 30, Some(1 << 20), Some(Full)),
            // A segment of 20 MiB has no room in 12.
            (3 << 20, Some(12 << 20), Some(Fragmented)),
            (3 << 20, Some(20 << 20), Some(Limited)),
            (30 << 20, Some(30 << 20), Some(Limited)),
            (u64::MAX, Some(1 << 20), Some(Full)),
            (1 << 20, None, None),
        ] {
            assert_eq!(failing(requested, left).because(), expected);
        }
    }
}

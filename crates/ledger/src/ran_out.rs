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
    /// PyTorch frees every unused segment before it gives up: what is cached still was of no use for the request.
    pub accounts: Accounts,
    /// The lines that held what was live; the largest first.
    pub lines: Vec<PlaceSum>,
}

impl RanOut {
    /// Whether everything unused together, in one piece, would have been enough; none where the recording does not say
    /// what the driver had left.
    pub fn is_fragmentation(&self) -> Option<bool> {
        let left = self.failure.driver_free_bytes?;
        let unused = left.saturating_add(self.accounts.cached_bytes());
        Some(unused >= self.failure.requested_bytes)
    }
}

impl CardLedger<'_> {
    /// The last request that failed; none if there was none.
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
    fn it_is_fragmentation_if_all_that_is_unused_would_have_been_enough() {
        for (requested, left, expected) in [
            (1 << 30, Some(1 << 20), Some(false)),
            (1 << 20, Some(1 << 20), Some(true)),
            (1 << 20, None, None),
        ] {
            assert_eq!(failing(requested, left).is_fragmentation(), expected);
        }
    }
}

//! What was allocated, freed and kept in every single phase.

use ghostgpu_recording::{Event, Phase};

use crate::card_ledger::CardLedger;
use crate::moment::Moment;
use crate::steps::intervals;
use crate::sweep::Sweep;

/// What one phase did, in block bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseSums {
    pub phase: Phase,
    /// Allocated when it began.
    pub before_bytes: u64,
    pub came_bytes: u64,
    pub went_bytes: u64,
    /// The part of `came_bytes` that was still live at its end.
    pub stayed_bytes: u64,
    /// The most that was allocated after one of its events, and the moment.
    pub peak_allocated_bytes: u64,
    pub peak: Moment,
}

impl CardLedger<'_> {
    /// The phases that have events, in their order.
    pub fn phases(&self) -> Vec<PhaseSums> {
        let mut sweep = Sweep::new(self.card);
        let mut all = Vec::new();
        for (interval, phase) in intervals(self.card).zip(&self.card.phases) {
            if interval.from == interval.to {
                continue;
            }
            let mut sums = PhaseSums {
                phase: *phase,
                before_bytes: sweep.state().allocated_bytes,
                came_bytes: 0,
                went_bytes: 0,
                stayed_bytes: 0,
                peak_allocated_bytes: 0,
                peak: Moment(interval.from.0 + 1),
            };
            let events = self.card.events.get(interval.from.0..interval.to.0);
            for event in events.unwrap_or_default() {
                self.count(&mut sums, *event, interval.to);
                let Some((moment, state)) = sweep.next() else {
                    break;
                };
                if state.allocated_bytes > sums.peak_allocated_bytes {
                    sums.peak_allocated_bytes = state.allocated_bytes;
                    sums.peak = moment;
                }
            }
            all.push(sums);
        }
        all
    }

    fn count(&self, sums: &mut PhaseSums, event: Event, end: Moment) {
        let (Event::Allocate(id) | Event::Free(id)) = event else {
            return;
        };
        let Some(one) = self.card.allocations.get(id.0 as usize) else {
            return;
        };
        if matches!(event, Event::Free(_)) {
            sums.went_bytes = sums.went_bytes.saturating_add(one.block_bytes);
            return;
        }
        sums.came_bytes = sums.came_bytes.saturating_add(one.block_bytes);
        if self.is_live(id, end) {
            sums.stayed_bytes = sums.stayed_bytes.saturating_add(one.block_bytes);
        }
    }
}

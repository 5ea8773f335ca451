//! How a card's memory changed over time, in as many stretches as a chart has room for.

use ghostgpu_recording::Event;

use crate::card_ledger::CardLedger;
use crate::groups::{Groups, MOST_GROUPS};
use crate::moment::Level;
use crate::sweep::Sweep;

/// A stretch of events, represented by its highest moment, so that no peak is lost when it is drawn as one pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The first moment in it with the most allocated memory.
    pub highest: Level,
    /// Requested bytes at that moment, by [group](Groups).
    pub requested: [u64; MOST_GROUPS],
    /// Peak reserved memory in it.
    pub highest_reserved_bytes: u64,
}

/// The whole recording after its first event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overview {
    /// A power of two.
    pub events_per_stretch: usize,
    /// At least one, which is the initial state if there are no events.
    pub stretches: Vec<Stretch>,
    /// The highest moments after an event. The state before the first event may be higher.
    pub peak: Level,
    pub peak_reserved: Level,
}

impl CardLedger<'_> {
    /// The card's memory in at most `most_stretches` stretches with the same number of events.
    pub fn overview(&self, groups: &Groups, most_stretches: usize) -> Overview {
        let events = self.card.events.len();
        let events_per_stretch = events
            .div_ceil(most_stretches.max(1))
            .max(1)
            .next_power_of_two();
        let mut stretches: Vec<Stretch> = Vec::with_capacity(events / events_per_stretch + 1);
        let source = self.recording.about.source;
        let mut peak: Option<Level> = None;
        let mut peak_reserved: Option<Level> = None;
        let mut requested = self.requested_before(groups);
        for (moment, state) in Sweep::new(self.card) {
            self.regroup(&mut requested, groups, moment.0 - 1);
            let level = state.level(moment);
            if peak.is_none_or(|peak| level.height(source) > peak.height(source)) {
                peak = Some(level);
            }
            if peak_reserved.is_none_or(|peak| level.reserved_bytes > peak.reserved_bytes) {
                peak_reserved = Some(level);
            }
            if (moment.0 - 1).is_multiple_of(events_per_stretch) {
                stretches.push(Stretch {
                    highest: level,
                    requested,
                    highest_reserved_bytes: level.reserved_bytes,
                });
            } else if let Some(stretch) = stretches.last_mut() {
                if level.allocated_bytes > stretch.highest.allocated_bytes {
                    (stretch.highest, stretch.requested) = (level, requested);
                }
                stretch.highest_reserved_bytes =
                    stretch.highest_reserved_bytes.max(level.reserved_bytes);
            }
        }
        if stretches.is_empty() {
            stretches.push(Stretch {
                highest: self.start(),
                requested,
                highest_reserved_bytes: self.start().reserved_bytes,
            });
        }
        Overview {
            events_per_stretch,
            stretches,
            peak: peak.unwrap_or(self.start()),
            peak_reserved: peak_reserved.unwrap_or(self.start()),
        }
    }

    fn requested_before(&self, groups: &Groups) -> [u64; MOST_GROUPS] {
        let mut requested = [0_u64; MOST_GROUPS];
        let all = self.card.allocations.iter();
        for older in all.filter(|one| one.allocated_at.is_none()) {
            let sum = &mut requested[groups.group(older)];
            *sum = sum.saturating_add(older.requested_bytes);
        }
        requested
    }

    /// Adds or subtracts what an event allocates or frees.
    fn regroup(&self, requested: &mut [u64; MOST_GROUPS], groups: &Groups, event: usize) {
        let Some(Event::Allocate(id) | Event::Free(id)) = self.card.events.get(event) else {
            return;
        };
        let Some(one) = self.card.allocations.get(id.0 as usize) else {
            return;
        };
        let sum = &mut requested[groups.group(one)];
        *sum = match self.card.events[event] {
            Event::Allocate(_) => sum.saturating_add(one.requested_bytes),
            _ => sum.saturating_sub(one.requested_bytes),
        };
    }
}

//! The ranges of memory that the allocator has from the driver at a moment.

use std::collections::BTreeMap;

use ghostgpu_recording::{CardMemory, Event, SegmentChange};

use crate::ledger::Moment;

/// Ranges as they were reserved, without what was given back of them.
///
/// Neighbours stay apart: two segments may touch, and each goes back to the driver by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReservedRanges {
    /// Ends by beginning.
    ranges: BTreeMap<u64, u64>,
}

impl ReservedRanges {
    /// What is reserved at a moment.
    pub fn at(card: &CardMemory, moment: Moment) -> Self {
        let mut reserved = Self::default();
        for change in &card.reserved_before {
            reserved.reserve(*change);
        }
        for event in card.events.iter().take(moment.0) {
            match event {
                Event::Reserve(change) => reserved.reserve(*change),
                Event::Release(change) => reserved.release(*change),
                _ => {}
            }
        }
        reserved
    }

    pub fn reserve(&mut self, change: SegmentChange) {
        if change.bytes > 0 {
            // A range that is reserved twice is there once.
            self.release(change);
            let end = change.address.saturating_add(change.bytes);
            self.ranges.insert(change.address, end);
        }
    }

    /// Takes a range away: whole ranges, or a part of one (pages of an expandable segment).
    pub fn release(&mut self, change: SegmentChange) {
        let (from, to) = (change.address, change.address.saturating_add(change.bytes));
        let before = self.ranges.range(..from).next_back();
        if let Some((&begin, &end)) = before.filter(|(_, end)| **end > from) {
            self.ranges.insert(begin, from);
            if end > to {
                self.ranges.insert(to, end);
            }
        }
        while let Some((&begin, &end)) = self.ranges.range(from..to).next() {
            self.ranges.remove(&begin);
            if end > to {
                self.ranges.insert(to, end);
            }
        }
    }

    /// Beginnings and ends, in the order of addresses.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().map(|(begin, end)| (*begin, *end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(address: u64, bytes: u64) -> SegmentChange {
        SegmentChange { address, bytes }
    }

    #[test]
    fn ranges_stay_apart_until_they_are_given_back_whole_or_in_part() {
        let mut reserved = ReservedRanges::default();
        reserved.reserve(change(0, 10));
        reserved.reserve(change(10, 10));
        reserved.reserve(change(40, 20));
        assert_eq!(
            reserved.iter().collect::<Vec<_>>(),
            [(0, 10), (10, 20), (40, 60)]
        );
        reserved.release(change(5, 10));
        assert_eq!(
            reserved.iter().collect::<Vec<_>>(),
            [(0, 5), (15, 20), (40, 60)]
        );
        reserved.release(change(45, 5));
        assert_eq!(
            reserved.iter().collect::<Vec<_>>(),
            [(0, 5), (15, 20), (40, 45), (50, 60)]
        );
        reserved.release(change(0, 100));
        assert_eq!(reserved.iter().count(), 0);
    }
}

//! The ranges of memory that the allocator has reserved from the driver.

use std::collections::BTreeMap;

use crate::events::SegmentChange;

/// Ranges as they were reserved, without the parts that were released.
///
/// Adjacent ranges are not merged: two segments may touch, and each is released on its own, like each page of an
/// expandable segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReservedRanges {
    /// By address; none overlap.
    ranges: BTreeMap<u64, SegmentChange>,
}

impl ReservedRanges {
    pub fn reserve(&mut self, change: SegmentChange) {
        if change.bytes > 0 {
            // A range that is reserved twice is kept once.
            self.release(change);
            self.ranges.insert(change.address, change);
        }
    }

    /// Removes a range: whole ranges, or a part of one (pages of an expandable segment).
    pub fn release(&mut self, change: SegmentChange) {
        let (from, to) = (change.address, change.address.saturating_add(change.bytes));
        let before = self.ranges.range(..from).next_back();
        if let Some((_, &range)) = before.filter(|(_, range)| range.end() > from) {
            self.insert(range, range.address, from);
            self.insert(range, to, range.end());
        }
        while let Some((&begin, &range)) = self.ranges.range(from..to).next() {
            self.ranges.remove(&begin);
            self.insert(range, to, range.end());
        }
    }

    /// Inserts the part of a range from `from` to `to`, unless it is empty.
    fn insert(&mut self, range: SegmentChange, from: u64, to: u64) {
        if from < to {
            let part = SegmentChange {
                address: from,
                bytes: to - from,
                ..range
            };
            self.ranges.insert(from, part);
        }
    }

    /// The range that contains an address.
    pub fn around(&self, address: u64) -> Option<&SegmentChange> {
        let before = self.ranges.range(..=address).next_back();
        before
            .map(|(_, range)| range)
            .filter(|range| address < range.end())
    }

    /// In the order of addresses.
    pub fn iter(&self) -> impl Iterator<Item = &SegmentChange> + '_ {
        self.ranges.values()
    }
}

impl SegmentChange {
    /// The address after its last byte.
    pub fn end(&self) -> u64 {
        self.address.saturating_add(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(address: u64, bytes: u64) -> SegmentChange {
        SegmentChange {
            address,
            bytes,
            ..SegmentChange::default()
        }
    }

    #[test]
    fn ranges_stay_apart_until_they_are_given_back_whole_or_in_part() {
        let mut reserved = ReservedRanges::default();
        let check = |reserved: &ReservedRanges, expected: &[(u64, u64)]| {
            let found: Vec<(u64, u64)> = reserved
                .iter()
                .map(|one| (one.address, one.end()))
                .collect();
            assert_eq!(found, expected);
        };
        reserved.reserve(change(0, 10));
        reserved.reserve(change(10, 10));
        reserved.reserve(change(40, 20));
        check(&reserved, &[(0, 10), (10, 20), (40, 60)]);
        reserved.release(change(5, 10));
        check(&reserved, &[(0, 5), (15, 20), (40, 60)]);
        reserved.release(change(45, 5));
        check(&reserved, &[(0, 5), (15, 20), (40, 45), (50, 60)]);
        reserved.release(change(0, 100));
        check(&reserved, &[]);
    }
}

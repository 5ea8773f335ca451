//! Ranges of reserved memory by address: ordinary segments are whole, expandable ones grow, shrink and
//! join.

use std::collections::BTreeMap;

use crate::ids::{PoolId, PoolKind, StreamId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) stream: StreamId,
    /// Where it is known.
    pub(super) pool: Option<PoolId>,
    pub(super) kind: Option<PoolKind>,
    pub(super) is_expandable: bool,
}

impl Range {
    pub(super) fn bytes(&self) -> u64 {
        self.end - self.start
    }

    /// Both are parts of one expandable segment, as far as one can see.
    fn joins(&self, other: &Self) -> bool {
        self.is_expandable
            && other.is_expandable
            && self.stream == other.stream
            && (self.pool == other.pool || self.pool.is_none() || other.pool.is_none())
            && (self.kind == other.kind || self.kind.is_none() || other.kind.is_none())
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    by_start: BTreeMap<u64, Range>,
}

impl Ranges {
    pub(super) fn len(&self) -> usize {
        self.by_start.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Range> {
        self.by_start.values()
    }

    /// The range in which an address lies.
    pub(super) fn containing(&self, address: u64) -> Option<&Range> {
        let (_, range) = self.by_start.range(..=address).next_back()?;
        (address < range.end).then_some(range)
    }

    /// Enters a range; whether its addresses were free.
    pub(super) fn insert(&mut self, mut range: Range) -> bool {
        let below = self.by_start.range(..range.end).next_back();
        if range.start >= range.end || below.is_some_and(|(_, below)| below.end > range.start) {
            return false;
        }
        if range.is_expandable {
            let before = self.by_start.range(..range.start).next_back();
            if let Some((&start, before)) = before
                && before.end == range.start
                && before.joins(&range)
            {
                range.start = start;
                range.pool = range.pool.or(before.pool);
                range.kind = range.kind.or(before.kind);
            }
            if let Some(after) = self.by_start.get(&range.end).copied()
                && after.joins(&range)
            {
                self.by_start.remove(&range.end);
                range.end = after.end;
                range.pool = range.pool.or(after.pool);
                range.kind = range.kind.or(after.kind);
            }
        }
        self.by_start.insert(range.start, range);
        true
    }

    /// Takes addresses out of the range that has them all; returns that range as it was.
    pub(super) fn remove(&mut self, start: u64, end: u64) -> Option<Range> {
        let whole = *self.containing(start)?;
        if end > whole.end || (!whole.is_expandable && (start, end) != (whole.start, whole.end)) {
            return None;
        }
        self.by_start.remove(&whole.start);
        if whole.start < start {
            self.by_start.insert(
                whole.start,
                Range {
                    end: start,
                    ..whole
                },
            );
        }
        if end < whole.end {
            self.by_start.insert(
                end,
                Range {
                    start: end,
                    ..whole
                },
            );
        }
        Some(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64, is_expandable: bool) -> Range {
        Range {
            start,
            end,
            stream: StreamId::DEFAULT,
            pool: None,
            kind: None,
            is_expandable,
        }
    }

    #[test]
    fn expandable_ranges_join_and_part() {
        let mut ranges = Ranges::default();
        ranges.insert(range(0, 10, true));
        ranges.insert(range(20, 30, true));
        ranges.insert(range(10, 20, true));
        assert_eq!(ranges.len(), 1);
        assert!(ranges.remove(5, 25).is_some());
        assert_eq!(ranges.len(), 2);
        assert!(ranges.containing(4).is_some());
        assert!(ranges.containing(5).is_none());
        assert!(ranges.containing(25).is_some());
    }

    #[test]
    fn ordinary_segments_stay_apart_and_whole() {
        let mut ranges = Ranges::default();
        ranges.insert(range(0, 10, false));
        ranges.insert(range(10, 20, false));
        assert_eq!(ranges.len(), 2);
        assert!(ranges.remove(0, 5).is_none());
        assert!(ranges.remove(0, 10).is_some());
    }
}

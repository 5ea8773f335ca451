//! The free parts of an address range, neighbours merged, ordered by age.

use std::collections::{BTreeMap, BTreeSet};

/// Like [`Holes`](crate::holes::Holes), except that the oldest of several equal holes is chosen. A hole's age counts
/// from its last change.
#[derive(Debug, Default)]
pub struct AgedHoles {
    /// Start to length and number.
    by_start: BTreeMap<u64, (u64, u64)>,
    /// Length, number, start.
    by_length: BTreeSet<(u64, u64, u64)>,
    made: u64,
}

impl AgedHoles {
    /// The start of the smallest hole of at least `len`; of several, the oldest.
    pub fn smallest_fitting(&self, len: u64) -> Option<u64> {
        let fitting = self.by_length.range((len, 0, 0)..).next();
        fitting.map(|&(_, _, start)| start)
    }

    /// Takes the first `len` addresses of the hole that starts at `start` and is at least that long.
    pub fn fill(&mut self, start: u64, len: u64) {
        if let Some(hole) = self.remove(start)
            && hole > len
        {
            self.insert(start + len, hole - len);
        }
    }

    /// Makes a taken range free again.
    pub fn open(&mut self, start: u64, len: u64) {
        let (mut merged_start, mut end) = (start, start + len);
        if let Some(after) = self.remove(end) {
            end += after;
        }
        if let Some((&before, &(before_len, _))) = self.by_start.range(..start).next_back()
            && before + before_len == start
        {
            self.remove(before);
            merged_start = before;
        }
        self.insert(merged_start, end - merged_start);
    }

    /// Removes all holes, and returns start and length of each, newest first.
    pub fn take_all(&mut self) -> Vec<(u64, u64)> {
        self.by_length.clear();
        let mut holes: Vec<_> = std::mem::take(&mut self.by_start).into_iter().collect();
        holes.sort_unstable_by_key(|&(_, (_, number))| std::cmp::Reverse(number));
        let without_number = |(start, (len, _))| (start, len);
        holes.into_iter().map(without_number).collect()
    }

    fn insert(&mut self, start: u64, len: u64) {
        self.made += 1;
        self.by_start.insert(start, (len, self.made));
        self.by_length.insert((len, self.made, start));
    }

    fn remove(&mut self, start: u64) -> Option<u64> {
        let (len, number) = self.by_start.remove(&start)?;
        self.by_length.remove(&(len, number, start));
        Some(len)
    }
}

#[cfg(test)]
mod tests {
    use super::AgedHoles;

    #[test]
    fn the_oldest_of_equal_holes_is_taken_and_a_change_makes_a_hole_young() {
        let mut holes = AgedHoles::default();
        holes.open(300, 10);
        holes.open(100, 10);
        holes.open(200, 20);
        assert_eq!(holes.smallest_fitting(5), Some(300));
        holes.fill(200, 10);
        holes.fill(300, 10);
        holes.open(300, 10);
        assert_eq!(holes.smallest_fitting(10), Some(100));
        assert_eq!(holes.smallest_fitting(11), None);
        assert_eq!(holes.take_all(), [(300, 10), (210, 10), (100, 10)]);
        assert_eq!(holes.smallest_fitting(1), None);
    }

    #[test]
    fn neighbours_merge_on_both_sides() {
        let mut holes = AgedHoles::default();
        holes.open(0, 10);
        holes.open(20, 10);
        holes.open(10, 10);
        assert_eq!(holes.take_all(), [(0, 30)]);
    }
}

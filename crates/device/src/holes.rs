//! The free parts of an address range, neighbours merged.

use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub struct Holes {
    /// Start to length.
    by_start: BTreeMap<u64, u64>,
}

impl Holes {
    /// One hole of `len` addresses starting at `start`.
    pub fn one(start: u64, len: u64) -> Self {
        let mut holes = Self::default();
        if len > 0 {
            holes.by_start.insert(start, len);
        }
        holes
    }

    /// All holes in ascending order: start and length.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.by_start.iter().map(|(&start, &len)| (start, len))
    }

    /// Whether the only hole is this one.
    pub fn is_just(&self, start: u64, len: u64) -> bool {
        self.by_start.get(&start) == Some(&len)
    }

    /// The start of the smallest hole of at least `len`; of several, the lowest.
    pub fn smallest_fitting(&self, len: u64) -> Option<u64> {
        let fitting = self.iter().filter(|&(_, hole)| hole >= len);
        fitting
            .min_by_key(|&(start, hole)| (hole, start))
            .map(|(start, _)| start)
    }

    /// Takes `len` addresses starting at `address` if a single hole contains all of them; returns whether it did.
    pub fn fill(&mut self, address: u64, len: u64) -> bool {
        let Some((&start, &hole)) = self.by_start.range(..=address).next_back() else {
            return false;
        };
        let Some(end) = address.checked_add(len) else {
            return false;
        };
        let hole_end = start + hole;
        if end > hole_end {
            return false;
        }
        self.by_start.remove(&start);
        if address > start {
            self.by_start.insert(start, address - start);
        }
        if hole_end > end {
            self.by_start.insert(end, hole_end - end);
        }
        true
    }

    /// Makes a taken range free again.
    pub fn open(&mut self, address: u64, len: u64) {
        let (mut start, mut end) = (address, address + len);
        if let Some((&before, &before_len)) = self.by_start.range(..address).next_back()
            && before + before_len == address
        {
            self.by_start.remove(&before);
            start = before;
        }
        if let Some(after_len) = self.by_start.remove(&end) {
            end += after_len;
        }
        self.by_start.insert(start, end - start);
    }
}

#[cfg(test)]
mod tests {
    use super::Holes;
    use proptest::prelude::*;

    #[test]
    fn a_range_is_refused_when_part_of_it_is_taken() {
        let mut holes = Holes::one(0, 100);
        assert!(holes.fill(20, 10));
        assert!(!holes.fill(15, 6));
        assert!(holes.fill(30, 70));
        assert!(!holes.fill(100, 1));
        assert_eq!(holes.iter().collect::<Vec<_>>(), [(0, 20)]);
    }

    proptest! {
        #[test]
        fn opening_everything_again_leaves_one_hole(
            sizes in proptest::collection::vec(1u64..50, 1..40),
            order in proptest::collection::vec(any::<prop::sample::Index>(), 40),
        ) {
            let mut holes = Holes::one(64, 4096);
            let mut taken: Vec<(u64, u64)> = Vec::new();
            for size in sizes {
                let address = holes.smallest_fitting(size).unwrap();
                prop_assert!(holes.fill(address, size));
                for &(other, len) in &taken {
                    prop_assert!(address + size <= other || other + len <= address);
                }
                taken.push((address, size));
            }
            for pick in order {
                if taken.is_empty() { break; }
                let (address, len) = taken.swap_remove(pick.index(taken.len()));
                holes.open(address, len);
            }
            for (address, len) in taken {
                holes.open(address, len);
            }
            prop_assert!(holes.is_just(64, 4096));
        }
    }
}

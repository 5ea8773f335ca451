//! The free blocks of one pool and stream, in order: bins by size, and a map of bits that says which
//! of them have something.
//!
//! Up to 2 MiB every multiple of 512 bytes has a bin of its own; above, each power of two has 64 of
//! them. A search takes two steps through the bits to the first bin that has something. The first
//! block of a bin is in the bin itself, so that best fit mostly touches one cache line; the others
//! are a [`Tree`].

use super::entry::Entry;
use super::trees::{Nodes, Tree};

const UNIT_SHIFT: u32 = 9;
/// Bins with one size each.
const EXACT: usize = 4096;
const EXACT_SHIFT: u32 = EXACT.trailing_zeros();
/// Bins per power of two above.
const PARTS_SHIFT: u32 = 6;
const PARTS: usize = 1 << PARTS_SHIFT;
const BINS: usize = EXACT + (64 - (UNIT_SHIFT + EXACT_SHIFT) as usize) * PARTS;
const WORDS: usize = BINS.div_ceil(64);

#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
struct Bin {
    /// Valid if the bin's bit is set.
    first: Entry,
    rest: Tree,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct SizeBins {
    /// Made with the first entry, or before.
    bins: Vec<Bin>,
    /// One bit per bin that has something, and one per word that is not 0.
    bits: Vec<u64>,
    summary: [u64; WORDS.div_ceil(64)],
}

/// The bin of a size. Larger sizes never have smaller bins.
#[inline]
fn bin_of(size: u64) -> usize {
    let units = size >> UNIT_SHIFT;
    if units < EXACT as u64 {
        return units as usize;
    }
    let log2 = 63 - units.leading_zeros();
    let part = (units >> (log2 - PARTS_SHIFT)) as usize & (PARTS - 1);
    EXACT + ((log2 - EXACT_SHIFT) as usize) * PARTS + part
}

/// The lowest bit that is set in a word, from `from` on.
#[inline]
fn bit_from(word: u64, from: u32) -> Option<u32> {
    let rest = word & (u64::MAX << from);
    (rest != 0).then(|| rest.trailing_zeros())
}

/// The highest bit that is set in a word below `end`.
#[inline]
fn bit_before(word: u64, end: u32) -> Option<u32> {
    let rest = if end >= 64 {
        word
    } else {
        word & !(u64::MAX << end)
    };
    (rest != 0).then(|| 63 - rest.leading_zeros())
}

impl SizeBins {
    pub(crate) fn is_empty(&self) -> bool {
        self.summary.iter().all(|&word| word == 0)
    }

    pub(crate) fn iter<'a>(&'a self, nodes: &'a Nodes) -> impl Iterator<Item = Entry> + 'a {
        let bins = std::iter::successors(self.bin_from(0), |&bin| self.bin_from(bin + 1));
        bins.flat_map(|bin| {
            let Bin { first, rest } = self.bins[bin];
            std::iter::once(first).chain(nodes.iter(rest))
        })
    }

    #[inline]
    fn is_marked(&self, bin: usize) -> bool {
        self.bits[bin / 64] >> (bin % 64) & 1 == 1
    }

    #[inline]
    fn mark(&mut self, bin: usize) {
        self.bits[bin / 64] |= 1 << (bin % 64);
        self.summary[bin / 4096] |= 1 << (bin / 64 % 64);
    }

    #[inline]
    fn unmark(&mut self, bin: usize) {
        self.bits[bin / 64] &= !(1 << (bin % 64));
        if self.bits[bin / 64] == 0 {
            self.summary[bin / 4096] &= !(1 << (bin / 64 % 64));
        }
    }

    /// The first bin from `bin` on that has something.
    #[inline]
    fn bin_from(&self, bin: usize) -> Option<usize> {
        let word = bin / 64;
        if let Some(bit) = bit_from(*self.bits.get(word)?, (bin % 64) as u32) {
            return Some(word * 64 + bit as usize);
        }
        let next = word + 1;
        for (index, &summary) in self.summary.iter().enumerate().skip(next / 64) {
            let from = if index == next / 64 { next % 64 } else { 0 };
            if let Some(bit) = bit_from(summary, from as u32) {
                let word = index * 64 + bit as usize;
                return Some(word * 64 + self.bits[word].trailing_zeros() as usize);
            }
        }
        None
    }

    /// The last bin before `bin` that has something.
    fn bin_before(&self, bin: usize) -> Option<usize> {
        let word = bin / 64;
        let here = self
            .bits
            .get(word)
            .and_then(|&bits| bit_before(bits, (bin % 64) as u32));
        if let Some(bit) = here {
            return Some(word * 64 + bit as usize);
        }
        for (index, &summary) in self.summary.iter().enumerate().rev() {
            let end = word.saturating_sub(index * 64).min(64) as u32;
            if let Some(bit) = bit_before(summary, end) {
                let word = index * 64 + bit as usize;
                return Some(word * 64 + 63 - self.bits[word].leading_zeros() as usize);
            }
        }
        None
    }

    #[inline]
    pub(crate) fn insert(&mut self, nodes: &mut Nodes, entry: Entry) {
        if self.bins.is_empty() {
            self.make_bins();
        }
        let number = bin_of(entry.size);
        let is_marked = self.is_marked(number);
        let bin = &mut self.bins[number];
        if !is_marked {
            bin.first = entry;
            self.mark(number);
        } else if entry.is_before(&bin.first) {
            let second = std::mem::replace(&mut bin.first, entry);
            nodes.insert(&mut bin.rest, second);
        } else {
            nodes.insert(&mut bin.rest, entry);
        }
    }

    /// Makes the bins, if they are not there, before they are needed.
    #[cold]
    pub(crate) fn make_bins(&mut self) {
        if self.bins.is_empty() {
            self.bins = vec![Bin::default(); BINS];
            self.bits = vec![0; WORDS];
        }
    }

    /// Removes an entry; whether it was there.
    #[inline]
    pub(crate) fn remove(&mut self, nodes: &mut Nodes, entry: &Entry) -> bool {
        let number = bin_of(entry.size);
        if self.bins.is_empty() || !self.is_marked(number) {
            return false;
        }
        let bin = &mut self.bins[number];
        if !bin.first.is_same_key(entry) {
            return nodes.remove(&mut bin.rest, entry);
        }
        match nodes.pop_first(&mut bin.rest) {
            Some(second) => bin.first = second,
            None => self.unmark(number),
        }
        true
    }

    /// The first entry that is not before `key`.
    #[inline]
    pub(crate) fn first_not_before(&self, nodes: &Nodes, key: &Entry) -> Option<Entry> {
        let home = bin_of(key.size);
        let found = self.bin_from(home)?;
        let bin = &self.bins[found];
        if found > home || !bin.first.is_before(key) {
            return Some(bin.first);
        }
        let in_rest = nodes.first_not_before(bin.rest, key);
        in_rest.or_else(|| Some(self.bins[self.bin_from(home + 1)?].first))
    }

    /// The first entry after one that is there.
    pub(crate) fn after(&self, nodes: &Nodes, entry: &Entry) -> Option<Entry> {
        let home = bin_of(entry.size);
        let in_rest = nodes.first_after(self.bins.get(home)?.rest, entry);
        in_rest.or_else(|| Some(self.bins[self.bin_from(home + 1)?].first))
    }

    /// The last entry before one that is there.
    pub(crate) fn before(&self, nodes: &Nodes, entry: &Entry) -> Option<Entry> {
        let home = bin_of(entry.size);
        let bin = self.bins.get(home)?;
        if bin.first.is_before(entry) {
            let in_rest = nodes.last_before(bin.rest, entry);
            return Some(in_rest.unwrap_or(bin.first));
        }
        self.last_in(nodes, self.bin_before(home)?)
    }

    fn last_in(&self, nodes: &Nodes, bin: usize) -> Option<Entry> {
        let bin = self.bins.get(bin)?;
        Some(nodes.last(bin.rest).unwrap_or(bin.first))
    }

    pub(crate) fn last(&self, nodes: &Nodes) -> Option<Entry> {
        self.last_in(nodes, self.bin_before(WORDS * 64)?)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn key(entry: Entry) -> (u64, u32, u64) {
        (entry.size, entry.rank, entry.address)
    }

    /// Sizes of few bins, so that some of them fill up, and of far ones.
    fn size() -> impl Strategy<Value = u64> {
        prop_oneof![
            Just(512),
            (1_u64..40).prop_map(|units| units * 512),
            (0_u64..40).prop_map(|units| (2 << 20) + units * 512),
            (9_u32..60).prop_map(|power| 1 << power),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn it_behaves_like_an_ordered_set(
            operations in prop::collection::vec((0_u8..5, size(), 0_u32..3, 0_u64..400), 1..3000)
        ) {
            let (mut set, mut nodes) = (SizeBins::default(), Nodes::default());
            let mut model = BTreeSet::new();
            for (what, size, rank, address) in operations {
                let entry = Entry { size, address, rank, block: 7 };
                if what > 1 {
                    if model.insert(key(entry)) {
                        set.insert(&mut nodes, entry);
                    }
                } else {
                    prop_assert_eq!(set.remove(&mut nodes, &entry), model.remove(&key(entry)));
                }
                let found = set.first_not_before(&nodes, &entry).map(key);
                prop_assert_eq!(found, model.range(key(entry)..).next().copied());
            }
            let expected: Vec<_> = model.iter().copied().collect();
            prop_assert_eq!(&set.iter(&nodes).map(key).collect::<Vec<_>>(), &expected);
            let backwards = std::iter::successors(set.last(&nodes), |here| set.before(&nodes, here));
            prop_assert!(backwards.map(key).eq(expected.iter().rev().copied()));
            let first = set.first_not_before(&nodes, &Entry::default());
            let forwards = std::iter::successors(first, |here| set.after(&nodes, here));
            prop_assert!(forwards.map(key).eq(expected));
            while let Some(last) = set.last(&nodes) {
                set.remove(&mut nodes, &last);
            }
            prop_assert!(set.is_empty());
        }
    }

    #[test]
    fn larger_sizes_never_have_smaller_bins() {
        let mut sizes: Vec<u64> = (0..64)
            .flat_map(|power| [1_u64 << power, (1 << power) - 1])
            .collect();
        sizes.extend((0..5000).map(|units| units * 512));
        sizes.push(u64::MAX);
        sizes.sort_unstable();
        let bins: Vec<usize> = sizes.iter().map(|&size| bin_of(size)).collect();
        assert!(bins.is_sorted());
        assert!(bins.iter().all(|&bin| bin < BINS));
    }
}

//! The free blocks of one pool and stream, in order: bins by size, and a map of bits that says which
//! of them have something.
//!
//! Up to 2 MiB every multiple of 512 bytes has a bin of its own; above, each power of two has 64 of
//! them. A search looks into one bin and then, by two steps through the bits, into the next one that is
//! not empty. Bins are small sorted arrays; the rare one with hundreds of equal blocks becomes an
//! [`OrderedSet`]. What has reached its size never allocates.

use super::ordered_set::{self, Entry, OrderedSet};

const UNIT_SHIFT: u32 = 9;
/// Bins with one size each.
const EXACT: usize = 4096;
const EXACT_SHIFT: u32 = EXACT.trailing_zeros();
/// Bins per power of two above.
const PARTS_SHIFT: u32 = 6;
const PARTS: usize = 1 << PARTS_SHIFT;
const BINS: usize = EXACT + (64 - (UNIT_SHIFT + EXACT_SHIFT) as usize) * PARTS;
const WORDS: usize = BINS.div_ceil(64);
/// Beyond this a bin is kept in pieces.
const FEW: usize = 192;

#[derive(Clone, Debug)]
enum Bin {
    Few(Vec<Entry>),
    Many(Box<OrderedSet>),
}

/// Where an entry stands, until the set is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    bin: u32,
    inside: ordered_set::Position,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct SizeBins {
    /// Made with the first entry.
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

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        let mut bin = self.bin_from(0);
        std::iter::from_fn(move || {
            let here = bin?;
            bin = self.bin_from(here + 1);
            Some(&self.bins[here])
        })
        .flat_map(Bin::entries)
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
    pub(crate) fn insert(&mut self, entry: Entry) {
        if self.bins.is_empty() {
            self.make_bins();
        }
        let bin = bin_of(entry.size);
        self.bins[bin].insert(entry);
        self.mark(bin);
    }

    #[cold]
    fn make_bins(&mut self) {
        self.bins = vec![Bin::Few(Vec::new()); BINS];
        self.bits = vec![0; WORDS];
    }

    /// Takes an entry out; whether it was there.
    #[inline]
    pub(crate) fn remove(&mut self, entry: &Entry) -> bool {
        let number = bin_of(entry.size);
        let Some(bin) = self.bins.get_mut(number) else {
            return false;
        };
        let (found, is_empty) = bin.remove(entry);
        if is_empty {
            self.unmark(number);
        }
        found
    }

    #[inline]
    pub(crate) fn remove_at(&mut self, position: Position) -> Entry {
        let number = position.bin as usize;
        let (entry, is_empty) = self.bins[number].remove_at(position.inside);
        if is_empty {
            self.unmark(number);
        }
        entry
    }

    /// The first entry that is not before `key`.
    #[inline]
    pub(crate) fn first_not_before(&self, key: &Entry) -> Option<Position> {
        let bin = bin_of(key.size);
        if let Some(inside) = self.bins.get(bin)?.first_not_before(key) {
            return Some(Position {
                bin: bin as u32,
                inside,
            });
        }
        self.first_in(self.bin_from(bin + 1)?)
    }

    #[inline]
    fn first_in(&self, bin: usize) -> Option<Position> {
        Some(Position {
            bin: bin as u32,
            inside: ordered_set::Position::FIRST,
        })
    }

    fn last_in(&self, bin: usize) -> Option<Position> {
        let inside = self.bins[bin].last()?;
        Some(Position {
            bin: bin as u32,
            inside,
        })
    }

    pub(crate) fn last(&self) -> Option<Position> {
        self.last_in(self.bin_before(WORDS * 64)?)
    }

    #[inline]
    pub(crate) fn at(&self, position: Position) -> Entry {
        self.bins[position.bin as usize].at(position.inside)
    }

    pub(crate) fn after(&self, position: Position) -> Option<Position> {
        let bin = position.bin as usize;
        match self.bins[bin].after(position.inside) {
            Some(inside) => Some(Position { inside, ..position }),
            None => self.first_in(self.bin_from(bin + 1)?),
        }
    }

    pub(crate) fn before(&self, position: Position) -> Option<Position> {
        let bin = position.bin as usize;
        match self.bins[bin].before(position.inside) {
            Some(inside) => Some(Position { inside, ..position }),
            None => self.last_in(self.bin_before(bin)?),
        }
    }
}

impl Bin {
    fn entries(&self) -> impl Iterator<Item = &Entry> {
        let (few, many) = match self {
            Self::Few(entries) => (entries.as_slice(), None),
            Self::Many(set) => (&[][..], Some(set.iter())),
        };
        few.iter().chain(many.into_iter().flatten())
    }

    #[inline]
    fn insert(&mut self, entry: Entry) {
        match self {
            Self::Few(entries) => {
                let index = ordered_set::place_of(entries, &entry);
                entries.insert(index, entry);
                if entries.len() > FEW {
                    self.become_many();
                }
            }
            Self::Many(set) => set.insert(entry),
        }
    }

    #[cold]
    fn become_many(&mut self) {
        if let Self::Few(entries) = self {
            let mut set = OrderedSet::default();
            entries.drain(..).for_each(|entry| set.insert(entry));
            *self = Self::Many(Box::new(set));
        }
    }

    /// Whether the entry was there, and whether the bin is empty now.
    #[inline]
    fn remove(&mut self, entry: &Entry) -> (bool, bool) {
        match self {
            Self::Few(entries) => {
                let index = ordered_set::place_of(entries, entry);
                let found = entries
                    .get(index)
                    .is_some_and(|other| other.is_same_key(entry));
                if found {
                    entries.remove(index);
                }
                (found, entries.is_empty())
            }
            Self::Many(set) => (set.remove(entry), set.is_empty()),
        }
    }

    #[inline]
    fn remove_at(&mut self, position: ordered_set::Position) -> (Entry, bool) {
        match self {
            Self::Few(entries) => {
                let entry = entries.remove(position.index());
                (entry, entries.is_empty())
            }
            Self::Many(set) => (set.remove_at(position), set.is_empty()),
        }
    }

    #[inline]
    fn first_not_before(&self, key: &Entry) -> Option<ordered_set::Position> {
        match self {
            Self::Few(entries) => {
                let index = ordered_set::place_of(entries, key);
                (index < entries.len()).then(|| ordered_set::Position::of(index))
            }
            Self::Many(set) => set.first_not_before(key),
        }
    }

    fn last(&self) -> Option<ordered_set::Position> {
        match self {
            Self::Few(entries) => entries.len().checked_sub(1).map(ordered_set::Position::of),
            Self::Many(set) => set.last(),
        }
    }

    #[inline]
    fn at(&self, position: ordered_set::Position) -> Entry {
        match self {
            Self::Few(entries) => entries[position.index()],
            Self::Many(set) => set.at(position),
        }
    }

    fn after(&self, position: ordered_set::Position) -> Option<ordered_set::Position> {
        match self {
            Self::Few(entries) => {
                let next = position.index() + 1;
                (next < entries.len()).then(|| ordered_set::Position::of(next))
            }
            Self::Many(set) => set.after(position),
        }
    }

    fn before(&self, position: ordered_set::Position) -> Option<ordered_set::Position> {
        match self {
            Self::Few(_) => position
                .index()
                .checked_sub(1)
                .map(ordered_set::Position::of),
            Self::Many(set) => set.before(position),
        }
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
            let mut set = SizeBins::default();
            let mut model = BTreeSet::new();
            for (what, size, rank, address) in operations {
                let entry = Entry { size, address, rank, block: 7 };
                if what > 1 {
                    if model.insert(key(entry)) {
                        set.insert(entry);
                    }
                } else {
                    prop_assert_eq!(set.remove(&entry), model.remove(&key(entry)));
                }
                let found = set.first_not_before(&entry).map(|position| key(set.at(position)));
                prop_assert_eq!(found, model.range(key(entry)..).next().copied());
            }
            let expected: Vec<_> = model.iter().copied().collect();
            prop_assert_eq!(&set.iter().map(|entry| key(*entry)).collect::<Vec<_>>(), &expected);
            let mut walked = Vec::new();
            let mut position = set.last();
            while let Some(here) = position {
                walked.push(key(set.at(here)));
                position = set.before(here);
            }
            walked.reverse();
            prop_assert_eq!(&walked, &expected);
            let mut forwards = Vec::new();
            let mut position = set.first_not_before(&Entry::default());
            while let Some(here) = position {
                forwards.push(key(set.at(here)));
                position = set.after(here);
            }
            prop_assert_eq!(&forwards, &expected);
            while let Some(position) = set.last() {
                set.remove_at(position);
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

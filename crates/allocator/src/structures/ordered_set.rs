//! An ordered set: sorted pieces of at most [`PIECE`] entries each.
//!
//! Arrays of that size are searched and shifted within a few cache lines; a tree follows a pointer per
//! level and allocates its nodes. What is emptied is kept for later, so that a set which has reached
//! its size never allocates.

/// What orders blocks: size, then rank (0 where addresses decide), then address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) size: u64,
    pub(crate) address: u64,
    pub(crate) rank: u32,
    pub(crate) block: u32,
}

impl Entry {
    #[inline]
    pub(super) fn is_same_key(&self, other: &Self) -> bool {
        (self.size, self.rank, self.address) == (other.size, other.rank, other.address)
    }

    #[inline]
    fn is_before(&self, other: &Self) -> bool {
        // Without jumps: which way a search goes cannot be predicted.
        let by_address = (self.rank == other.rank) & (self.address < other.address);
        let by_rank = (self.rank < other.rank) | by_address;
        (self.size < other.size) | ((self.size == other.size) & by_rank)
    }
}

const PIECE: usize = 64;
/// A piece this small is joined with its neighbour if both then fill at most half a piece.
const SPARSE: usize = PIECE / 8;

/// Where an entry stands, until the set is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    piece: u32,
    index: u32,
}

impl Position {
    pub(super) const FIRST: Self = Self { piece: 0, index: 0 };

    pub(super) fn of(index: usize) -> Self {
        Self {
            piece: 0,
            index: index as u32,
        }
    }

    pub(super) fn index(self) -> usize {
        self.index as usize
    }
}

/// Where a key stands, or would stand, in a sorted array.
#[inline]
pub(super) fn place_of(entries: &[Entry], key: &Entry) -> usize {
    // Most arrays have a handful of entries.
    if entries.len() <= 8 {
        return entries
            .iter()
            .take_while(|entry| entry.is_before(key))
            .count();
    }
    entries.partition_point(|entry| entry.is_before(key))
}

#[derive(Clone, Debug, Default)]
pub(crate) struct OrderedSet {
    /// Never empty ones.
    pieces: Vec<Vec<Entry>>,
    /// The last entry of each piece.
    lasts: Vec<Entry>,
    spare: Vec<Vec<Entry>>,
}

impl OrderedSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.pieces.iter().flatten()
    }

    /// The piece in which `key` belongs: the first whose last entry is not before it.
    #[inline]
    fn piece_of(&self, key: &Entry) -> usize {
        if self.lasts.len() <= 1 {
            return usize::from(self.lasts.first().is_some_and(|last| last.is_before(key)));
        }
        self.lasts.partition_point(|last| last.is_before(key))
    }

    #[inline]
    pub(crate) fn insert(&mut self, entry: Entry) {
        let mut at = self.piece_of(&entry);
        if at == self.pieces.len() {
            if at == 0 {
                let mut piece = self.fresh();
                piece.push(entry);
                self.pieces.push(piece);
                self.lasts.push(entry);
                return;
            }
            at -= 1;
        }
        if self.pieces[at].len() == PIECE {
            self.halve(at);
            if self.lasts[at].is_before(&entry) {
                at += 1;
            }
        }
        let piece = &mut self.pieces[at];
        let index = piece.partition_point(|other| other.is_before(&entry));
        piece.insert(index, entry);
        if index + 1 == piece.len() {
            self.lasts[at] = entry;
        }
    }

    fn fresh(&mut self) -> Vec<Entry> {
        self.spare
            .pop()
            .unwrap_or_else(|| Vec::with_capacity(PIECE))
    }

    #[cold]
    fn halve(&mut self, at: usize) {
        let mut upper = self.fresh();
        let lower = &mut self.pieces[at];
        upper.extend(lower.drain(PIECE / 2..));
        let middle = lower[PIECE / 2 - 1];
        self.pieces.insert(at + 1, upper);
        self.lasts.insert(at, middle);
    }

    /// Takes an entry out; whether it was there.
    #[inline]
    pub(crate) fn remove(&mut self, entry: &Entry) -> bool {
        let Some(position) = self.first_not_before(entry) else {
            return false;
        };
        let found = self.at(position);
        let is_same = found.is_same_key(entry);
        if is_same {
            self.remove_at(position);
        }
        is_same
    }

    #[inline]
    pub(crate) fn remove_at(&mut self, position: Position) -> Entry {
        let at = position.piece as usize;
        let piece = &mut self.pieces[at];
        let entry = piece.remove(position.index as usize);
        match piece.last() {
            Some(&last) => {
                self.lasts[at] = last;
                if piece.len() <= SPARSE {
                    self.join_with_next(at);
                }
            }
            None => self.drop_piece(at),
        }
        entry
    }

    #[cold]
    fn drop_piece(&mut self, at: usize) {
        let mut piece = self.pieces.remove(at);
        self.lasts.remove(at);
        piece.clear();
        self.spare.push(piece);
    }

    #[inline]
    fn join_with_next(&mut self, at: usize) {
        if at + 1 < self.pieces.len()
            && self.pieces[at].len() + self.pieces[at + 1].len() <= PIECE / 2
        {
            let mut next = self.pieces.remove(at + 1);
            self.pieces[at].append(&mut next);
            self.spare.push(next);
            self.lasts.remove(at);
        }
    }

    /// The first entry that is not before `key`.
    #[inline]
    pub(crate) fn first_not_before(&self, key: &Entry) -> Option<Position> {
        let at = self.piece_of(key);
        let piece = self.pieces.get(at)?;
        let index = piece.partition_point(|entry| entry.is_before(key));
        Some(Position {
            piece: at as u32,
            index: index as u32,
        })
    }

    pub(crate) fn last(&self) -> Option<Position> {
        let piece = self.pieces.len().checked_sub(1)?;
        Some(Position {
            piece: piece as u32,
            index: self.pieces[piece].len() as u32 - 1,
        })
    }

    #[inline]
    pub(crate) fn at(&self, position: Position) -> Entry {
        self.pieces[position.piece as usize][position.index as usize]
    }

    pub(crate) fn after(&self, position: Position) -> Option<Position> {
        let Position { piece, index } = position;
        if index as usize + 1 < self.pieces[piece as usize].len() {
            return Some(Position {
                piece,
                index: index + 1,
            });
        }
        (piece as usize + 1 < self.pieces.len()).then_some(Position {
            piece: piece + 1,
            index: 0,
        })
    }

    pub(crate) fn before(&self, position: Position) -> Option<Position> {
        let Position { piece, index } = position;
        if index > 0 {
            return Some(Position {
                piece,
                index: index - 1,
            });
        }
        let piece = piece.checked_sub(1)?;
        Some(Position {
            piece,
            index: self.pieces[piece as usize].len() as u32 - 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn entry(size: u64, rank: u32, address: u64) -> Entry {
        Entry {
            size,
            address,
            rank,
            block: 7,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn it_behaves_like_an_ordered_set(
            operations in prop::collection::vec((any::<bool>(), 0_u64..40, 0_u32..3, 0_u64..40), 1..1500)
        ) {
            let mut set = OrderedSet::default();
            let mut model = BTreeSet::new();
            for (add, size, rank, address) in operations {
                let key = entry(size, rank, address);
                if add {
                    if model.insert((size, rank, address)) {
                        set.insert(key);
                    }
                } else {
                    prop_assert_eq!(set.remove(&key), model.remove(&(size, rank, address)));
                }
                let found = set.first_not_before(&key).map(|position| set.at(position));
                let expected = model.range((size, rank, address)..).next().copied();
                prop_assert_eq!(found.map(|e| (e.size, e.rank, e.address)), expected);
            }
            let forwards: Vec<_> = set.iter().map(|e| (e.size, e.rank, e.address)).collect();
            prop_assert_eq!(&forwards, &model.iter().copied().collect::<Vec<_>>());
            let mut walked = Vec::new();
            let mut position = set.last();
            while let Some(here) = position {
                let e = set.at(here);
                walked.push((e.size, e.rank, e.address));
                position = set.before(here);
            }
            walked.reverse();
            prop_assert_eq!(&walked, &forwards);
            let mut position = set.first_not_before(&entry(0, 0, 0));
            let mut count = 0;
            while let Some(here) = position {
                count += 1;
                position = set.after(here);
            }
            prop_assert_eq!(count, forwards.len());
        }
    }
}

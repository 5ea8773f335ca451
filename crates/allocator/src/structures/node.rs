//! A node of a tree: a sorted array of a few entries.

use super::entry::Entry;

/// Entries of a node.
pub(super) const ROOM: usize = 16;
/// In a leaf, blocks. Above, the last entry of each child, with the child's number for its block.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Node {
    pub(super) len: u32,
    /// The next of the vacant nodes.
    pub(super) next: u32,
    pub(super) entries: [Entry; ROOM],
}

impl Node {
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries[..self.len as usize]
    }

    /// Not for a full node.
    #[inline]
    pub(super) fn insert(&mut self, at: usize, entry: Entry) {
        // Entry by entry: the distances are too short for a call.
        let mut moved = entry;
        for place in &mut self.entries[at..=self.len as usize] {
            std::mem::swap(place, &mut moved);
        }
        self.len += 1;
    }

    #[inline]
    pub(super) fn remove(&mut self, at: usize) -> Entry {
        let mut moved = Entry::default();
        for place in self.entries[at..self.len as usize].iter_mut().rev() {
            std::mem::swap(place, &mut moved);
        }
        self.len -= 1;
        moved
    }
}

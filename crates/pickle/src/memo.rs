//! The memo: objects that a pickle refers to again, four bytes a slot.
//!
//! Python numbers everything it writes, whether it is reused or not: a snapshot of seven million
//! events has some twenty million slots.

use std::collections::HashMap;

use crate::hash::SeededState;
use crate::strings::StringId;
use crate::value::NodeId;

/// What a slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    Node(NodeId),
    String(StringId),
    /// The number of a value that needs no heap. Pickles of Python never have one.
    Scalar(u32),
    Taken,
}

const TAKEN: u32 = u32::MAX;
/// The kind of a slot is in its upper two bits: a node, a node that was used again, a string, a scalar.
const FETCHED: u32 = 1 << 30;
const STRING: u32 = 2 << 30;
const SCALAR: u32 = 3 << 30;
const NUMBER: u32 = FETCHED - 1;

/// Handles up to here fit into a slot beside its flags.
pub(crate) const MAX_HANDLES: usize = (1 << 30) - 2;

/// Slots by number. Numbers are the file's: those that leave a gap go into a table, so that one slot
/// with a huge number costs one slot.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    dense: Vec<u32>,
    sparse: HashMap<u32, u32, SeededState>,
    /// Whether a slot was written twice since it was last asked.
    rewritten: bool,
}

impl Memo {
    /// The number that MEMOIZE uses next.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        (self.dense.len() + self.sparse.len()) as u64
    }

    #[inline]
    pub(crate) fn has(&self, number: u64) -> bool {
        let in_gap = |number: u32| !self.sparse.is_empty() && self.sparse.contains_key(&number);
        number < self.dense.len() as u64 || u32::try_from(number).is_ok_and(in_gap)
    }

    #[inline]
    pub(crate) fn put(&mut self, number: u32, slot: Slot) {
        let code = encode(slot);
        let at = number as usize;
        if at < self.dense.len() {
            self.dense[at] = code;
            self.rewritten = true;
        } else if at == self.dense.len() && self.sparse.is_empty() {
            self.dense.push(code);
        } else {
            self.rewritten |= self.sparse.insert(number, code).is_some();
        }
    }

    /// Fills the next slot, if slots have been filled in order so far. Returns its number.
    #[inline(always)]
    pub(crate) fn push(&mut self, slot: Slot) -> Option<u32> {
        let number = self.dense.len();
        if !self.sparse.is_empty() || number >= u32::MAX as usize - 2 {
            return None;
        }
        self.dense.push(encode(slot));
        Some(number as u32)
    }

    /// Replaces an object that was never read: no use of the slot changes.
    pub(crate) fn change_unused(&mut self, number: u32, slot: Slot) {
        let rewritten = self.rewritten;
        self.put(number, slot);
        self.rewritten = rewritten;
    }

    /// Whether a slot was written twice since this was last asked.
    pub(crate) fn take_rewritten(&mut self) -> bool {
        std::mem::take(&mut self.rewritten)
    }

    /// What a slot holds, and that it is used a second time.
    #[inline(always)]
    pub(crate) fn fetch(&mut self, number: u32) -> Option<Slot> {
        let code = match self.dense.get_mut(number as usize) {
            Some(code) => code,
            None => self.sparse.get_mut(&number)?,
        };
        let handle = *code & NUMBER;
        Some(match *code & !NUMBER {
            FETCHED => Slot::Node(NodeId(handle)),
            STRING => Slot::String(StringId(handle)),
            SCALAR if *code == TAKEN => Slot::Taken,
            SCALAR => Slot::Scalar(handle),
            _ => {
                *code |= FETCHED;
                Slot::Node(NodeId(handle))
            }
        })
    }

    /// Whether this slot holds this node and was never read.
    pub(crate) fn holds_unused(&self, number: u32, id: NodeId) -> bool {
        let code = match self.dense.get(number as usize) {
            Some(code) => Some(code),
            None => self.sparse.get(&number),
        };
        code == Some(&id.0)
    }

    pub(crate) fn held_bytes(&self) -> u64 {
        self.dense.len() as u64 * 4 + self.sparse.len() as u64 * 16
    }
}

#[inline(always)]
fn encode(slot: Slot) -> u32 {
    match slot {
        Slot::Node(id) => id.0,
        Slot::String(id) => id.0 | STRING,
        Slot::Scalar(number) => number | SCALAR,
        Slot::Taken => TAKEN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_with_a_huge_number_costs_one_slot() {
        let mut memo = Memo::default();
        memo.put(4_000_000_000, Slot::Taken);
        memo.put(0, Slot::Node(NodeId(5)));
        assert_eq!(memo.fetch(4_000_000_000), Some(Slot::Taken));
        assert_eq!(memo.fetch(0), Some(Slot::Node(NodeId(5))));
        assert_eq!(memo.fetch(1), None);
        assert!(memo.held_bytes() < 100);
    }

    #[test]
    fn a_slot_that_was_asked_for_is_no_longer_unused() {
        let mut memo = Memo::default();
        memo.put(0, Slot::Node(NodeId(7)));
        assert!(memo.holds_unused(0, NodeId(7)));
        memo.fetch(0);
        assert!(!memo.holds_unused(0, NodeId(7)));
    }
}

//! The memo: objects that a pickle can refer to again, at four bytes per slot.
//!
//! Python memoizes every object that it writes, whether it is referenced again or not: a snapshot of seven million
//! events has about twenty million slots.

use std::collections::HashMap;

use crate::hash::SeededState;
use crate::strings::StringId;
use crate::value::NodeId;

/// What a slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    Node(NodeId),
    String(StringId),
    /// The number of a value that is not on the heap. Python never memoizes one.
    Scalar(u32),
    Taken,
}

const TAKEN: u32 = u32::MAX;
/// The upper two bits of a slot are its kind: a node, a node that was referenced again, a string, a scalar.
const FETCHED: u32 = 1 << 30;
const STRING: u32 = 2 << 30;
const SCALAR: u32 = 3 << 30;
const NUMBER: u32 = FETCHED - 1;

/// The largest handle that fits into a slot beside its kind.
pub(crate) const MAX_HANDLES: usize = (1 << 30) - 2;

/// Slots by number. The file chooses the numbers: slots after a gap go into a table, so that a huge number costs no
/// more than a small one.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    dense: Vec<u32>,
    sparse: HashMap<u32, u32, SeededState>,
    /// Whether a slot was overwritten since this was last asked.
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

    /// Fills the next slot and returns its number, if slots have been filled in order so far.
    #[inline(always)]
    pub(crate) fn push(&mut self, slot: Slot) -> Option<u32> {
        let number = self.dense.len();
        if !self.sparse.is_empty() || number >= u32::MAX as usize - 2 {
            return None;
        }
        self.dense.push(encode(slot));
        Some(number as u32)
    }

    /// Replaces an object that was never read back, so that no reader of the slot sees a difference.
    pub(crate) fn change_unused(&mut self, number: u32, slot: Slot) {
        let rewritten = self.rewritten;
        self.put(number, slot);
        self.rewritten = rewritten;
    }

    /// Whether a slot was overwritten since this was last asked.
    pub(crate) fn take_rewritten(&mut self) -> bool {
        std::mem::take(&mut self.rewritten)
    }

    /// What a slot holds; marks it as read back.
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

    /// Whether this slot holds this node and was never read back.
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

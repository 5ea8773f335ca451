//! Frees what a taker took: its space is reused, and its memo slots are marked.

use std::mem::discriminant;

use super::{Heap, MANY, NO_MEMO, content_bytes};
use crate::memo::Slot as MemoSlot;
use crate::value::{Node, NodeId, Value};

impl Heap {
    /// Says that `kept`, which must be frozen, is read as the same as `id`, a direct value of the
    /// dictionary that is being taken: a later read of `id` from the memo returns `kept`, which then
    /// [`stands_for_others`](Heap::stands_for_others). Returns whether that could be done; it cannot if
    /// the file has used `id` elsewhere already, or if one is a list and the other a tuple.
    pub fn replace(&mut self, id: NodeId, kept: NodeId) -> bool {
        let Some(entry) = self.entries.get(id.index()) else {
            return false;
        };
        let (memo, frozen) = (self.memo_of[id.index()], entry.frozen);
        let is_same_kind = discriminant(&entry.node) == discriminant(self.node(kept));
        if id == kept || frozen || memo == MANY || !is_same_kind {
            return false;
        }
        if memo != NO_MEMO {
            if !self.memo.holds_unused(memo, id) {
                return false;
            }
            self.memo.change_unused(memo, MemoSlot::Node(kept));
            // From now on a slot leads to it, even if it was never put into one itself.
            self.mark_shared(kept);
            self.entries[kept.index()].stands_for_others = true;
        }
        self.free_unreachable(id);
        true
    }

    /// Whether the memo may have given out this node for another one, by [`Heap::replace`]: then only
    /// the code that replaced it may rely on its content.
    pub fn stands_for_others(&self, id: NodeId) -> bool {
        self.entries
            .get(id.index())
            .is_some_and(|entry| entry.stands_for_others)
    }

    /// Whether a node has only ever been in one place: the file never read it back from the memo, and never
    /// duplicated it.
    pub fn is_in_one_place(&self, id: NodeId) -> bool {
        match self.memo_of.get(id.index()) {
            Some(&NO_MEMO) => true,
            Some(&MANY) | None => false,
            Some(&number) => self.memo.holds_unused(number, id),
        }
    }

    /// Whether a dictionary can be taken: empty so far, and referred to only by its place on the
    /// stack and at most one memo slot.
    pub(crate) fn is_takeable(&self, id: NodeId) -> bool {
        let Some(entry) = self.entries.get(id.index()) else {
            return false;
        };
        let fresh = matches!(&entry.node, Node::Dict(dictionary) if dictionary.is_empty());
        fresh && self.is_in_one_place(id)
    }

    /// Frees a dictionary that was taken. It is empty: its entries are still on the stack.
    #[inline]
    pub(crate) fn give_up(&mut self, id: NodeId) {
        let at = id.index();
        let memo = self.memo_of[at];
        if memo < MANY {
            self.memo.change_unused(memo, MemoSlot::Taken);
        }
        self.entries[at].node = Node::Free;
        self.memo_of[at] = MANY;
        self.free.push(id.0);
    }

    /// Frees a value of a dictionary that was taken, if nothing can refer to it any more.
    pub(crate) fn give_up_if_unreachable(&mut self, id: NodeId) {
        // A frozen one may stand for others: `replace` may still refer to it.
        if self.is_referred_to_once(id) && !self.entries[id.index()].frozen {
            self.free_unreachable(id);
        }
    }

    /// Whether a node was never memoized: then only what contains it refers to it.
    fn is_referred_to_once(&self, id: NodeId) -> bool {
        self.memo_of.get(id.index()) == Some(&NO_MEMO)
    }

    /// Frees a node and what only it referred to, in a loop over a work list, without recursion.
    fn free_unreachable(&mut self, id: NodeId) {
        let mut work = std::mem::take(&mut self.work);
        work.push(id);
        while let Some(id) = work.pop() {
            let node = std::mem::replace(&mut self.entries[id.index()].node, Node::Free);
            self.memo_of[id.index()] = MANY;
            self.free.push(id.0);
            self.content_bytes = self.content_bytes.saturating_sub(content_bytes(&node));
            let mut children = |items: &[Value]| {
                for item in items {
                    if let Value::Node(child) = item
                        && self.is_referred_to_once(*child)
                    {
                        work.push(*child);
                    }
                }
            };
            match node {
                Node::List(mut items) | Node::Tuple(mut items) => {
                    children(&items);
                    if self.spare.len() < 64 && items.capacity() <= 4096 {
                        items.clear();
                        self.spare.push(items);
                    }
                }
                Node::Dict(dictionary) | Node::Set(dictionary) | Node::FrozenSet(dictionary) => {
                    children(dictionary.items());
                }
                _ => {}
            }
        }
        self.work = work;
    }
}

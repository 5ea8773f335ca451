//! Filling lists, dictionaries, sets and tuples.

use std::io::Read;

use super::Machine;
use crate::dictionary::Dictionary;
use crate::error::Error;
use crate::shared_lists::{self, Memoized};
use crate::taker::{Place, Take, Taker};
use crate::value::{Node, NodeId, Value};

impl<R: Read> Machine<R> {
    /// A list that is written as a row of references, if one follows: the one list for all such rows.
    pub(super) fn shared_list(&mut self) -> Result<bool, Error> {
        let Some(row) = shared_lists::row_in(self.input.ahead()) else {
            return Ok(false);
        };
        // The row may refer to the slot that is overwritten here.
        let slot = match row.memoized {
            Memoized::No => None,
            Memoized::Next => Some(self.heap.memo.next()),
            Memoized::As(number) => Some(u64::from(number)),
        };
        if slot.is_some_and(|slot| self.heap.memo.has(slot)) {
            return Ok(false);
        }
        if self.heap.memo.take_rewritten() {
            self.shared_lists.clear();
        }
        let list = match self.shared_lists.find(row.references) {
            Some(list) => list,
            None => {
                let mut items = Vec::new();
                for number in shared_lists::references(row.references) {
                    match self.heap.recall(number) {
                        Some(value) if !value.is_taken() => items.push(value),
                        // The list itself, or something invalid, which executing the row will find.
                        _ => return Ok(false),
                    }
                }
                let list = self.heap.add_shared_list(items);
                self.shared_lists.remember(row.references, list);
                list
            }
        };
        let length = row.length();
        self.stack.push(Value::Node(list));
        if let Some(slot) = slot {
            self.put(slot)?;
        }
        self.input.skip(length);
        Ok(true)
    }

    /// Puts the entries above the last mark into the dictionary below it.
    pub(super) fn set_items<T: Taker>(&mut self, taker: &mut T) -> Result<(), Error> {
        let mark = self.pop_mark()?;
        let below = self.marks.last().copied().unwrap_or(0);
        let Some(place) = mark.checked_sub(1).filter(|place| *place >= below) else {
            return Err(self.underflow());
        };
        // Like Python, here and below: a target that receives nothing is not checked.
        if self.stack.len() == mark {
            return Ok(());
        }
        let id = match self.stack[place] {
            Value::Node(id) => id,
            Value::Taken | Value::TakenRow => return Err(self.taken()),
            other => return Err(self.wrong_operand("a dict", other)),
        };
        if self.heap.is_takeable(id) {
            let items = &self.stack[mark..];
            let place_of = Place {
                stack: &self.stack[..place],
                marks: &self.marks,
            };
            match taker.dictionary(&mut self.heap, place_of, items) {
                Take::Leave => {}
                Take::Took => return self.took(id, place, mark, below),
                Take::Stop => return Err(Error::Stopped { offset: self.at }),
            }
        }
        let items: Vec<Value> = self.stack.drain(mark..).collect();
        self.insert(id, &items)
    }

    /// Forgets a dictionary that was taken, and leaves [`Value::Taken`] in its place. A row of such
    /// places becomes one: C++ pushes a whole list before it appends it.
    pub(super) fn took(
        &mut self,
        id: NodeId,
        place: usize,
        mark: usize,
        below: usize,
    ) -> Result<(), Error> {
        // The value taken last is below, except in unusual programs, where it is searched for.
        if self.last_taken >= mark && self.stack[mark..].iter().any(Value::is_taken) {
            return Err(self.taken());
        }
        for [_, value] in self.stack[mark..].as_chunks::<2>().0 {
            if let Value::Node(child) = value {
                self.heap.give_up_if_unreachable(*child);
            }
        }
        self.heap.give_up(id);
        self.stack.truncate(place);
        match self.stack[below..].last_mut() {
            Some(before) if before.is_taken() => *before = Value::TakenRow,
            _ => self.stack.push(Value::Taken),
        }
        self.last_taken = self.stack.len() - 1;
        Ok(())
    }

    pub(super) fn append_all(&mut self) -> Result<(), Error> {
        let mark = self.pop_mark()?;
        let below = self.marks.last().copied().unwrap_or(0);
        if mark <= below {
            return Err(self.underflow());
        }
        if self.stack.len() == mark {
            return Ok(());
        }
        let list = match self.stack[mark - 1] {
            Value::Node(id) => id,
            Value::Taken | Value::TakenRow => return Err(self.taken()),
            other => return Err(self.wrong_operand("a list", other)),
        };
        let count = self.stack.len() - mark;
        // Values taken directly above the list were taken for it; those further up were taken for another list, which
        // is an item of this one.
        let first = mark + usize::from(self.stack.get(mark).is_some_and(Value::is_taken));
        if self.last_taken >= first && self.stack[first..].iter().any(Value::is_taken) {
            return Err(self.taken());
        }
        match self.heap.node_mut(list) {
            Some(Node::List(items)) => items.extend_from_slice(&self.stack[first..]),
            Some(_) => return Err(self.wrong_operand("a list", Value::Node(list))),
            None => return Err(self.taken()),
        }
        self.heap.grew(count);
        self.stack.truncate(mark);
        Ok(())
    }

    pub(super) fn append(&mut self, list: NodeId, new: &[Value]) -> Result<(), Error> {
        match self.heap.node_mut(list) {
            Some(Node::List(items)) => {
                items.extend(new.iter().filter(|item| !item.is_taken()));
            }
            Some(_) => return Err(self.wrong_operand("a list", Value::Node(list))),
            None => return Err(self.taken()),
        }
        self.heap.grew(new.len());
        Ok(())
    }

    pub(super) fn add_items(&mut self) -> Result<(), Error> {
        let items = self.pop_to_mark()?;
        let below = self.marks.last().copied().unwrap_or(0);
        if items.is_empty() && self.stack.len() > below {
            return Ok(());
        }
        let id = self.top_node()?;
        for item in &items {
            self.check_hashable(*item)?;
        }
        match self.heap.node_mut(id) {
            Some(Node::Set(set)) => {
                for item in &items {
                    set.insert(*item, Value::None);
                }
            }
            Some(_) => return Err(self.wrong_operand("a set", Value::Node(id))),
            None => return Err(self.taken()),
        }
        // A set's entry is a dictionary's: two values, and a place in the index.
        self.heap.grew(items.len() * 5);
        Ok(())
    }

    pub(super) fn insert(&mut self, id: NodeId, items: &[Value]) -> Result<(), Error> {
        // Moved out of the heap while its keys are inspected.
        let mut dictionary = match self.heap.node_mut(id) {
            Some(Node::Dict(dictionary)) => std::mem::take(dictionary),
            Some(_) => return Err(self.wrong_operand("a dict", Value::Node(id))),
            None => return Err(self.taken()),
        };
        let filled = self.fill_dictionary(&mut dictionary, items);
        if let Some(node) = self.heap.node_mut(id) {
            *node = Node::Dict(dictionary);
        }
        self.heap.grew(items.len() / 2 * 5);
        filled
    }

    pub(super) fn fill_dictionary(
        &self,
        dictionary: &mut Dictionary,
        items: &[Value],
    ) -> Result<(), Error> {
        let (entries, odd) = items.as_chunks::<2>();
        if !odd.is_empty() {
            return Err(self.malformed("a dict with a key without a value"));
        }
        for [key, value] in entries {
            if key.is_taken() || value.is_taken() {
                return Err(self.taken());
            }
            self.check_hashable(*key)?;
            dictionary.insert(*key, *value);
        }
        Ok(())
    }

    /// Refuses what Python accepts neither as a key nor in a set.
    pub(super) fn check_hashable(&self, value: Value) -> Result<(), Error> {
        match value {
            Value::Taken | Value::TakenRow => Err(self.taken()),
            Value::Node(id) => match self.heap.node(id) {
                Node::List(_) | Node::Dict(_) | Node::Set(_) | Node::ByteArray(_) => {
                    Err(self.wrong_operand("a key that cannot change", value))
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    pub(super) fn tuple(&mut self, count: usize) -> Result<(), Error> {
        let below = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() < below + count {
            return Err(self.underflow());
        }
        let from = self.stack.len() - count;
        if self.stack[from..].iter().any(Value::is_taken) {
            return Err(self.taken());
        }
        let id = self.heap.add_tuple(&self.stack[from..]);
        self.stack.truncate(from);
        self.stack.push(Value::Node(id));
        Ok(())
    }
}

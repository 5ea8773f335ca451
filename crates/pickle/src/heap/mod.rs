//! Where values live: one flat table of nodes, so that nothing about a value is recursive.

mod taking;

use std::borrow::Cow;

use crate::dictionary::Dictionary;
use crate::memo::{MAX_HANDLES, Memo, Slot as MemoSlot};
use crate::strings::{StringId, Strings};
use crate::value::{Node, NodeId, Value};

/// How much memory a pickle may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Roughly, in bytes, for values, memo and stack together.
    pub memory_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 4 << 30,
        }
    }
}

/// Never memoized.
const NO_MEMO: u32 = u32::MAX;
/// Referred to by more than one memo slot.
const MANY: u32 = u32::MAX - 1;

/// How many pairs of integers are recognised.
const RECENT_PAIRS: usize = 16;

#[derive(Debug)]
struct Entry {
    node: Node,
    frozen: bool,
    /// Whether a memo slot refers to it in place of an equal node, by [`Heap::replace`].
    stands_for_others: bool,
}

/// All values of one pickle.
#[derive(Debug, Default)]
pub struct Heap {
    entries: Vec<Entry>,
    /// Kept beside the entries, so that reading the tags of a stack's frames does not touch the frames.
    tags: Vec<u32>,
    /// The one memo slot that refers to each node, [`NO_MEMO`] or [`MANY`].
    memo_of: Vec<u32>,
    free: Vec<u32>,
    /// Scalars in the memo.
    scalars: Vec<Value>,
    /// Nodes about to be freed; the list is kept for its capacity.
    work: Vec<NodeId>,
    recent_pairs: [Option<((i64, i64), NodeId)>; RECENT_PAIRS],
    /// Emptied lists, kept for their capacity.
    spare: Vec<Vec<Value>>,
    strings: Strings,
    pub(crate) memo: Memo,
    content_bytes: u64,
}

impl Heap {
    /// What a handle refers to.
    pub fn node(&self, id: NodeId) -> &Node {
        self.entries
            .get(id.index())
            .map_or(&Node::Free, |entry| &entry.node)
    }

    /// The items of a list.
    pub fn list(&self, value: Value) -> Option<&[Value]> {
        match value {
            Value::Node(id) => match self.node(id) {
                Node::List(items) => Some(items),
                _ => None,
            },
            _ => None,
        }
    }

    /// The items of a tuple.
    pub fn tuple(&self, value: Value) -> Option<&[Value]> {
        match value {
            Value::Node(id) => match self.node(id) {
                Node::Tuple(items) => Some(items),
                _ => None,
            },
            _ => None,
        }
    }

    /// A dictionary.
    pub fn dict(&self, value: Value) -> Option<&Dictionary> {
        match value {
            Value::Node(id) => match self.node(id) {
                Node::Dict(dictionary) => Some(dictionary),
                _ => None,
            },
            _ => None,
        }
    }

    /// The value of a dictionary's key.
    pub fn get(&self, dict: Value, key: &str) -> Option<Value> {
        let key = self.strings.find(key.as_bytes())?;
        self.dict(dict)?.get(Value::String(key))
    }

    /// A string; what is not Unicode is replaced.
    pub fn text(&self, id: StringId) -> Cow<'_, str> {
        self.strings.text(id)
    }

    /// A string's bytes: UTF-8, except for lone surrogates.
    pub fn string_bytes(&self, id: StringId) -> &[u8] {
        self.strings.bytes(id)
    }

    /// How many different strings there are.
    pub fn string_count(&self) -> usize {
        self.strings.len()
    }

    /// The handle of a string, made if it is new.
    pub fn intern(&mut self, text: &str) -> StringId {
        self.strings.intern(text.as_bytes())
    }

    /// An integer as unsigned 64 bits; the bits of negative ones are reinterpreted, as C++ writes addresses so.
    pub fn unsigned_bits(&self, value: Value) -> Option<u64> {
        match value {
            Value::Int(value) => Some(value as u64),
            Value::Bool(value) => Some(u64::from(value)),
            Value::Node(id) => match self.node(id) {
                Node::BigInt(bytes) => match bytes.split_last() {
                    Some((0, rest)) => rest.try_into().ok().map(u64::from_le_bytes),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    /// What Python calls the value's type.
    pub fn type_name(&self, value: Value) -> &'static str {
        match value {
            Value::None => "None",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::String(_) => "str",
            Value::Taken | Value::TakenRow => "object",
            Value::Node(id) => self.node(id).type_name(),
        }
    }

    /// A number that the reader of the values has pinned to a node; 0 if none.
    #[inline]
    pub fn tag(&self, id: NodeId) -> u32 {
        self.tags.get(id.index()).copied().unwrap_or(0)
    }

    /// Pins a number to a node and freezes it. Only direct values of a dictionary that is being taken may
    /// be named in [`Heap::replace`] later: their contents are freed with them.
    ///
    /// Frozen means: the number was drawn from its content, so a file that
    /// changes the content afterwards is stopped with [`Error::TakenObjectUsed`](crate::Error).
    pub fn set_tag(&mut self, id: NodeId, tag: u32) {
        if let Some(entry) = self.entries.get_mut(id.index()) {
            entry.frozen = true;
            self.tags[id.index()] = tag;
        }
    }

    /// Freezes a node from which something was drawn that no number is pinned for.
    pub fn freeze(&mut self, id: NodeId) {
        if let Some(entry) = self.entries.get_mut(id.index()) {
            entry.frozen = true;
        }
    }

    /// Pins a number to a node that may still change.
    pub fn set_loose_tag(&mut self, id: NodeId, tag: u32) {
        if let Some(known) = self.tags.get_mut(id.index()) {
            *known = tag;
        }
    }

    /// The handle of a string, if `is_text` accepts it. Known strings are not checked again.
    #[inline]
    pub(crate) fn intern_bytes(
        &mut self,
        bytes: &[u8],
        is_text: fn(&[u8]) -> bool,
    ) -> Option<StringId> {
        match self.strings.recent(bytes) {
            Some(id) => Some(id),
            None => is_text(bytes).then(|| self.strings.intern(bytes)),
        }
    }

    /// The handle of a string that is known to be text.
    pub(crate) fn intern_text(&mut self, bytes: &[u8]) -> StringId {
        self.strings.intern(bytes)
    }

    #[inline]
    pub(crate) fn add(&mut self, node: Node) -> NodeId {
        self.content_bytes += content_bytes(&node);
        let entry = Entry {
            node,
            frozen: false,
            stands_for_others: false,
        };
        if let Some(free) = self.free.pop() {
            self.entries[free as usize] = entry;
            self.tags[free as usize] = 0;
            self.memo_of[free as usize] = NO_MEMO;
            NodeId(free)
        } else {
            self.entries.push(entry);
            self.tags.push(0);
            self.memo_of.push(NO_MEMO);
            NodeId((self.entries.len() - 1) as u32)
        }
    }

    pub(crate) fn add_empty_list(&mut self) -> NodeId {
        let room = self.spare.pop().unwrap_or_default();
        self.add(Node::List(room))
    }

    /// A tuple. Recent short tuples of integers are shared, since they are immutable.
    #[inline]
    pub(crate) fn add_tuple(&mut self, items: &[Value]) -> NodeId {
        let &[Value::Int(first), Value::Int(second)] = items else {
            return self.add_new_tuple(items);
        };
        let place = (first ^ second.rotate_left(3)) as usize % RECENT_PAIRS;
        if let Some((known, id)) = self.recent_pairs[place]
            && known == (first, second)
        {
            return id;
        }
        let id = self.add_new_tuple(items);
        self.mark_shared(id);
        self.recent_pairs[place] = Some(((first, second), id));
        id
    }

    fn add_new_tuple(&mut self, items: &[Value]) -> NodeId {
        let mut room = self.spare.pop().unwrap_or_default();
        room.extend_from_slice(items);
        self.add(Node::Tuple(room))
    }

    /// A list that will not change, shared by all lists with these items.
    pub(crate) fn add_shared_list(&mut self, items: Vec<Value>) -> NodeId {
        let id = self.add(Node::List(items));
        self.entries[id.index()].frozen = true;
        self.mark_shared(id);
        id
    }

    /// A node that may be changed, or `None` if its content has already been used.
    pub(crate) fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        let entry = self.entries.get_mut(id.index())?;
        (!entry.frozen).then_some(&mut entry.node)
    }

    /// Charges what a container has grown by.
    pub(crate) fn grew(&mut self, values: usize) {
        self.content_bytes += (values * size_of::<Value>()) as u64;
    }

    #[inline]
    pub(crate) fn memoize(&mut self, number: u32, value: Value) {
        let slot = match value {
            Value::Taken | Value::TakenRow => MemoSlot::Taken,
            Value::String(id) => MemoSlot::String(id),
            Value::Node(id) => {
                if let Some(memo) = self.memo_of.get_mut(id.index()) {
                    *memo = if *memo == NO_MEMO { number } else { MANY };
                }
                MemoSlot::Node(id)
            }
            scalar => {
                self.scalars.push(scalar);
                MemoSlot::Scalar((self.scalars.len() - 1) as u32)
            }
        };
        self.memo.put(number, slot);
    }

    #[inline(always)]
    pub(crate) fn recall(&mut self, number: u32) -> Option<Value> {
        Some(match self.memo.fetch(number)? {
            MemoSlot::Taken => Value::Taken,
            MemoSlot::String(id) => Value::String(id),
            MemoSlot::Scalar(number) => *self.scalars.get(number as usize)?,
            MemoSlot::Node(id) => Value::Node(id),
        })
    }

    /// What a memo slot holds, if it holds something that is still there.
    #[inline(always)]
    pub(crate) fn recall_plain(&mut self, number: u32) -> Option<Value> {
        match self.memo.fetch(number)? {
            MemoSlot::Node(id) => Some(Value::Node(id)),
            MemoSlot::String(id) => Some(Value::String(id)),
            _ => None,
        }
    }

    /// Puts a value into the next memo slot, if it is of a kind that needs no checks.
    #[inline(always)]
    pub(crate) fn memoize_next(&mut self, value: Value) -> bool {
        match value {
            Value::String(id) => self.memo.push(MemoSlot::String(id)),
            Value::Node(id) => {
                let Some(number) = self.memo.push(MemoSlot::Node(id)) else {
                    return false;
                };
                let memo = &mut self.memo_of[id.index()];
                *memo = if *memo == NO_MEMO { number } else { MANY };
                return true;
            }
            _ => None,
        }
        .is_some()
    }

    pub(crate) fn mark_shared(&mut self, id: NodeId) {
        if let Some(memo) = self.memo_of.get_mut(id.index()) {
            *memo = MANY;
        }
    }

    pub(crate) fn held_bytes(&self) -> u64 {
        (self.entries.len() * (size_of::<Entry>() + 12)) as u64
            + (self.scalars.len() * size_of::<Value>()) as u64
            + self.content_bytes
            + self.strings.held_bytes
            + self.memo.held_bytes()
    }

    pub(crate) fn has_room_for_handles(&self) -> bool {
        self.entries
            .len()
            .max(self.strings.len())
            .max(self.scalars.len())
            < MAX_HANDLES
    }
}

fn content_bytes(node: &Node) -> u64 {
    match node {
        Node::List(items) | Node::Tuple(items) => (items.len() * size_of::<Value>()) as u64,
        Node::Dict(dictionary) | Node::Set(dictionary) | Node::FrozenSet(dictionary) => {
            dictionary.held_bytes()
        }
        Node::Bytes(bytes) | Node::ByteArray(bytes) | Node::BigInt(bytes) => bytes.len() as u64,
        Node::Free => 0,
    }
}

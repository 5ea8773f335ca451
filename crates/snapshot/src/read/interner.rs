//! Frames, stacks, pools and texts of a pickle's heap, turned into this crate's handles once each.
//!
//! The handle of a node is attached to it as a tag, so a frame that is in a million stacks is read only
//! once. PyTorch writes a new list of frames for every allocation; while the file is streamed, equal
//! lists are replaced by the first, so that millions of lists take the space of a few thousand.

use std::collections::HashMap;

use ghostgpu_pickle::{Heap, NodeId, SeededState, StringId, Value};

use super::keys;
use super::notes::Notes;
use crate::names::{NameId, Names};
use crate::segments::PoolId;
use crate::stacks::{Frame, FrameId, FxNode, StackId, Stacks};
use crate::warning::Part;

/// What a tag's number means: its upper bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum TagKind {
    Frame = 1 << 29,
    Stack = 2 << 29,
    Pool = 3 << 29,
    /// A list whose items are taken while the file streams by.
    Target = 4 << 29,
    /// A list that was read, and whose items are not taken.
    Plain = 5 << 29,
}

const KIND_BITS: u32 = 7 << 29;

pub(super) fn tag(kind: TagKind, number: u32) -> u32 {
    kind as u32 | (number & !KIND_BITS)
}

/// The number in a tag, if it is of this kind.
#[inline]
pub(super) fn tagged(tag: u32, kind: TagKind) -> Option<u32> {
    (tag & KIND_BITS == kind as u32).then_some(tag & !KIND_BITS)
}

#[derive(Debug, Default)]
pub(super) struct Interner {
    /// Whether what is read belongs to entries that are being taken. Only they are read no second time,
    /// so only of them a list may go when an equal one is known.
    pub(super) is_streaming: bool,
    pub(super) stacks: Stacks,
    pub(super) names: Names,
    pub(super) notes: Notes,
    /// By the heap's string handles: the name's number plus one.
    names_of_strings: Vec<u32>,
    /// By stack: the list in the heap that stands for all equal ones.
    lists_of_stacks: Vec<Option<NodeId>>,
    pools: Vec<PoolId>,
    nodes_of_pools: HashMap<PoolId, (NodeId, u32), SeededState>,
    frames: Vec<u32>,
}

impl Interner {
    pub(super) fn name(&mut self, heap: &Heap, id: StringId) -> NameId {
        let at = id.index();
        if let Some(known) = self.names_of_strings.get(at)
            && *known != 0
        {
            return NameId(known - 1);
        }
        if self.names_of_strings.len() <= at {
            self.names_of_strings.resize(at + 1, 0);
        }
        let name = self.names.intern(&heap.text(id));
        self.names_of_strings[at] = name.0 + 1;
        name
    }

    /// The stack behind a value of the key `frames` or one like it.
    #[inline]
    pub(super) fn stack(&mut self, heap: &mut Heap, part: Part, key: u32, value: Value) -> StackId {
        let Value::Node(list) = value else {
            if value != Value::None {
                self.notes.wrong_type(part, key, heap, value);
            }
            return StackId::NONE;
        };
        if let Some(stack) = tagged(heap.tag(list), TagKind::Stack) {
            return StackId(stack);
        }
        self.new_list(heap, part, key, list)
    }

    /// Whether the nodes read as the same are to become one, and did.
    fn replace(&self, heap: &mut Heap, node: NodeId, first: NodeId) -> bool {
        self.is_streaming && heap.replace(node, first)
    }

    fn new_list(&mut self, heap: &mut Heap, part: Part, key: u32, list: NodeId) -> StackId {
        self.frames.clear();
        let value = Value::Node(list);
        let Some(items) = heap.list(value).or_else(|| heap.tuple(value)) else {
            self.notes.wrong_type(part, key, heap, value);
            return StackId::NONE;
        };
        let all_known = items.iter().all(|item| match item {
            Value::Node(frame) => match tagged(heap.tag(*frame), TagKind::Frame) {
                Some(known) => {
                    self.frames.push(known);
                    true
                }
                None => false,
            },
            _ => false,
        });
        let mut is_odd = false;
        if !all_known {
            self.frames.clear();
            for at in 0.. {
                let items = heap.list(value).or_else(|| heap.tuple(value));
                let Some(item) = items.and_then(|items| items.get(at)).copied() else {
                    break;
                };
                match self.frame(heap, item) {
                    Some(frame) => self.frames.push(frame.0),
                    None => is_odd = true,
                }
            }
        }
        let stack = self.stacks.intern_stack(&self.frames);
        if is_odd {
            // Frozen, so that it is read again at every occurrence: the number of warnings must not depend
            // on which lists were merged.
            heap.freeze(list);
            return stack;
        }
        if self.lists_of_stacks.len() <= stack.0 as usize {
            self.lists_of_stacks.resize(stack.0 as usize + 1, None);
        }
        let first = self.lists_of_stacks[stack.0 as usize];
        if !first.is_some_and(|first| self.replace(heap, list, first)) {
            self.lists_of_stacks[stack.0 as usize].get_or_insert(list);
            heap.set_tag(list, tag(TagKind::Stack, stack.0));
        }
        stack
    }

    /// A frame: a dictionary, or a line of text.
    fn frame(&mut self, heap: &mut Heap, value: Value) -> Option<FrameId> {
        if let Value::String(text) = value {
            let function = self.name(heap, text);
            return Some(self.stacks.intern_frame(Frame {
                file: NameId::EMPTY,
                function,
                line: 0,
                fx: None,
            }));
        }
        let Value::Node(node) = value else {
            self.notes
                .wrong_type(Part::Frame, keys::FRAMES, heap, value);
            return None;
        };
        if let Some(known) = tagged(heap.tag(node), TagKind::Frame) {
            return Some(FrameId(known));
        }
        let Some(dictionary) = heap.dict(value) else {
            self.notes
                .wrong_type(Part::Frame, keys::FRAMES, heap, value);
            return None;
        };
        let mut frame = Frame {
            file: NameId::EMPTY,
            function: NameId::EMPTY,
            line: 0,
            fx: None,
        };
        for (key, value) in dictionary.entries() {
            let number = key_number(key);
            match (number, value) {
                (keys::FILENAME, Value::String(id)) => frame.file = self.name(heap, id),
                (keys::NAME, Value::String(id)) => frame.function = self.name(heap, id),
                (keys::LINE, _) => frame.line = heap.unsigned_bits(value).unwrap_or(0),
                (keys::FX_NODE_OP, Value::String(id)) => {
                    fx(&mut frame).operation = self.name(heap, id);
                }
                (keys::FX_NODE_NAME, Value::String(id)) => {
                    fx(&mut frame).name = self.name(heap, id)
                }
                (keys::FX_NODE_TARGET, Value::String(id)) => {
                    fx(&mut frame).target = self.name(heap, id);
                }
                (keys::FX_ORIGINAL_TRACE, Value::String(id)) => {
                    fx(&mut frame).original_trace = self.name(heap, id);
                }
                // A dictionary that repeats the node's name and target.
                (keys::FX_NODE_INFO, _) => {}
                (keys::FILENAME..=keys::FX_ORIGINAL_TRACE, _) => {
                    self.notes.wrong_type(Part::Frame, number, heap, value);
                }
                _ => self.notes.unknown_key(Part::Frame, key),
            }
        }
        let id = self.stacks.intern_frame(frame);
        heap.set_tag(node, tag(TagKind::Frame, id.0));
        Some(id)
    }

    /// A pool's id: a tuple of two integers.
    #[inline]
    pub(super) fn pool(
        &mut self,
        heap: &mut Heap,
        part: Part,
        key: u32,
        value: Value,
    ) -> Option<PoolId> {
        if let Value::Node(node) = value {
            if let Some(known) = tagged(heap.tag(node), TagKind::Pool) {
                return self.pools.get(known as usize).copied();
            }
            let items = heap.tuple(value).or_else(|| heap.list(value));
            if let Some([first, second]) = items
                && let (Some(first), Some(second)) =
                    (heap.unsigned_bits(*first), heap.unsigned_bits(*second))
            {
                let pool = PoolId(first, second);
                let known = self.nodes_of_pools.get(&pool).copied();
                // `True` reads as 1 here but not elsewhere, so the items must be the same too.
                let known = known.filter(|(first, _)| {
                    let first = Value::Node(*first);
                    heap.tuple(first).or_else(|| heap.list(first)) == items
                });
                if !known.is_some_and(|(first, _)| self.replace(heap, node, first)) {
                    let next = self.pools.len() as u32;
                    let (_, number) = *self.nodes_of_pools.entry(pool).or_insert((node, next));
                    if number == next {
                        self.pools.push(pool);
                    }
                    heap.set_tag(node, tag(TagKind::Pool, number));
                }
                return Some(pool);
            }
            // A list that is no pool yet must not become one unseen.
            heap.freeze(node);
        }
        if value != Value::None {
            self.notes.wrong_type(part, key, heap, value);
        }
        None
    }
}

/// The number of a key's handle; beyond all constants if it is no string.
#[inline]
pub(super) fn key_number(key: Value) -> u32 {
    match key {
        Value::String(id) => id.index() as u32,
        _ => u32::MAX,
    }
}

fn fx(frame: &mut Frame) -> &mut FxNode {
    frame.fx.get_or_insert(FxNode {
        operation: NameId::EMPTY,
        name: NameId::EMPTY,
        target: NameId::EMPTY,
        original_trace: NameId::EMPTY,
    })
}

//! What the allocator did, as columns: 33 bytes an event, however many there are.

use std::collections::HashMap;

use ghostgpu_pickle::SeededState;

use crate::names::NameId;
use crate::segments::PoolId;
use crate::stacks::StackId;

/// What happened (the key `action`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum EventKind {
    Alloc,
    FreeRequested,
    FreeCompleted,
    SegmentAlloc,
    SegmentFree,
    SegmentMap,
    SegmentUnmap,
    Oom,
    Snapshot,
    Annotate,
    /// Something that this version does not know; a warning has its name.
    Other,
}

impl EventKind {
    /// Every kind that PyTorch has a word for.
    pub const KNOWN: [Self; 10] = [
        Self::Alloc,
        Self::FreeRequested,
        Self::FreeCompleted,
        Self::SegmentAlloc,
        Self::SegmentFree,
        Self::SegmentMap,
        Self::SegmentUnmap,
        Self::Oom,
        Self::Snapshot,
        Self::Annotate,
    ];

    /// PyTorch's word for it.
    pub fn action(self) -> &'static str {
        match self {
            Self::Alloc => "alloc",
            Self::FreeRequested => "free_requested",
            Self::FreeCompleted => "free_completed",
            Self::SegmentAlloc => "segment_alloc",
            Self::SegmentFree => "segment_free",
            Self::SegmentMap => "segment_map",
            Self::SegmentUnmap => "segment_unmap",
            Self::Oom => "oom",
            Self::Snapshot => "snapshot",
            Self::Annotate => "annotate",
            Self::Other => "other",
        }
    }
}

/// A handle of an [`EventContext`] of the same [`Events`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContextId(pub u32);

/// What many events have in common, kept once for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct EventContext {
    /// The raw handle of the stream; 0 is the default stream.
    pub stream: u64,
    /// The pool, from torch 2.12 on.
    pub pool: Option<PoolId>,
    pub compile_context: NameId,
    pub user_metadata: NameId,
    pub internal_metadata: NameId,
    /// Never written by PyTorch itself: tools add it.
    pub category: NameId,
    /// Where the forward pass made what this backward pass works on, as lines of text.
    pub forward_stack: StackId,
}

/// One event, put together from the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    pub kind: EventKind,
    /// Of the block or the segment. For [`EventKind::Oom`] it is 0.
    pub address: u64,
    /// As PyTorch has it: requested for blocks, mapped for segments, rounded for an out-of-memory
    /// error, all active bytes for a snapshot.
    pub bytes: u64,
    /// Bytes that the driver said were free, for [`EventKind::Oom`].
    pub device_free_bytes: Option<u64>,
    /// Microseconds since 1970; 0 if the file has no times (before torch 2.2).
    pub time_us: i64,
    pub stack: StackId,
    pub context: ContextId,
}

/// The events of one device, oldest first, as columns of equal length.
#[derive(Debug, Clone, Default)]
pub struct Events {
    kinds: Vec<EventKind>,
    addresses: Vec<u64>,
    bytes: Vec<u64>,
    times_us: Vec<i64>,
    stacks: Vec<StackId>,
    contexts: Vec<ContextId>,
    known_contexts: Vec<EventContext>,
    context_ids: HashMap<EventContext, ContextId, SeededState>,
}

/// [`Events`], taken apart. The first six are of equal length.
#[derive(Debug, Clone, Default)]
pub struct EventColumns {
    pub kinds: Vec<EventKind>,
    /// For [`EventKind::Oom`] the driver's free bytes, as in the file.
    pub addresses: Vec<u64>,
    pub bytes: Vec<u64>,
    pub times_us: Vec<i64>,
    pub stacks: Vec<StackId>,
    pub contexts: Vec<ContextId>,
    pub known_contexts: Vec<EventContext>,
}

impl Events {
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The event at a position, if there is one.
    pub fn get(&self, at: usize) -> Option<Event> {
        let kind = *self.kinds.get(at)?;
        let is_oom = kind == EventKind::Oom;
        Some(Event {
            kind,
            address: if is_oom { 0 } else { self.addresses[at] },
            bytes: self.bytes[at],
            device_free_bytes: is_oom.then_some(self.addresses[at]),
            time_us: self.times_us[at],
            stack: self.stacks[at],
            context: self.contexts[at],
        })
    }

    /// All events, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Event> + DoubleEndedIterator + '_ {
        (0..self.len()).map(|at| match self.get(at) {
            Some(event) => event,
            None => unreachable!("the position is below the length"),
        })
    }

    pub fn kinds(&self) -> &[EventKind] {
        &self.kinds
    }

    /// Addresses; for [`EventKind::Oom`] the driver's free bytes, as in the file.
    pub fn addresses(&self) -> &[u64] {
        &self.addresses
    }

    pub fn bytes(&self) -> &[u64] {
        &self.bytes
    }

    pub fn times_us(&self) -> &[i64] {
        &self.times_us
    }

    pub fn stacks(&self) -> &[StackId] {
        &self.stacks
    }

    pub fn contexts(&self) -> &[ContextId] {
        &self.contexts
    }

    /// Stream, pool and texts of an event.
    pub fn context(&self, id: ContextId) -> &EventContext {
        &self.known_contexts[id.0 as usize]
    }

    /// Every context that an event has.
    pub fn known_contexts(&self) -> &[EventContext] {
        &self.known_contexts
    }

    /// Appends an event with its context.
    pub fn push(&mut self, event: Event, context: EventContext) {
        // The context of an event is usually that of the one before it.
        let id = match self.contexts.last() {
            Some(last) if self.known_contexts[last.0 as usize] == context => *last,
            _ => self.intern_context(context),
        };
        self.kinds.push(event.kind);
        self.addresses.push(match event.kind {
            EventKind::Oom => event.device_free_bytes.unwrap_or(0),
            _ => event.address,
        });
        self.bytes.push(event.bytes);
        self.times_us.push(event.time_us);
        self.stacks.push(event.stack);
        self.contexts.push(id);
    }

    fn intern_context(&mut self, context: EventContext) -> ContextId {
        let next = ContextId(self.known_contexts.len() as u32);
        let id = *self.context_ids.entry(context).or_insert(next);
        if id == next {
            self.known_contexts.push(context);
        }
        id
    }

    /// The columns themselves, so that each can be dropped when it is no longer needed.
    pub fn into_columns(self) -> EventColumns {
        EventColumns {
            kinds: self.kinds,
            addresses: self.addresses,
            bytes: self.bytes,
            times_us: self.times_us,
            stacks: self.stacks,
            contexts: self.contexts,
            known_contexts: self.known_contexts,
        }
    }

    /// Bytes that the columns occupy, about.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.len() as u64 * 33 + self.known_contexts.len() as u64 * 144
    }
}

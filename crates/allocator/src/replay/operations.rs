//! What a replay works on: the entries of a memory history as columns, and the segments at its end.

use crate::allocator::{Allocator, BlockState, SegmentView};
use crate::driver::Driver;
use crate::ids::{Address, PoolId, StreamId};
use crate::trace::{Action, TraceEvent};

/// The entries of one device, oldest first, as columns of equal length.
///
/// Streams and pools are kept once each ([`Context`]); an entry has the number of its context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    actions: Vec<Action>,
    addresses: Vec<u64>,
    bytes: Vec<u64>,
    contexts: Vec<u32>,
    known_contexts: Vec<Context>,
}

/// What many entries have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Context {
    pub stream: StreamId,
    /// The pool, where the release records it (from 2.12).
    pub pool: Option<PoolId>,
}

/// One entry, assembled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    pub action: Action,
    /// For `oom` the bytes the driver had free.
    pub address: Address,
    pub bytes: u64,
    pub context: Context,
}

impl Operations {
    #[must_use]
    pub fn with_capacity(entries: usize) -> Self {
        Self {
            actions: Vec::with_capacity(entries),
            addresses: Vec::with_capacity(entries),
            bytes: Vec::with_capacity(entries),
            contexts: Vec::with_capacity(entries),
            known_contexts: Vec::new(),
        }
    }

    /// Appends an entry.
    pub fn push(&mut self, operation: Operation) {
        // An entry mostly has the context of the one before it.
        let last = self.contexts.last().copied();
        let is_it = |&id: &u32| self.known_contexts[id as usize] == operation.context;
        let context = last
            .filter(is_it)
            .unwrap_or_else(|| self.intern(operation.context));
        self.actions.push(operation.action);
        self.addresses.push(operation.address.0);
        self.bytes.push(operation.bytes);
        self.contexts.push(context);
    }

    fn intern(&mut self, context: Context) -> u32 {
        let known = self
            .known_contexts
            .iter()
            .position(|other| *other == context);
        let index = known.unwrap_or_else(|| {
            self.known_contexts.push(context);
            self.known_contexts.len() - 1
        });
        index as u32
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.actions.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// The entry at a place below [`len`](Self::len).
    #[inline]
    #[must_use]
    pub fn at(&self, index: usize) -> Operation {
        Operation {
            action: self.actions[index],
            address: Address(self.addresses[index]),
            bytes: self.bytes[index],
            context: self.known_contexts[self.contexts[index] as usize],
        }
    }

    /// Whether an entry equals this one in the fields it has.
    #[inline(always)]
    pub(super) fn has(&self, index: usize, event: &TraceEvent) -> bool {
        let context = &self.known_contexts[self.contexts[index] as usize];
        let action = event.action;
        self.actions[index] == action
            && self.bytes[index] == event.bytes
            && (self.addresses[index] == event.address.0 || action == Action::Oom)
            && (context.stream == event.stream || action == Action::Snapshot)
            && context.pool.is_none_or(|pool| pool == event.pool)
    }

    /// Whether an entry requests the free that another one completes.
    #[inline]
    pub(super) fn is_request_of(&self, index: usize, completed: usize) -> bool {
        self.actions[index] == Action::FreeRequested
            && self.addresses[index] == self.addresses[completed]
            && is_possible(Address(self.addresses[index]), self.bytes[index])
    }

    /// Whether the `free_requested` at a place is followed by its own `free_completed`.
    #[inline]
    pub(super) fn completes_at_once(&self, index: usize) -> bool {
        self.actions.get(index + 1) == Some(&Action::FreeCompleted)
            && self.addresses[index + 1] == self.addresses[index]
    }

    #[must_use]
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    #[must_use]
    pub fn addresses(&self) -> &[u64] {
        &self.addresses
    }

    /// The streams and pools that there are.
    #[must_use]
    pub fn contexts(&self) -> &[Context] {
        &self.known_contexts
    }

    #[must_use]
    pub fn bytes(&self) -> &[u64] {
        &self.bytes
    }

    /// All entries, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Operation> + DoubleEndedIterator + '_ {
        (0..self.len()).map(|index| self.at(index))
    }
}

impl FromIterator<Operation> for Operations {
    fn from_iter<I: IntoIterator<Item = Operation>>(operations: I) -> Self {
        let mut columns = Self::default();
        operations
            .into_iter()
            .for_each(|operation| columns.push(operation));
        columns
    }
}

/// No card has addresses beyond this, or anywhere near as much memory as [`MOST_BYTES`].
const END_OF_ADDRESSES: u64 = 1 << 57;
const MOST_BYTES: u64 = 1 << 50;

/// Whether a card could have had this range. Impossible ones are left out, as contradictions.
pub(super) fn is_possible(address: Address, bytes: u64) -> bool {
    address.0 < END_OF_ADDRESSES && bytes <= MOST_BYTES
}

impl Action {
    /// Whether a card could have done this there.
    #[inline]
    pub(super) fn is_possible(self, address: Address, bytes: u64) -> bool {
        matches!(self, Self::Oom | Self::Snapshot) || is_possible(address, bytes)
    }
}

impl Operation {
    /// Whether a card could have done this.
    pub(super) fn is_possible(&self) -> bool {
        self.action.is_possible(self.address, self.bytes)
    }
}

/// A recording: the entries, and the state when they had all happened.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    pub operations: Operations,
    /// The segments of the device at the end, by address.
    pub segments: Vec<SegmentView>,
}

impl Recording {
    /// What a snapshot of this allocator would hold: its trace, without the pools as in releases
    /// before 2.12, and its segments.
    #[must_use]
    pub fn of<D: Driver>(allocator: &Allocator<D, Vec<TraceEvent>>) -> Self {
        let operations = allocator.sink().iter().map(|event| Operation {
            action: event.action,
            address: event.address,
            bytes: event.bytes,
            context: Context {
                stream: event.stream,
                pool: None,
            },
        });
        Self {
            operations: operations.collect(),
            segments: allocator.segments(),
        }
    }

    /// Whether blocks at the end are live.
    #[must_use]
    pub fn has_live_blocks(&self) -> bool {
        let blocks = self.segments.iter().flat_map(|segment| &segment.blocks);
        blocks
            .into_iter()
            .any(|block| block.state != BlockState::Inactive)
    }
}

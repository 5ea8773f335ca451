//! The pass over a trace that finds the allocation behind each entry.

use std::collections::HashMap;

use ghostgpu_pickle::SeededState;
use ghostgpu_recording::{AllocationId, ChangeId, Event, FailureId};
use ghostgpu_snapshot::EventKind;

/// No event, in a column of events.
pub(super) const NONE: u32 = u32::MAX;

/// No block or segment is larger. This keeps sizes in a damaged file from overflowing sums.
const MOST_BYTES: u64 = 1 << 48;

/// The allocation of each event, found in one pass.
pub(super) struct Pass {
    pub(super) events: Vec<Event>,
    /// For each allocation, the events of the recording that began and ended it.
    pub(super) begins: Vec<u32>,
    pub(super) ends: Vec<u32>,
    /// For each allocation, the entry of the trace that describes it: its alloc, else its free.
    pub(super) known_from: Vec<u32>,
    /// For each allocation, the entry of the trace that freed it.
    pub(super) freed_by: Vec<u32>,
    /// By address: the allocation that is live there at the end, or `NONE` if it was freed.
    pub(super) live: HashMap<u64, u32, SeededState>,
    /// Entries of the trace before which a lost free was inserted.
    pub(super) lost_frees: Vec<usize>,
    /// Entries that name an allocation, and which.
    pub(super) annotated: Vec<(usize, u32)>,
}

impl Pass {
    pub(super) fn over(kinds: &[EventKind], addresses: &[u64], bytes: &[u64]) -> Self {
        let mut pass = Self {
            events: Vec::with_capacity(kinds.len()),
            begins: Vec::new(),
            ends: Vec::new(),
            known_from: Vec::new(),
            freed_by: Vec::new(),
            live: HashMap::default(),
            lost_frees: Vec::new(),
            annotated: Vec::new(),
        };
        let (mut changes, mut failures) = (0, 0);
        let next = |count: &mut u32| {
            *count += 1;
            *count - 1
        };
        for (at, ((kind, address), bytes)) in kinds.iter().zip(addresses).zip(bytes).enumerate() {
            let is_possible = is_possible(*address, *bytes);
            let event = match kind {
                EventKind::Alloc if is_possible => pass.allocate(at, *address),
                EventKind::FreeRequested if is_possible => pass
                    .live_or_older(at, *address)
                    .map_or(Event::Other, Event::FreeRequested),
                EventKind::FreeCompleted if is_possible => pass.free(at, *address),
                EventKind::SegmentAlloc | EventKind::SegmentMap if is_possible => {
                    Event::Reserve(ChangeId(next(&mut changes)))
                }
                EventKind::SegmentFree | EventKind::SegmentUnmap if is_possible => {
                    Event::Release(ChangeId(next(&mut changes)))
                }
                EventKind::Oom => Event::OutOfMemory(FailureId(next(&mut failures))),
                EventKind::Annotate => {
                    let id = pass.live.get(address).filter(|id| **id != NONE);
                    pass.annotated.extend(id.map(|id| (at, *id)));
                    Event::Other
                }
                _ => Event::Other,
            };
            pass.events.push(event);
        }
        pass
    }

    pub(super) fn now(&self) -> u32 {
        self.events.len() as u32
    }

    pub(super) fn add(&mut self, at: usize, begin: u32) -> u32 {
        let id = self.begins.len() as u32;
        self.begins.push(begin);
        self.ends.push(NONE);
        self.known_from.push(at as u32);
        self.freed_by.push(NONE);
        id
    }

    pub(super) fn allocate(&mut self, at: usize, address: u64) -> Event {
        let earlier = self.live.get(&address).copied().filter(|id| *id != NONE);
        if let Some(earlier) = earlier {
            // The trace lacks the free of the previous allocation at this address.
            self.ends[earlier as usize] = self.now();
            self.lost_frees.push(at);
            self.events.push(Event::Free(AllocationId(earlier)));
        }
        let id = self.add(at, self.now());
        self.live.insert(address, id);
        Event::Allocate(AllocationId(id))
    }

    pub(super) fn free(&mut self, at: usize, address: u64) -> Event {
        let Some(AllocationId(id)) = self.live_or_older(at, address) else {
            return Event::Other;
        };
        self.ends[id as usize] = self.now();
        self.freed_by[id as usize] = at as u32;
        self.live.insert(address, NONE);
        Event::Free(AllocationId(id))
    }

    /// The live allocation at an address. One that the trace did not allocate is older than the trace, unless another
    /// allocation was at this address before.
    pub(super) fn live_or_older(&mut self, at: usize, address: u64) -> Option<AllocationId> {
        match self.live.get(&address) {
            Some(&NONE) => None,
            Some(&id) => Some(AllocationId(id)),
            None => {
                let id = self.add(at, NONE);
                self.live.insert(address, id);
                Some(AllocationId(id))
            }
        }
    }

    /// Whether every free has the stack of its allocation, as in histories that do not record the stacks of frees. Then a
    /// free shows where an older allocation was made.
    pub(super) fn frees_have_stack_of_allocation(
        &self,
        stacks: &[ghostgpu_snapshot::StackId],
    ) -> bool {
        let stack = |at: u32| stacks.get(at as usize);
        let born_and_freed = (0..self.begins.len())
            .filter(|id| self.begins[*id] != NONE && self.freed_by[*id] != NONE);
        born_and_freed
            .map(|id| (self.known_from[id], self.freed_by[id]))
            .all(|(alloc, free)| stack(alloc) == stack(free))
    }
}

/// Whether a range is plausible; a damaged file may contain anything.
pub(super) fn is_possible(address: u64, bytes: u64) -> bool {
    bytes <= MOST_BYTES
        && address
            .checked_add(bytes)
            .is_some_and(|end| end <= u64::MAX - MOST_BYTES)
}

//! A driver that does what a recording says it did, and nothing else.

use crate::driver::{Driver, DriverRequest, MemoryInfo, RecordedEvent};
use crate::ids::Address;
use crate::trace::Action;

#[derive(Clone, Debug, Default)]
pub(super) struct ScriptedDriver {
    total: u64,
    /// What it did on behalf of the current request, in order: action, address, bytes.
    script: Vec<(Action, u64, u64)>,
    at: usize,
    free_bytes: u64,
    /// Every mapping of the recording, in order.
    mappings: Vec<u64>,
    mapped: usize,
    reservations: Vec<(u64, u64)>,
}

impl ScriptedDriver {
    pub(super) fn new(total: u64, mappings: Vec<u64>) -> Self {
        Self {
            total,
            mappings,
            // More than most groups and recordings have.
            script: Vec::with_capacity(1024),
            reservations: Vec::with_capacity(64),
            ..Self::default()
        }
    }

    /// Forgets the last script; more is added with [`expect`](Self::expect).
    pub(super) fn start_script(&mut self, free_bytes: u64) {
        self.script.clear();
        self.at = 0;
        self.free_bytes = free_bytes;
    }

    pub(super) fn expect(&mut self, action: Action, address: u64, bytes: u64) {
        self.script.push((action, address, bytes));
    }

    pub(super) fn adopt_reservation(&mut self, address: u64, bytes: u64) {
        if !self.reservations.contains(&(address, bytes)) {
            self.reservations.push((address, bytes));
        }
    }

    /// Whether the next thing it did was this; then it is done.
    fn next_is(&mut self, action: Action, address: u64, bytes: u64) -> bool {
        let is_it = self.script.get(self.at) == Some(&(action, address, bytes));
        self.at += usize::from(is_it);
        is_it
    }

    /// It had no memory before something was released, or at all. It also refuses requests that are not
    /// in the recording: the failure then shows in the entries.
    fn refuses(&self) -> bool {
        let next = self.script.get(self.at);
        !matches!(next, Some((Action::SegmentAlloc | Action::SegmentMap, ..)))
    }
}

impl Driver for ScriptedDriver {
    fn allocate(&mut self, request: DriverRequest) -> Option<Address> {
        if self.refuses() {
            return None;
        }
        let &(action, address, bytes) = self.script.get(self.at)?;
        let is_it = action == Action::SegmentAlloc && bytes == request.bytes;
        self.at += usize::from(is_it);
        is_it.then_some(Address(address))
    }

    fn free(&mut self, address: Address, bytes: u64) {
        self.next_is(Action::SegmentFree, address.0, bytes);
    }

    fn reserve(&mut self, request: DriverRequest) -> Option<Address> {
        // A new segment is filled from its start: the first mapping outside the others is there.
        let known = |address: u64| {
            let inside = |&(start, bytes): &(u64, u64)| (start..start + bytes).contains(&address);
            self.reservations.iter().any(inside)
        };
        let coming = self.mappings[self.mapped.min(self.mappings.len())..].iter();
        let address = coming.copied().find(|&address| !known(address));
        let address = address.unwrap_or(u64::MAX / 2);
        self.reservations.push((address, request.bytes));
        Some(Address(address))
    }

    fn release_reservation(&mut self, address: Address, _bytes: u64) {
        self.reservations.retain(|&(start, _)| start != address.0);
    }

    fn map(&mut self, address: Address, bytes: u64, _page_bytes: u64) -> bool {
        if self.refuses() {
            return false;
        }
        self.mapped += 1;
        self.next_is(Action::SegmentMap, address.0, bytes)
    }

    fn unmap(&mut self, address: Address, bytes: u64) {
        self.next_is(Action::SegmentUnmap, address.0, bytes);
    }

    fn total_bytes(&self) -> u64 {
        self.total
    }

    fn memory_info(&self) -> MemoryInfo {
        MemoryInfo {
            free: self.free_bytes,
            total: self.total,
        }
    }

    /// The recording decides completions.
    fn has_passed(&mut self, _event: RecordedEvent) -> bool {
        false
    }
}

//! A driver that has as much memory as the recorded one had, and gives the addresses it gave.

use std::collections::VecDeque;

use ghostgpu_allocator::{Address, Driver, DriverRequest, MemoryInfo, RecordedEvent};

use super::file::Recorded;

const PAGE_BYTES: u64 = 2 << 20;

pub struct RecordedDriver {
    total: u64,
    total_of_driver: u64,
    free: u64,
    allocations: VecDeque<(u64, u64)>,
    mappings: VecDeque<(u64, u64)>,
    reservations: Vec<(u64, u64)>,
    /// The first thing that was asked for and not recorded.
    pub trouble: Option<String>,
}

impl RecordedDriver {
    pub fn new(recorded: &Recorded) -> Self {
        let of = |wanted: &str| {
            let entries = recorded.trace.iter().filter(|entry| entry.0 == wanted);
            entries.map(|entry| (entry.1, entry.2)).collect()
        };
        Self {
            total: recorded.total_bytes,
            total_of_driver: recorded.total_of_driver,
            free: recorded.free_bytes,
            allocations: of("segment_alloc"),
            mappings: of("segment_map"),
            reservations: Vec::new(),
            trouble: None,
        }
    }

    fn complain(&mut self, what: String) {
        self.trouble.get_or_insert(what);
    }
}

impl Driver for RecordedDriver {
    fn allocate(&mut self, request: DriverRequest) -> Option<Address> {
        let bytes = request.bytes.next_multiple_of(PAGE_BYTES);
        if bytes > self.free {
            return None;
        }
        self.free -= bytes;
        match self.allocations.pop_front() {
            Some((address, recorded)) if recorded == request.bytes => Some(Address(address)),
            other => {
                self.complain(format!(
                    "a segment of {} bytes here, {other:x?} in PyTorch",
                    request.bytes
                ));
                None
            }
        }
    }

    fn free(&mut self, _address: Address, bytes: u64) {
        self.free += bytes.next_multiple_of(PAGE_BYTES);
    }

    fn reserve(&mut self, request: DriverRequest) -> Option<Address> {
        let taken = |&&(address, _): &&(u64, u64)| {
            let inside = |&(start, bytes): &(u64, u64)| (start..start + bytes).contains(&address);
            !self.reservations.iter().any(inside)
        };
        // A new segment is filled from its start: the first mapping outside the others is there.
        let address = self
            .mappings
            .iter()
            .find(taken)
            .map_or(0, |&(address, _)| address);
        self.reservations.push((address, request.bytes));
        Some(Address(address))
    }

    fn release_reservation(&mut self, address: Address, _bytes: u64) {
        self.reservations.retain(|&(start, _)| start != address.0);
    }

    fn map(&mut self, address: Address, bytes: u64, _page_bytes: u64) -> bool {
        if bytes > self.free {
            return false;
        }
        self.free -= bytes;
        match self.mappings.pop_front() {
            Some(recorded) if recorded == (address.0, bytes) => true,
            other => {
                self.complain(format!(
                    "{bytes} bytes mapped at {address} here, {other:x?} in PyTorch"
                ));
                true
            }
        }
    }

    fn unmap(&mut self, _address: Address, bytes: u64) {
        self.free += bytes;
    }

    fn total_bytes(&self) -> u64 {
        self.total
    }

    fn memory_info(&self) -> MemoryInfo {
        MemoryInfo {
            free: self.free,
            total: self.total_of_driver,
        }
    }

    fn has_passed(&mut self, _event: RecordedEvent) -> bool {
        true
    }
}

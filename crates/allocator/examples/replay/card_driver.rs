//! A card whose driver puts segments where an H200's does (`ghostgpu-device`).

use std::cell::Cell;
use std::collections::HashMap;

use ghostgpu_allocator::{Address, Driver, DriverRequest, MemoryInfo, RecordedEvent};
use ghostgpu_device::{Budget, CardMemory, PhysicalId};

/// Addresses of the card's memory: half for allocations, half for reservations.
const WINDOW_START: u64 = 0x7000_0000_0000;
const WINDOW_BYTES: u64 = 1 << 44;

struct Room {
    total: u64,
    used: Cell<u64>,
}

impl Budget for Room {
    fn charge(&self, bytes: u64) -> bool {
        let used = self.used.get() + bytes;
        let fits = used <= self.total;
        if fits {
            self.used.set(used);
        }
        fits
    }

    fn release(&self, bytes: u64) {
        self.used.set(self.used.get().saturating_sub(bytes));
    }
}

pub struct CardDriver {
    memory: CardMemory,
    room: Room,
    /// What lies behind a mapped page.
    pages: HashMap<u64, (u64, PhysicalId)>,
}

impl CardDriver {
    /// A card of `total` bytes on which kernels have run; `context` and `kernels` are what they took.
    pub fn new(total: u64, context: u64, kernels: u64) -> Self {
        let mut memory = CardMemory::new(WINDOW_START, WINDOW_BYTES, context);
        memory.note_first_kernel(kernels);
        Self {
            memory,
            room: Room {
                total,
                used: Cell::new(context + kernels),
            },
            pages: HashMap::new(),
        }
    }
}

impl Driver for CardDriver {
    fn allocate(&mut self, request: DriverRequest) -> Option<Address> {
        self.memory
            .allocate(request.bytes, &self.room)
            .ok()
            .map(Address)
    }

    fn free(&mut self, address: Address, _bytes: u64) {
        // What is freed was allocated here.
        let _ = self.memory.free(address.0, &self.room);
    }

    fn reserve(&mut self, request: DriverRequest) -> Option<Address> {
        self.memory.reserve(request.bytes, 0, 0).ok().map(Address)
    }

    fn release_reservation(&mut self, address: Address, bytes: u64) {
        let _ = self.memory.unreserve(address.0, bytes);
    }

    fn map(&mut self, address: Address, bytes: u64, page_bytes: u64) -> bool {
        let mut mapped = Vec::new();
        for start in (address.0..address.0 + bytes).step_by(page_bytes as usize) {
            let page = self.memory.create_physical(page_bytes, &self.room);
            let Ok(page) = page else {
                for start in mapped {
                    self.unmap(Address(start), page_bytes);
                }
                return false;
            };
            if self.memory.map(start, page_bytes, page).is_err() {
                return false;
            }
            self.pages.insert(start, (page_bytes, page));
            mapped.push(start);
        }
        true
    }

    fn unmap(&mut self, address: Address, bytes: u64) {
        let mut start = address.0;
        while start < address.0 + bytes {
            let Some((page_bytes, page)) = self.pages.remove(&start) else {
                return;
            };
            let _ = self.memory.unmap(start, page_bytes, &self.room);
            let _ = self.memory.release_physical(page, &self.room);
            start += page_bytes;
        }
    }

    fn total_bytes(&self) -> u64 {
        self.room.total
    }

    fn memory_info(&self) -> MemoryInfo {
        MemoryInfo {
            free: self.room.total.saturating_sub(self.room.used.get()),
            total: self.room.total,
        }
    }

    fn has_passed(&mut self, _event: RecordedEvent) -> bool {
        true
    }
}

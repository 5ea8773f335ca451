//! The memory of one card as one process sees it: which addresses are taken, and what they cost.
//!
//! No byte is ever stored. A [`CardMemory`] manages addresses; the cost of an allocation is charged
//! to a [`Budget`], which may be shared with other processes on the same card.

use std::collections::BTreeMap;

use crate::driver_addresses::{DriverAddresses, HostLayout};
use crate::holes::Holes;

/// The driver hands out physical memory in pieces of this size (measured on an H200: the first small
/// tensor makes the free memory drop by exactly this much).
pub const PAGE_BYTES: u64 = 2 << 20;

/// The alignment the CUDA documentation promises for any allocation.
const SMALL_ALIGNMENT_BYTES: u64 = 512;

/// The memory that is left on a card.
pub trait Budget {
    /// Takes `bytes` from the card, or returns false if it has too little left.
    fn charge(&self, bytes: u64) -> bool;
    fn release(&self, bytes: u64);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryError {
    /// The card is full.
    OutOfMemory,
    /// The address, size or handle does not refer to anything that exists.
    Invalid,
}

/// A piece of physical memory without an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PhysicalId(pub u64);

#[derive(Debug)]
struct Physical {
    bytes: u64,
    /// Handles that have not been released.
    handles: u32,
    mappings: u32,
}

#[derive(Debug)]
struct SharedPage {
    holes: Holes,
    /// Increases with every page; small allocations go into the newest page that has room.
    age: u64,
}

#[derive(Debug)]
pub struct CardMemory {
    start: u64,
    len: u64,
    /// For allocations: the upper half of the window.
    addresses: DriverAddresses,
    /// For reservations, which the real driver also places separately, at lower addresses.
    reservable: Holes,
    allocations: BTreeMap<u64, u64>,
    /// Pages that small allocations share, by address.
    shared_pages: BTreeMap<u64, SharedPage>,
    shared_pages_made: u64,
    reservations: BTreeMap<u64, u64>,
    physical: BTreeMap<PhysicalId, Physical>,
    mappings: BTreeMap<u64, (u64, PhysicalId)>,
    next_physical: u64,
}

impl CardMemory {
    /// Memory with addresses in the `len` bytes starting at `start`, on a card whose context takes
    /// `context_bytes`.
    pub fn new(start: u64, len: u64, context_bytes: u64, layout: HostLayout) -> Self {
        let half = len / 2 / PAGE_BYTES * PAGE_BYTES;
        Self {
            start,
            len,
            addresses: DriverAddresses::on_card(start + half, len - half, context_bytes, layout),
            reservable: Holes::one(start, half),
            allocations: BTreeMap::new(),
            shared_pages: BTreeMap::new(),
            shared_pages_made: 0,
            reservations: BTreeMap::new(),
            physical: BTreeMap::new(),
            mappings: BTreeMap::new(),
            next_physical: 1,
        }
    }

    pub fn owns(&self, address: u64) -> bool {
        address >= self.start && address - self.start < self.len
    }

    /// The first kernel was launched; its code and stacks take `bytes`. The caller has charged them.
    pub fn note_first_kernel(&mut self, bytes: u64) {
        self.addresses.grow_context(bytes);
    }

    /// A library took `bytes` for itself, which the caller has charged: only the addresses matter here.
    pub fn note_library_memory(&mut self, bytes: u64) {
        // It is never freed, so the address need not be kept.
        let _ = self.addresses.take(bytes.next_multiple_of(PAGE_BYTES));
    }

    /// `cudaMalloc`.
    pub fn allocate(&mut self, bytes: u64, budget: &dyn Budget) -> Result<u64, MemoryError> {
        if bytes == 0 {
            return Err(MemoryError::Invalid);
        }
        if bytes < PAGE_BYTES {
            return self.allocate_in_shared_page(bytes, budget);
        }
        let rounded = round_to_pages(bytes)?;
        if !budget.charge(rounded) {
            return Err(MemoryError::OutOfMemory);
        }
        let Some(address) = self.addresses.take(rounded) else {
            budget.release(rounded);
            return Err(MemoryError::OutOfMemory);
        };
        self.allocations.insert(address, rounded);
        Ok(address)
    }

    fn allocate_in_shared_page(
        &mut self,
        bytes: u64,
        budget: &dyn Budget,
    ) -> Result<u64, MemoryError> {
        let rounded = bytes.next_multiple_of(SMALL_ALIGNMENT_BYTES);
        let newest_with_room = self
            .shared_pages
            .iter()
            .filter_map(|(&start, page)| {
                Some((page.age, start, page.holes.smallest_fitting(rounded)?))
            })
            .max();
        let (page_address, address) = match newest_with_room {
            Some((_, page, hole)) => (page, hole),
            None => {
                let page = self.add_shared_page(budget)?;
                (page, page)
            }
        };
        if let Some(page) = self.shared_pages.get_mut(&page_address) {
            page.holes.fill(address, rounded);
        }
        self.allocations.insert(address, rounded);
        Ok(address)
    }

    fn add_shared_page(&mut self, budget: &dyn Budget) -> Result<u64, MemoryError> {
        if !budget.charge(PAGE_BYTES) {
            return Err(MemoryError::OutOfMemory);
        }
        let Some(page) = self.addresses.take(PAGE_BYTES) else {
            budget.release(PAGE_BYTES);
            return Err(MemoryError::OutOfMemory);
        };
        self.shared_pages_made += 1;
        let shared = SharedPage {
            holes: Holes::one(page, PAGE_BYTES),
            age: self.shared_pages_made,
        };
        self.shared_pages.insert(page, shared);
        Ok(page)
    }

    /// `cudaFree`.
    pub fn free(&mut self, address: u64, budget: &dyn Budget) -> Result<(), MemoryError> {
        let bytes = self
            .allocations
            .remove(&address)
            .ok_or(MemoryError::Invalid)?;
        let page_address = address & !(PAGE_BYTES - 1);
        if let Some(page) = self.shared_pages.get_mut(&page_address) {
            page.holes.open(address, bytes);
            if page.holes.is_just(page_address, PAGE_BYTES) {
                self.shared_pages.remove(&page_address);
                self.addresses.give_back(page_address, PAGE_BYTES);
                budget.release(PAGE_BYTES);
            }
            return Ok(());
        }
        self.addresses.give_back(address, bytes);
        budget.release(bytes);
        Ok(())
    }

    /// The allocation or mapping that holds `address`: its start and its size.
    pub fn find(&self, address: u64) -> Option<(u64, u64)> {
        let holds = |start: u64, bytes: u64| address - start < bytes;
        if let Some((&start, &bytes)) = self.allocations.range(..=address).next_back()
            && holds(start, bytes)
        {
            return Some((start, bytes));
        }
        let (&start, &(bytes, _)) = self.mappings.range(..=address).next_back()?;
        holds(start, bytes).then_some((start, bytes))
    }

    /// `cuMemAddressReserve`: addresses without memory.
    pub fn reserve(&mut self, bytes: u64, alignment: u64, hint: u64) -> Result<u64, MemoryError> {
        if bytes == 0
            || !bytes.is_multiple_of(PAGE_BYTES)
            || !(alignment == 0 || alignment.is_power_of_two())
        {
            return Err(MemoryError::Invalid);
        }
        let alignment = alignment.max(PAGE_BYTES);
        let address =
            if hint != 0 && hint.is_multiple_of(alignment) && self.reservable.fill(hint, bytes) {
                hint
            } else {
                self.reserve_lowest(bytes, alignment)?
            };
        self.reservations.insert(address, bytes);
        Ok(address)
    }

    fn reserve_lowest(&mut self, bytes: u64, alignment: u64) -> Result<u64, MemoryError> {
        let address = self.reservable.iter().find_map(|(start, len)| {
            let address = start.checked_next_multiple_of(alignment)?;
            let end = address.checked_add(bytes)?;
            (end <= start + len).then_some(address)
        });
        let address = address.ok_or(MemoryError::OutOfMemory)?;
        self.reservable.fill(address, bytes);
        Ok(address)
    }

    /// `cuMemAddressFree`.
    pub fn unreserve(&mut self, address: u64, bytes: u64) -> Result<(), MemoryError> {
        if self.reservations.get(&address) != Some(&bytes) {
            return Err(MemoryError::Invalid);
        }
        self.reservations.remove(&address);
        self.reservable.open(address, bytes);
        Ok(())
    }

    /// `cuMemCreate`: memory without an address.
    pub fn create_physical(
        &mut self,
        bytes: u64,
        budget: &dyn Budget,
    ) -> Result<PhysicalId, MemoryError> {
        if bytes == 0 || !bytes.is_multiple_of(PAGE_BYTES) {
            return Err(MemoryError::Invalid);
        }
        if !budget.charge(bytes) {
            return Err(MemoryError::OutOfMemory);
        }
        let id = PhysicalId(self.next_physical);
        self.next_physical += 1;
        let physical = Physical {
            bytes,
            handles: 1,
            mappings: 0,
        };
        self.physical.insert(id, physical);
        Ok(id)
    }

    /// `cuMemRelease`: the memory is returned once it is also unmapped.
    pub fn release_physical(
        &mut self,
        id: PhysicalId,
        budget: &dyn Budget,
    ) -> Result<(), MemoryError> {
        let physical = self.physical.get_mut(&id).ok_or(MemoryError::Invalid)?;
        if physical.handles == 0 {
            return Err(MemoryError::Invalid);
        }
        physical.handles -= 1;
        self.drop_if_unused(id, budget);
        Ok(())
    }

    /// `cuMemRetainAllocationHandle`: another handle on the memory mapped at `address`.
    pub fn retain_physical_at(&mut self, address: u64) -> Option<PhysicalId> {
        let (&start, &(bytes, id)) = self.mappings.range(..=address).next_back()?;
        if address - start >= bytes {
            return None;
        }
        self.physical.get_mut(&id)?.handles += 1;
        Some(id)
    }

    /// `cuMemMap`.
    pub fn map(&mut self, address: u64, bytes: u64, id: PhysicalId) -> Result<(), MemoryError> {
        let is_reserved = self
            .reservations
            .range(..=address)
            .next_back()
            .is_some_and(|(&start, &len)| address - start + bytes <= len);
        let is_free = self
            .mappings
            .range(..address + bytes)
            .next_back()
            .is_none_or(|(&start, &(len, _))| start + len <= address);
        let physical = self.physical.get_mut(&id).ok_or(MemoryError::Invalid)?;
        if !is_reserved || !is_free || physical.bytes != bytes {
            return Err(MemoryError::Invalid);
        }
        physical.mappings += 1;
        self.mappings.insert(address, (bytes, id));
        Ok(())
    }

    /// `cuMemUnmap`: the range must consist of whole mappings.
    pub fn unmap(
        &mut self,
        address: u64,
        bytes: u64,
        budget: &dyn Budget,
    ) -> Result<(), MemoryError> {
        let end = address.checked_add(bytes).ok_or(MemoryError::Invalid)?;
        let inside: Vec<(u64, u64, PhysicalId)> = self
            .mappings
            .range(address..end)
            .map(|(&start, &(len, id))| (start, len, id))
            .collect();
        let covered: u64 = inside.iter().map(|&(_, len, _)| len).sum();
        if covered != bytes {
            return Err(MemoryError::Invalid);
        }
        for (start, _, id) in inside {
            self.mappings.remove(&start);
            if let Some(physical) = self.physical.get_mut(&id) {
                physical.mappings -= 1;
            }
            self.drop_if_unused(id, budget);
        }
        Ok(())
    }

    fn drop_if_unused(&mut self, id: PhysicalId, budget: &dyn Budget) {
        if let Some(physical) = self.physical.get(&id)
            && physical.handles == 0
            && physical.mappings == 0
        {
            budget.release(physical.bytes);
            self.physical.remove(&id);
        }
    }
}

fn round_to_pages(bytes: u64) -> Result<u64, MemoryError> {
    bytes
        .checked_next_multiple_of(PAGE_BYTES)
        .ok_or(MemoryError::OutOfMemory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    struct Card {
        left: Cell<u64>,
    }

    impl Card {
        fn with_pages(pages: u64) -> Self {
            Self {
                left: Cell::new(pages * PAGE_BYTES),
            }
        }

        fn pages_left(&self) -> u64 {
            self.left.get() / PAGE_BYTES
        }
    }

    impl Budget for Card {
        fn charge(&self, bytes: u64) -> bool {
            let left = self.left.get();
            if bytes <= left {
                self.left.set(left - bytes);
            }
            bytes <= left
        }

        fn release(&self, bytes: u64) {
            self.left.set(self.left.get() + bytes);
        }
    }

    const START: u64 = 0x7f00_0000_0000;

    fn memory() -> CardMemory {
        CardMemory::new(START, 1 << 40, 512 << 20, HostLayout::default())
    }

    #[test]
    fn an_allocation_costs_whole_pages_and_a_free_returns_them() {
        let (mut memory, card) = (memory(), Card::with_pages(10));
        let address = memory.allocate(3 * PAGE_BYTES + 1, &card).unwrap();
        assert_eq!(card.pages_left(), 6);
        assert_eq!(memory.find(address + 5), Some((address, 4 * PAGE_BYTES)));
        memory.free(address, &card).unwrap();
        assert_eq!(card.pages_left(), 10);
        assert_eq!(memory.free(address, &card), Err(MemoryError::Invalid));
    }

    #[test]
    fn small_allocations_share_a_page() {
        let (mut memory, card) = (memory(), Card::with_pages(2));
        let first = memory.allocate(1, &card).unwrap();
        let second = memory.allocate(1000, &card).unwrap();
        assert_eq!(second - first, 512);
        assert_eq!(card.pages_left(), 1);
        memory.free(first, &card).unwrap();
        assert_eq!(card.pages_left(), 1);
        memory.free(second, &card).unwrap();
        assert_eq!(card.pages_left(), 2);
    }

    #[test]
    fn a_full_card_refuses_and_stays_as_it_was() {
        let (mut memory, card) = (memory(), Card::with_pages(2));
        let held = memory.allocate(2 * PAGE_BYTES, &card).unwrap();
        assert_eq!(memory.allocate(1, &card), Err(MemoryError::OutOfMemory));
        memory.free(held, &card).unwrap();
        assert_eq!(card.pages_left(), 2);
    }

    #[test]
    fn a_request_near_the_end_of_the_integers_is_out_of_memory() {
        let (mut memory, card) = (memory(), Card::with_pages(2));
        assert_eq!(
            memory.allocate(u64::MAX, &card),
            Err(MemoryError::OutOfMemory)
        );
    }

    #[test]
    fn mapped_memory_is_paid_until_it_is_both_released_and_unmapped() {
        let (mut memory, card) = (memory(), Card::with_pages(4));
        let range = memory.reserve(8 * PAGE_BYTES, 0, 0).unwrap();
        let physical = memory.create_physical(PAGE_BYTES, &card).unwrap();
        memory
            .map(range + PAGE_BYTES, PAGE_BYTES, physical)
            .unwrap();
        assert_eq!(
            memory.retain_physical_at(range + PAGE_BYTES + 9),
            Some(physical)
        );
        memory.release_physical(physical, &card).unwrap();
        memory.release_physical(physical, &card).unwrap();
        assert_eq!(card.pages_left(), 3);
        memory.unmap(range + PAGE_BYTES, PAGE_BYTES, &card).unwrap();
        assert_eq!(card.pages_left(), 4);
        memory.unreserve(range, 8 * PAGE_BYTES).unwrap();
    }

    #[test]
    fn mapping_twice_or_outside_a_reservation_is_refused() {
        let (mut memory, card) = (memory(), Card::with_pages(4));
        let range = memory.reserve(2 * PAGE_BYTES, 0, 0).unwrap();
        let physical = memory.create_physical(PAGE_BYTES, &card).unwrap();
        memory.map(range, PAGE_BYTES, physical).unwrap();
        for address in [range, range + 2 * PAGE_BYTES, START - PAGE_BYTES] {
            assert_eq!(
                memory.map(address, PAGE_BYTES, physical),
                Err(MemoryError::Invalid)
            );
        }
        assert_eq!(
            memory.unmap(range, 2 * PAGE_BYTES, &card),
            Err(MemoryError::Invalid)
        );
    }
}

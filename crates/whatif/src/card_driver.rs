//! A card for the replica: a capacity, and the addresses that the real driver would assign.
//!
//! Up to torch 2.11, equal blocks are ordered by address, so the places of segments decide which block is
//! reused. The rule was measured on an H200 ([`ghostgpu_device::DriverAddresses`]).

use ghostgpu_allocator::{Address, Driver, DriverRequest, MemoryInfo, Outside, RecordedEvent};
use ghostgpu_device::{DriverAddresses, HostLayout, PAGE_BYTES};

/// Below everything that is ever mapped, with room for many times the largest card.
const FIRST_ADDRESS: u64 = 0x7f00_0000_0000 - ADDRESS_BYTES;
const ADDRESS_BYTES: u64 = 1 << 44;
/// The distance between address ranges of expandable segments.
const FIRST_RESERVATION: u64 = 0x1000_0000_0000;
/// What a context takes before the first allocation, as far as addresses go.
const CONTEXT_BYTES: u64 = 512 << 20;

/// A card with a memory limit for the allocator.
#[derive(Debug)]
pub struct CardDriver {
    capacity_bytes: u64,
    in_use_bytes: u64,
    addresses: DriverAddresses,
    next_reservation: u64,
    /// See [`with_code_before_every`](Self::with_code_before_every).
    code_interval: Option<u64>,
    segments_made: u64,
}

/// Pages that kernel code takes while a training warms up: as many as an H200 took for a ResNet.
const CODE_PAGES: u64 = 4;

impl CardDriver {
    /// A card on which the allocator can get `capacity_bytes` from the driver.
    pub fn new(capacity_bytes: u64, layout: HostLayout) -> Self {
        Self {
            capacity_bytes,
            in_use_bytes: 0,
            addresses: DriverAddresses::new(FIRST_ADDRESS, ADDRESS_BYTES, CONTEXT_BYTES, layout),
            next_reservation: FIRST_RESERVATION,
            code_interval: None,
            segments_made: 0,
        }
    }

    /// The same beside a context of this size, which is not part of the capacity.
    pub fn with_context(capacity_bytes: u64, context_bytes: u64, layout: HostLayout) -> Self {
        Self {
            addresses: DriverAddresses::on_card(
                FIRST_ADDRESS,
                ADDRESS_BYTES,
                context_bytes,
                layout,
            ),
            ..Self::new(capacity_bytes, layout)
        }
    }

    /// Makes the driver take a page for kernel code before every `segments`-th segment, a few times. When a real driver
    /// does so depends on the sizes of kernels, which are not known. The pages are not part of the capacity.
    pub fn with_code_before_every(self, segments: u64) -> Self {
        Self {
            code_interval: Some(segments),
            ..self
        }
    }

    fn load_code(&mut self) {
        self.segments_made += 1;
        let Some(interval) = self.code_interval else {
            return;
        };
        let is_due = self.segments_made.is_multiple_of(interval);
        if is_due && self.segments_made <= CODE_PAGES.saturating_mul(interval) {
            let _ = self.addresses.take(PAGE_BYTES);
        }
    }

    fn charge(&mut self, bytes: u64) -> bool {
        let sum = self.in_use_bytes.checked_add(bytes);
        let fits = sum.is_some_and(|sum| sum <= self.capacity_bytes);
        if fits {
            self.in_use_bytes += bytes;
        }
        fits
    }
}

impl Driver for CardDriver {
    fn allocate(&mut self, request: DriverRequest) -> Option<Address> {
        let bytes = request.bytes.checked_next_multiple_of(PAGE_BYTES)?;
        if !self.charge(bytes) {
            return None;
        }
        self.load_code();
        match self.addresses.take(bytes) {
            Some(address) => Some(Address(address)),
            None => {
                self.in_use_bytes -= bytes;
                None
            }
        }
    }

    fn free(&mut self, address: Address, bytes: u64) {
        let bytes = bytes.next_multiple_of(PAGE_BYTES);
        self.addresses.give_back(address.0, bytes);
        self.in_use_bytes = self.in_use_bytes.saturating_sub(bytes);
    }

    fn reserve(&mut self, request: DriverRequest) -> Option<Address> {
        let address = self.next_reservation;
        let bytes = request.bytes.checked_next_multiple_of(PAGE_BYTES)?;
        self.next_reservation = address
            .checked_add(bytes)
            .filter(|&end| end < FIRST_ADDRESS)?;
        Some(Address(address))
    }

    fn release_reservation(&mut self, address: Address, bytes: u64) {
        if address.0.checked_add(bytes) == Some(self.next_reservation) {
            self.next_reservation = address.0;
        }
    }

    fn map(&mut self, _address: Address, bytes: u64, _page_bytes: u64) -> bool {
        self.charge(bytes)
    }

    fn unmap(&mut self, _address: Address, bytes: u64) {
        self.in_use_bytes = self.in_use_bytes.saturating_sub(bytes);
    }

    fn total_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    fn memory_info(&self) -> MemoryInfo {
        MemoryInfo {
            free: self.capacity_bytes.saturating_sub(self.in_use_bytes),
            total: self.capacity_bytes,
        }
    }

    fn take_outside(&mut self, taken: Outside) {
        match taken {
            Outside::FirstKernel { bytes } => self.addresses.grow_context(bytes),
            // It stays as long as the process, so the address need not be kept.
            Outside::Library { bytes } => {
                let pages = bytes.checked_next_multiple_of(PAGE_BYTES);
                let _ = pages.and_then(|bytes| self.addresses.take(bytes));
            }
        }
    }

    /// Completion is what the recording says, not what a card does.
    fn has_passed(&mut self, _event: RecordedEvent) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ghostgpu_allocator::{PoolId, StreamId};

    const MIB: u64 = 1 << 20;

    fn request(bytes: u64) -> DriverRequest {
        DriverRequest {
            bytes,
            stream: StreamId::DEFAULT,
            pool: PoolId::DEFAULT,
        }
    }

    #[test]
    fn what_is_over_the_capacity_is_refused_and_what_is_freed_can_be_had_again() {
        let mut card = CardDriver::new(64 * MIB, HostLayout::default());
        let first = card.allocate(request(40 * MIB)).expect("room");
        assert!(card.allocate(request(30 * MIB)).is_none());
        assert_eq!(card.memory_info().free, 24 * MIB);
        card.free(first, 40 * MIB);
        assert!(card.allocate(request(64 * MIB)).is_some());
        assert!(!card.map(Address(FIRST_RESERVATION), 2 * MIB, 2 * MIB));
    }

    #[test]
    fn what_others_take_moves_what_comes_next() {
        let second = |taken: Option<Outside>| {
            let mut card = CardDriver::with_context(1 << 40, 552_402_944, HostLayout::Packed);
            card.allocate(request(20 * MIB)).expect("room");
            if let Some(taken) = taken {
                card.take_outside(taken);
            }
            assert_eq!(card.in_use_bytes, 20 * MIB);
            card.allocate(request(20 * MIB)).expect("room").0
        };
        let alone = second(None);
        let library = second(Some(Outside::Library { bytes: 14 * MIB }));
        let kernel = second(Some(Outside::FirstKernel { bytes: 100 * MIB }));
        assert_ne!(library, alone);
        // Where the context was before its first kernel.
        assert!(kernel > alone, "{kernel:x} > {alone:x}");
    }

    #[test]
    fn segments_of_the_default_size_share_no_address() {
        let mut card = CardDriver::new(1 << 40, HostLayout::Packed);
        let mut starts: Vec<u64> = (0..100)
            .map(|_| card.allocate(request(20 * MIB)).expect("room").0)
            .collect();
        starts.sort_unstable();
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= 20 * MIB));
    }

    #[test]
    fn code_takes_addresses_a_few_times_and_none_of_the_capacity() {
        let segments = 20;
        let addresses = |code: Option<u64>| {
            let card = CardDriver::new(segments * 2 * MIB, HostLayout::Packed);
            let mut card = match code {
                Some(interval) => card.with_code_before_every(interval),
                None => card,
            };
            let mut segment = || card.allocate(request(2 * MIB)).expect("room for it").0;
            (0..segments).map(|_| segment()).collect::<Vec<u64>>()
        };
        let gaps = |addresses: &[u64]| {
            let pairs = addresses.windows(2);
            pairs
                .filter(|pair| pair[1].abs_diff(pair[0]) == 4 * MIB)
                .count() as u64
        };
        let (plain, with_code) = (addresses(None), addresses(Some(3)));
        assert_eq!(plain[..2], with_code[..2]);
        assert_eq!(gaps(&with_code) - gaps(&plain), CODE_PAGES);
    }
}

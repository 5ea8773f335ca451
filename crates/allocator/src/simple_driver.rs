//! A driver with a capacity and the plainest address rule: the lowest gap that is large enough.

use crate::driver::{Driver, DriverRequest, MemoryInfo, RecordedEvent};
use crate::ids::Address;

const PAGE_BYTES: u64 = 2 << 20;
const FIRST_ALLOCATION: u64 = 0x7f00_0000_0000;
const FIRST_RESERVATION: u64 = 0x1000_0000_0000;

/// A card with `total` bytes, of which some are out of the allocator's reach. Addresses ascend; a gap
/// that was left is filled again. Events have passed as soon as they are asked about, unless
/// [`hold_events`](Self::hold_events) says otherwise.
#[derive(Clone, Debug)]
pub struct SimpleDriver {
    total: u64,
    /// What the context and others hold.
    elsewhere: u64,
    in_use: u64,
    allocations: Ranges,
    reservations: Ranges,
    events_passed: u64,
}

impl SimpleDriver {
    /// A card whose whole memory the allocator may have.
    #[must_use]
    pub fn new(total: u64) -> Self {
        Self {
            total,
            elsewhere: 0,
            in_use: 0,
            allocations: Ranges::from(FIRST_ALLOCATION),
            reservations: Ranges::from(FIRST_RESERVATION),
            events_passed: u64::MAX,
        }
    }

    /// The same card, of which `bytes` are held by another process.
    #[must_use]
    pub fn with_held_elsewhere(mut self, bytes: u64) -> Self {
        self.elsewhere = bytes;
        self
    }

    /// From now on only events up to this number have passed.
    pub fn hold_events(&mut self, passed: u64) {
        self.events_passed = passed;
    }

    /// Bytes that the allocator holds.
    #[must_use]
    pub fn in_use(&self) -> u64 {
        self.in_use
    }

    fn charge(&mut self, bytes: u64) -> bool {
        let fits = (self.in_use.saturating_add(self.elsewhere))
            .checked_add(bytes)
            .is_some_and(|sum| sum <= self.total);
        if fits {
            self.in_use += bytes;
        }
        fits
    }
}

impl Driver for SimpleDriver {
    fn allocate(&mut self, request: DriverRequest) -> Option<Address> {
        let bytes = request.bytes.checked_next_multiple_of(PAGE_BYTES)?;
        self.charge(bytes).then(|| self.allocations.take(bytes))
    }

    fn free(&mut self, address: Address, _bytes: u64) {
        self.in_use -= self.allocations.give_back(address);
    }

    fn reserve(&mut self, request: DriverRequest) -> Option<Address> {
        let bytes = request.bytes.checked_next_multiple_of(PAGE_BYTES)?;
        Some(self.reservations.take(bytes))
    }

    fn release_reservation(&mut self, address: Address, _bytes: u64) {
        self.reservations.give_back(address);
    }

    fn map(&mut self, _address: Address, bytes: u64, _page_bytes: u64) -> bool {
        self.charge(bytes)
    }

    fn unmap(&mut self, _address: Address, bytes: u64) {
        self.in_use -= bytes;
    }

    fn total_bytes(&self) -> u64 {
        self.total
    }

    fn memory_info(&self) -> MemoryInfo {
        MemoryInfo {
            free: self.total.saturating_sub(self.in_use + self.elsewhere),
            total: self.total,
        }
    }

    fn reserve_room(&mut self, segments: usize) {
        self.allocations.reserve(segments);
        self.reservations.reserve(segments);
    }

    fn has_passed(&mut self, event: RecordedEvent) -> bool {
        event.number <= self.events_passed
    }
}

/// Taken ranges above a start, lowest gap first. Sorted arrays: segments are few and long-lived.
#[derive(Clone, Debug)]
struct Ranges {
    start: u64,
    /// Address and length.
    taken: Vec<(u64, u64)>,
    /// Address and length of gaps between taken ranges.
    gaps: Vec<(u64, u64)>,
}

impl Ranges {
    fn from(start: u64) -> Self {
        Self {
            start,
            taken: Vec::new(),
            gaps: Vec::new(),
        }
    }

    fn reserve(&mut self, ranges: usize) {
        self.taken.reserve(ranges);
        self.gaps.reserve(ranges);
    }

    fn take(&mut self, bytes: u64) -> Address {
        let gap = self.gaps.iter().position(|&(_, length)| length >= bytes);
        let address = match gap {
            Some(place) => {
                let (address, length) = self.gaps[place];
                if length > bytes {
                    self.gaps[place] = (address + bytes, length - bytes);
                } else {
                    self.gaps.remove(place);
                }
                address
            }
            None => {
                let last = self.taken.last();
                last.map_or(self.start, |&(address, length)| address + length)
            }
        };
        let place = self.taken.partition_point(|&(other, _)| other < address);
        self.taken.insert(place, (address, bytes));
        Address(address)
    }

    fn give_back(&mut self, address: Address) -> u64 {
        let place = self
            .taken
            .binary_search_by_key(&address.0, |&(start, _)| start);
        let Ok(place) = place else {
            return 0;
        };
        let (start, bytes) = self.taken.remove(place);
        let end = start + bytes;
        let is_last = place == self.taken.len();
        // The gap joins those before and after it; at the end there is nothing to keep.
        let mut gap = (start, bytes);
        let after = self.gaps.partition_point(|&(other, _)| other < start);
        if let Some(&(other, length)) = self.gaps.get(after)
            && other == end
        {
            gap.1 += length;
            self.gaps.remove(after);
        }
        let before = after.checked_sub(1).map(|before| self.gaps[before]);
        if let Some((other, length)) = before
            && other + length == start
        {
            gap = (other, length + gap.1);
            self.gaps.remove(after - 1);
        }
        if !is_last {
            let place = self.gaps.partition_point(|&(other, _)| other < gap.0);
            self.gaps.insert(place, gap);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{PoolId, StreamId};

    fn request(bytes: u64) -> DriverRequest {
        DriverRequest {
            bytes,
            stream: StreamId::DEFAULT,
            pool: PoolId::DEFAULT,
        }
    }

    #[test]
    fn a_gap_is_filled_before_the_end_grows() {
        let mut driver = SimpleDriver::new(1 << 30);
        let first = driver.allocate(request(4 << 20)).unwrap();
        let second = driver.allocate(request(2 << 20)).unwrap();
        assert_eq!(second, first.plus(4 << 20));
        driver.free(first, 4 << 20);
        assert_eq!(driver.allocate(request(2 << 20)), Some(first));
        assert_eq!(
            driver.allocate(request(4 << 20)),
            Some(second.plus(2 << 20))
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut driver = SimpleDriver::new(6 << 20).with_held_elsewhere(2 << 20);
        assert!(driver.allocate(request(4 << 20)).is_some());
        assert!(driver.allocate(request(2 << 20)).is_none());
        assert_eq!(driver.memory_info().free, 0);
    }
}

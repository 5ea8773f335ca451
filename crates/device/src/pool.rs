//! The stream-ordered memory pool behind `cudaMallocAsync`.
//!
//! Modelled after recordings of the real one (`ground_truth/h200/driver_pool.csv`, replayed in the
//! tests): allocations lie in one growing range, each in the smallest hole that fits; physical memory
//! backs the range in granules of 32 MiB, which move to where they are needed. So what the pool holds
//! is the most granules that live allocations have ever touched at once, until it is trimmed.

use std::collections::BTreeMap;

use crate::holes::Holes;
use crate::memory::{Budget, MemoryError};

const GRANULE_BYTES: u64 = 32 << 20;
const ALIGNMENT_BYTES: u64 = 512;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStatistics {
    pub reserved_bytes: u64,
    pub reserved_high_bytes: u64,
    pub used_bytes: u64,
    pub used_high_bytes: u64,
}

#[derive(Debug)]
pub struct StreamOrderedPool {
    start: u64,
    holes: Holes,
    /// Address to the bytes asked for.
    allocations: BTreeMap<u64, u64>,
    /// Granule number to how many allocations lie in it, for those with any.
    touched: BTreeMap<u64, u64>,
    held_granules: u64,
    statistics: PoolStatistics,
    /// Memory beyond this is given back when the device is synchronised.
    pub release_threshold_bytes: u64,
}

impl StreamOrderedPool {
    pub fn new(start: u64, len: u64) -> Self {
        Self {
            start,
            holes: Holes::one(start, len),
            allocations: BTreeMap::new(),
            touched: BTreeMap::new(),
            held_granules: 0,
            statistics: PoolStatistics::default(),
            release_threshold_bytes: 0,
        }
    }

    pub fn statistics(&self) -> PoolStatistics {
        self.statistics
    }

    pub fn owns(&self, address: u64) -> bool {
        self.allocations.contains_key(&address)
    }

    /// The allocation that holds `address`: its start and its size.
    pub fn find(&self, address: u64) -> Option<(u64, u64)> {
        let (&start, &bytes) = self.allocations.range(..=address).next_back()?;
        (address - start < bytes).then_some((start, bytes))
    }

    /// Forgets the most that was ever reserved, or the most that was ever used.
    pub fn reset_high_mark(&mut self, of_reserved: bool) {
        if of_reserved {
            self.statistics.reserved_high_bytes = self.statistics.reserved_bytes;
        } else {
            self.statistics.used_high_bytes = self.statistics.used_bytes;
        }
    }

    /// `cudaMallocAsync`.
    pub fn allocate(&mut self, bytes: u64, budget: &dyn Budget) -> Result<u64, MemoryError> {
        let rounded = bytes
            .checked_next_multiple_of(ALIGNMENT_BYTES)
            .filter(|&rounded| rounded > 0)
            .ok_or(MemoryError::Invalid)?;
        let address = self
            .holes
            .smallest_fitting(rounded)
            .ok_or(MemoryError::OutOfMemory)?;
        let newly_touched = self
            .granules(address, rounded)
            .filter(|granule| !self.touched.contains_key(granule))
            .count() as u64;
        let needed = self.touched.len() as u64 + newly_touched;
        while self.held_granules < needed {
            if !budget.charge(GRANULE_BYTES) {
                // What was taken so far stays with the pool, as on the real card.
                self.note_reserved();
                return Err(MemoryError::OutOfMemory);
            }
            self.held_granules += 1;
        }
        self.note_reserved();
        self.holes.fill(address, rounded);
        for granule in self.granules(address, rounded) {
            *self.touched.entry(granule).or_default() += 1;
        }
        self.allocations.insert(address, bytes);
        self.statistics.used_bytes += bytes;
        self.statistics.used_high_bytes = self
            .statistics
            .used_high_bytes
            .max(self.statistics.used_bytes);
        Ok(address)
    }

    /// `cudaFreeAsync`: the pool keeps the memory.
    pub fn free(&mut self, address: u64) -> Result<(), MemoryError> {
        let bytes = self
            .allocations
            .remove(&address)
            .ok_or(MemoryError::Invalid)?;
        let rounded = bytes.next_multiple_of(ALIGNMENT_BYTES);
        self.holes.open(address, rounded);
        for granule in self.granules(address, rounded) {
            if let Some(count) = self.touched.get_mut(&granule) {
                *count -= 1;
                if *count == 0 {
                    self.touched.remove(&granule);
                }
            }
        }
        self.statistics.used_bytes -= bytes;
        Ok(())
    }

    /// `cudaMemPoolTrimTo`: gives back granules that nothing touches, down to `keep_bytes`.
    pub fn trim(&mut self, keep_bytes: u64, budget: &dyn Budget) {
        let keep = keep_bytes
            .div_ceil(GRANULE_BYTES)
            .max(self.touched.len() as u64);
        if self.held_granules > keep {
            budget.release((self.held_granules - keep) * GRANULE_BYTES);
            self.held_granules = keep;
            self.note_reserved();
        }
    }

    /// What synchronising does: memory above the threshold goes back.
    pub fn synchronize(&mut self, budget: &dyn Budget) {
        self.trim(self.release_threshold_bytes, budget);
    }

    fn note_reserved(&mut self) {
        let reserved = self.held_granules * GRANULE_BYTES;
        self.statistics.reserved_bytes = reserved;
        self.statistics.reserved_high_bytes = self.statistics.reserved_high_bytes.max(reserved);
    }

    fn granules(&self, address: u64, bytes: u64) -> std::ops::RangeInclusive<u64> {
        let first = (address - self.start) / GRANULE_BYTES;
        first..=(address - self.start + bytes - 1) / GRANULE_BYTES
    }
}

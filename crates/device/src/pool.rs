//! The stream-ordered memory pool of `cudaMallocAsync`.
//!
//! Modelled after recordings of the real one (`ground_truth/h200/driver_pool.csv` and
//! `driver_pool_busy.csv`, replayed in the tests):
//!
//! * Allocations are in one growing range, backed by granules of 32 MiB physical memory. A granule that no allocation
//!   touches moves to where it is needed.
//! * Memory freed in a stream can be reused by that stream at once. Until the card has executed the free, its hole is
//!   pending: it merges only with other pending holes of its stream, and its granules cannot move.
//! * An allocation goes to the start of the smallest pending hole of its stream that fits or, if there is none, of the
//!   smallest other hole; of several equal ones, the oldest.
//! * Once the card has executed the frees, pending holes join the others, the newest first.
//!
//! On a real card, timing decides when that happens, and the memory held differs from run to run by a few granules.
//! Here, the card executes frees when the host waits for it, like a real card that is always busy.

use std::collections::BTreeMap;

use crate::aged_holes::AgedHoles;
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

/// Identifies a stream.
pub type StreamId = u64;

#[derive(Debug)]
pub struct StreamOrderedPool {
    start: u64,
    /// Free for all streams.
    holes: AgedHoles,
    /// Freed in a stream that the host has not waited for since.
    pending: BTreeMap<StreamId, AgedHoles>,
    /// Address to requested bytes.
    allocations: BTreeMap<u64, u64>,
    /// Granule to how many of its bytes are allocated or pending; granules without any are left out.
    occupied: BTreeMap<u64, u64>,
    held_granules: u64,
    statistics: PoolStatistics,
    /// Memory beyond this is returned when the host waits for the card.
    pub release_threshold_bytes: u64,
}

impl StreamOrderedPool {
    pub fn new(start: u64, len: u64) -> Self {
        let mut holes = AgedHoles::default();
        if len > 0 {
            holes.open(start, len);
        }
        Self {
            start,
            holes,
            pending: BTreeMap::new(),
            allocations: BTreeMap::new(),
            occupied: BTreeMap::new(),
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

    /// Resets the maximum of reserved bytes, or that of used bytes.
    pub fn reset_high_mark(&mut self, of_reserved: bool) {
        if of_reserved {
            self.statistics.reserved_high_bytes = self.statistics.reserved_bytes;
        } else {
            self.statistics.used_high_bytes = self.statistics.used_bytes;
        }
    }

    /// `cudaMallocAsync`.
    pub fn allocate(
        &mut self,
        bytes: u64,
        stream: StreamId,
        budget: &dyn Budget,
    ) -> Result<u64, MemoryError> {
        let rounded = bytes
            .checked_next_multiple_of(ALIGNMENT_BYTES)
            .filter(|&rounded| rounded > 0)
            .ok_or(MemoryError::Invalid)?;
        let address = self.place(rounded, stream, budget)?;
        self.allocations.insert(address, bytes);
        self.statistics.used_bytes += bytes;
        self.statistics.used_high_bytes = self
            .statistics
            .used_high_bytes
            .max(self.statistics.used_bytes);
        Ok(address)
    }

    fn place(
        &mut self,
        bytes: u64,
        stream: StreamId,
        budget: &dyn Budget,
    ) -> Result<u64, MemoryError> {
        if let Some(address) = self.place_in_pending(bytes, stream) {
            return Ok(address);
        }
        let fitting = self.holes.smallest_fitting(bytes);
        if fitting.is_none_or(|address| self.granules_with(address, bytes) > self.held_granules) {
            // Rather than growing, the pool makes this stream wait for another one's frees.
            let others: Vec<StreamId> = self.pending.keys().copied().collect();
            let found = others
                .into_iter()
                .find_map(|other| self.place_in_pending(bytes, other));
            if let Some(address) = found {
                return Ok(address);
            }
        }
        if let Some(address) = fitting
            && self.grow_to(self.granules_with(address, bytes), budget)
        {
            return Ok(self.place_in_hole(address, bytes));
        }
        // As a last resort, wait for all frees.
        self.complete_frees(None);
        let address = self.holes.smallest_fitting(bytes);
        let address = address.ok_or(MemoryError::OutOfMemory)?;
        if self.grow_to(self.granules_with(address, bytes), budget) {
            Ok(self.place_in_hole(address, bytes))
        } else {
            Err(MemoryError::OutOfMemory)
        }
    }

    fn place_in_pending(&mut self, bytes: u64, stream: StreamId) -> Option<u64> {
        let holes = self.pending.get_mut(&stream)?;
        let address = holes.smallest_fitting(bytes)?;
        holes.fill(address, bytes);
        Some(address)
    }

    fn place_in_hole(&mut self, address: u64, bytes: u64) -> u64 {
        self.holes.fill(address, bytes);
        for (granule, part) in self.granules(address, bytes) {
            *self.occupied.entry(granule).or_default() += part;
        }
        address
    }

    /// How many granules would be occupied with an allocation there.
    fn granules_with(&self, address: u64, bytes: u64) -> u64 {
        let granules = self.granules(address, bytes);
        let newly = granules.filter(|(granule, _)| !self.occupied.contains_key(granule));
        self.occupied.len() as u64 + newly.count() as u64
    }

    /// Takes granules until there are that many. If the card is full before that, the pool keeps what it has taken, as
    /// on a real card.
    fn grow_to(&mut self, granules: u64, budget: &dyn Budget) -> bool {
        while self.held_granules < granules && budget.charge(GRANULE_BYTES) {
            self.held_granules += 1;
        }
        self.note_reserved();
        self.held_granules >= granules
    }

    /// `cudaFreeAsync`: the pool keeps the memory.
    pub fn free(&mut self, address: u64, stream: StreamId) -> Result<(), MemoryError> {
        let bytes = self
            .allocations
            .remove(&address)
            .ok_or(MemoryError::Invalid)?;
        let rounded = bytes.next_multiple_of(ALIGNMENT_BYTES);
        self.pending
            .entry(stream)
            .or_default()
            .open(address, rounded);
        self.statistics.used_bytes -= bytes;
        Ok(())
    }

    /// `cudaMemPoolTrimTo`: gives back granules that nothing touches, down to `keep_bytes`.
    pub fn trim(&mut self, keep_bytes: u64, budget: &dyn Budget) {
        let keep = keep_bytes
            .div_ceil(GRANULE_BYTES)
            .max(self.occupied.len() as u64);
        if self.held_granules > keep {
            budget.release((self.held_granules - keep) * GRANULE_BYTES);
            self.held_granules = keep;
            self.note_reserved();
        }
    }

    /// The host waits for a stream, or for all: its frees are complete, and memory above the threshold
    /// goes back.
    pub fn synchronize(&mut self, stream: Option<StreamId>, budget: &dyn Budget) {
        self.complete_frees(stream);
        self.trim(self.release_threshold_bytes, budget);
    }

    fn complete_frees(&mut self, stream: Option<StreamId>) {
        let complete: Vec<AgedHoles> = match stream {
            Some(stream) => self.pending.remove(&stream).into_iter().collect(),
            None => std::mem::take(&mut self.pending).into_values().collect(),
        };
        for mut holes in complete {
            for (start, len) in holes.take_all() {
                self.holes.open(start, len);
                for (granule, part) in self.granules(start, len) {
                    if let Some(bytes) = self.occupied.get_mut(&granule) {
                        *bytes -= part;
                        if *bytes == 0 {
                            self.occupied.remove(&granule);
                        }
                    }
                }
            }
        }
    }

    fn note_reserved(&mut self) {
        let reserved = self.held_granules * GRANULE_BYTES;
        self.statistics.reserved_bytes = reserved;
        self.statistics.reserved_high_bytes = self.statistics.reserved_high_bytes.max(reserved);
    }

    /// The granules that a range touches, each with how many bytes of it are in the range.
    fn granules(&self, address: u64, bytes: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (first, end) = (address - self.start, address - self.start + bytes);
        (first / GRANULE_BYTES..end.div_ceil(GRANULE_BYTES)).map(move |granule| {
            let granule_start = granule * GRANULE_BYTES;
            let part = end.min(granule_start + GRANULE_BYTES) - first.max(granule_start);
            (granule, part)
        })
    }
}

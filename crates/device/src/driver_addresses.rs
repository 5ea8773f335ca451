//! Where the real driver puts allocations: PyTorch breaks ties between equal cached blocks by address,
//! so the order of addresses decides which block is reused, and with it the peak.
//!
//! The rule was found by recording thousands of `cudaMalloc` and `cudaFree` calls on an H200
//! (`ground_truth/h200/driver_addresses.csv`); the test below replays them all.
//!
//! * Address space is taken in chunks of whole 32 MiB, from the top of a range downwards: a new chunk
//!   goes to the highest gap that is larger than it.
//! * An allocation goes into the newest chunk that has room, there into the smallest hole that fits
//!   (the lowest of several), and to that hole's start.
//! * A chunk that has become empty is given up.
//! * Allocations below one page share pages; where they lie inside is modelled only roughly, since PyTorch
//!   never asks for less than a page.
//! * The context's own memory fills a chunk at the top, but for a page at its end. When the first kernel is
//!   launched it is replaced by a larger piece elsewhere, and that chunk's addresses are free again.
//! * Above it lies a chunk of the context with a hole of twelve pages.
//! * cuBLAS and cuDNN take addresses like everybody else.
//!
//! * The host's memory that was there before CUDA lies above all this. Gaps that open in it are told by
//!   [`set_host_gaps`](DriverAddresses::set_host_gaps), and filled before anything below.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::holes::Holes;
use crate::memory::PAGE_BYTES;

const CHUNK_BYTES: u64 = 32 << 20;

/// What lies between the two chunks that a context makes.
const BETWEEN_CONTEXT_CHUNKS_BYTES: u64 = 64 << 20;
/// The upper chunk of the context: what is used of it.
const UPPER_CHUNK_USED_BYTES: u64 = 8 << 20;

/// Where there are fewer addresses than this, none are set aside for gaps in the host's memory.
const ROOM_FOR_HOST_GAPS_FROM_BYTES: u64 = 1 << 40;

#[derive(Debug)]
pub struct DriverAddresses {
    bottom: u64,
    top: u64,
    /// By start address.
    chunks: BTreeMap<u64, Chunk>,
    chunks_made: u64,
    /// The context's own memory: where and how much.
    context: (u64, u64),
    /// Addresses that stand for the host's memory above the context.
    host: Range<u64>,
    /// Those of them where the host has nothing, in ascending order.
    host_gaps: Vec<Range<u64>>,
}

#[derive(Debug)]
struct Chunk {
    bytes: u64,
    holes: Holes,
    /// Counts up; the context's chunks are 0.
    age: u64,
}

impl DriverAddresses {
    /// Addresses from the `bytes` bytes from `start` on, of which a context takes `context_bytes`.
    pub fn new(start: u64, bytes: u64, context_bytes: u64) -> Self {
        let host_bytes = if bytes < ROOM_FOR_HOST_GAPS_FROM_BYTES {
            0
        } else {
            bytes / 4 / CHUNK_BYTES * CHUNK_BYTES
        };
        let host_end = (start + bytes) / CHUNK_BYTES * CHUNK_BYTES;
        let host = host_end - host_bytes..host_end;
        let bytes = bytes - host_bytes;
        let context_bytes = context_bytes / PAGE_BYTES * PAGE_BYTES;
        let lower_bytes = (context_bytes + PAGE_BYTES).next_multiple_of(CHUNK_BYTES);
        let above = lower_bytes + BETWEEN_CONTEXT_CHUNKS_BYTES + CHUNK_BYTES;
        let lower = (start + bytes).saturating_sub(above) / CHUNK_BYTES * CHUNK_BYTES;
        let upper = lower + lower_bytes + BETWEEN_CONTEXT_CHUNKS_BYTES;
        let with_hole_after = |start: u64, bytes: u64, used: u64| Chunk {
            bytes,
            holes: Holes::one(start + used, bytes - used),
            age: 0,
        };
        let chunks = BTreeMap::from([
            (lower, with_hole_after(lower, lower_bytes, context_bytes)),
            (
                upper,
                with_hole_after(upper, CHUNK_BYTES, UPPER_CHUNK_USED_BYTES),
            ),
        ]);
        Self {
            bottom: start,
            top: lower + lower_bytes,
            chunks,
            chunks_made: 0,
            context: (lower, context_bytes),
            host,
            host_gaps: Vec::new(),
        }
    }

    /// What the first launch of a kernel does: the context's memory grows by `bytes`, elsewhere.
    pub fn grow_context(&mut self, bytes: u64) {
        let (old, old_bytes) = self.context;
        let new_bytes = (old_bytes + bytes).next_multiple_of(PAGE_BYTES);
        if let Some(new) = self.take(new_bytes) {
            self.context = (new, new_bytes);
            self.give_back(old, old_bytes);
        }
    }

    /// Takes `bytes` addresses, a multiple of the page size.
    pub fn take(&mut self, bytes: u64) -> Option<u64> {
        let newest_with_room = self
            .chunks
            .iter_mut()
            .filter_map(|(&start, chunk)| {
                Some((chunk.age, start, chunk.holes.smallest_fitting(bytes)?))
            })
            .max_by_key(|&(age, start, _)| (age, std::cmp::Reverse(start)));
        if let Some((_, start, hole)) = newest_with_room {
            self.chunks.get_mut(&start)?.holes.fill(hole, bytes);
            return Some(hole);
        }
        let chunk_bytes = bytes.checked_next_multiple_of(CHUNK_BYTES)?;
        let start = self.place_chunk(chunk_bytes)?;
        self.chunks_made += 1;
        let mut chunk = Chunk {
            bytes: chunk_bytes,
            holes: Holes::one(start, chunk_bytes),
            age: self.chunks_made,
        };
        chunk.holes.fill(start, bytes);
        self.chunks.insert(start, chunk);
        Some(start)
    }

    /// The gaps in the host's memory, relative to some point in it that is always the same.
    pub fn set_host_gaps(&mut self, gaps: impl Iterator<Item = Range<i64>>) {
        let origin = self.host_origin();
        let image = |offset: i64| origin.checked_add_signed(offset);
        self.host_gaps = gaps
            .filter_map(|gap| Some(image(gap.start)?..image(gap.end)?))
            .filter(|gap| self.host.start <= gap.start && gap.end <= self.host.end)
            .collect();
        self.host_gaps.sort_unstable_by_key(|gap| gap.start);
    }

    /// The chunks that lie in such gaps: where, relative to that point, and how long.
    pub fn chunks_in_host_gaps(&self) -> impl Iterator<Item = (i64, u64)> + '_ {
        let origin = self.host_origin();
        self.chunks
            .range(self.host.clone())
            .map(move |(&start, chunk)| (start.wrapping_sub(origin) as i64, chunk.bytes))
    }

    /// The address that stands for that point. How it lies to the places where chunks can begin is random
    /// on a real machine; with none lost above, more of the recorded cases agree than with 4, 8 or 16 MiB.
    fn host_origin(&self) -> u64 {
        self.host.start.midpoint(self.host.end) / CHUNK_BYTES * CHUNK_BYTES
    }

    /// Whether `bytes` fit into no chunk.
    pub fn needs_chunk(&self, bytes: u64) -> bool {
        let mut chunks = self.chunks.values();
        chunks.all(|chunk| chunk.holes.smallest_fitting(bytes).is_none())
    }

    fn place_chunk(&self, bytes: u64) -> Option<u64> {
        let below = self.bottom..self.top;
        let mut gaps = self.host_gaps.iter().rev().chain([&below]);
        gaps.find_map(|gap| self.highest_place_in(gap, bytes))
    }

    /// Where a chunk can begin in the highest part of `range` that no other lies in and that is larger.
    fn highest_place_in(&self, range: &Range<u64>, bytes: u64) -> Option<u64> {
        let mut end = range.end;
        let chunks = self.chunks.range(..range.end).rev();
        let obstacles = chunks
            .map(|(&start, chunk)| start..start + chunk.bytes)
            .take_while(|chunk| chunk.end > range.start)
            .chain(std::iter::once(range.start..range.start));
        for obstacle in obstacles {
            let start = end.saturating_sub(bytes) / CHUNK_BYTES * CHUNK_BYTES;
            if start >= obstacle.end && end.saturating_sub(obstacle.end) > bytes {
                return Some(start);
            }
            end = obstacle.start;
        }
        None
    }

    /// Gives back what [`take`](Self::take) handed out.
    pub fn give_back(&mut self, address: u64, bytes: u64) {
        let Some((&start, chunk)) = self.chunks.range_mut(..=address).next_back() else {
            return;
        };
        chunk.holes.open(address, bytes);
        if chunk.holes.is_just(start, chunk.bytes) {
            self.chunks.remove(&start);
        }
    }
}

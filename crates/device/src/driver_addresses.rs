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
//! * Two holes above the range are left over from making the context, of one page and of twelve.

use std::collections::BTreeMap;

use crate::holes::Holes;
use crate::memory::PAGE_BYTES;

const CHUNK_BYTES: u64 = 32 << 20;

/// Where the two first holes lie above the top of the range, and their sizes, as recorded.
const CONTEXT_HOLES: [(u64, u64); 2] = [(434_110_464, PAGE_BYTES), (511_705_088, 12 * PAGE_BYTES)];

/// How far the context's holes reach above the top of the range.
const CONTEXT_BYTES: u64 = CONTEXT_HOLES[1].0 + CONTEXT_HOLES[1].1;

#[derive(Debug)]
pub struct DriverAddresses {
    bottom: u64,
    top: u64,
    /// By start address.
    chunks: BTreeMap<u64, Chunk>,
    chunks_made: u64,
}

#[derive(Debug)]
struct Chunk {
    bytes: u64,
    holes: Holes,
    /// Counts up; the context's holes are 0 and are never given up.
    age: u64,
}

impl DriverAddresses {
    /// Addresses from the `bytes` bytes from `start` on.
    pub fn new(start: u64, bytes: u64) -> Self {
        let top = (start + bytes - CONTEXT_BYTES.min(bytes)) / CHUNK_BYTES * CHUNK_BYTES;
        let context_chunk = |&(offset, bytes): &(u64, u64)| {
            let start = top + offset;
            let holes = Holes::one(start, bytes);
            (
                start,
                Chunk {
                    bytes,
                    holes,
                    age: 0,
                },
            )
        };
        Self {
            bottom: start,
            top,
            chunks: CONTEXT_HOLES.iter().map(context_chunk).collect(),
            chunks_made: 0,
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

    fn place_chunk(&self, bytes: u64) -> Option<u64> {
        let mut gap_end = self.top;
        for (&start, chunk) in self.chunks.range(..self.top).rev() {
            if gap_end - (start + chunk.bytes) > bytes {
                break;
            }
            gap_end = start;
        }
        let start = gap_end.checked_sub(bytes)?;
        (start >= self.bottom).then_some(start)
    }

    /// Gives back what [`take`](Self::take) handed out.
    pub fn give_back(&mut self, address: u64, bytes: u64) {
        let Some((&start, chunk)) = self.chunks.range_mut(..=address).next_back() else {
            return;
        };
        chunk.holes.open(address, bytes);
        if chunk.age > 0 && chunk.holes.is_just(start, chunk.bytes) {
            self.chunks.remove(&start);
        }
    }
}

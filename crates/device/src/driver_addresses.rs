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
//! * A chunk that has become empty is freed.
//! * Allocations below one page share pages; where they lie inside is modelled only roughly, since PyTorch
//!   never asks for less than a page.
//! * The context's own memory fills a chunk at the top, except for a page at its end. When the first kernel is
//!   launched, it is replaced by a larger piece elsewhere, and that chunk's addresses are free again.
//! * Above it lies a chunk of the context with a hole of twelve pages.
//! * cuBLAS and cuDNN get their addresses in the same way.
//!
//! In a training process the real driver also finds gaps that the host's own memory left above the context. Each
//! thread with a heap leaves one, so they depend on the machine's cores and on what ran before. The same script
//! can have several layouts: most recorded cases match [`HostLayout::Packed`], and nearly all others match one of
//! the other two. A rehearsal always uses the first, so that it gives the same answer everywhere; the others serve
//! to check whether the answer depends on the layout.

use std::collections::BTreeMap;

use crate::holes::Holes;
use crate::memory::PAGE_BYTES;

const CHUNK_BYTES: u64 = 32 << 20;

/// What lies between the two chunks that a context makes.
const BETWEEN_CONTEXT_CHUNKS_BYTES: u64 = 64 << 20;
/// How much of the context's upper chunk is in use.
const UPPER_CHUNK_USED_BYTES: u64 = 8 << 20;

/// The part of every context that does not depend on the card and does not move.
const CONTEXT_FIXED_BYTES: u64 = 35 << 20;

/// What glibc reserves for the heap of a thread, aligned to this size. A gap of the same size remains below it.
const THREAD_HEAP_BYTES: u64 = 64 << 20;

/// Where the host's own memory leaves room above the context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostLayout {
    /// There are no gaps.
    #[default]
    Packed,
    /// A gap below the heap of each of many threads, with room for a small chunk.
    ThreadHeaps,
    /// One gap, where large host tensors were, with room for several chunks.
    WideGap,
}

impl HostLayout {
    /// All layouts, the one that rehearsals use first.
    pub const ALL: [Self; 3] = [Self::Packed, Self::ThreadHeaps, Self::WideGap];

    /// The gaps, the lowest first.
    fn gaps(self) -> &'static [u64] {
        match self {
            Self::Packed => &[],
            Self::ThreadHeaps => &[THREAD_HEAP_BYTES; 16],
            Self::WideGap => &[6 * THREAD_HEAP_BYTES],
        }
    }
}

#[derive(Debug)]
pub struct DriverAddresses {
    bottom: u64,
    top: u64,
    /// By start address.
    chunks: BTreeMap<u64, Chunk>,
    chunks_made: u64,
    /// The context's own memory: where and how much.
    context: (u64, u64),
}

#[derive(Debug)]
struct Chunk {
    bytes: u64,
    holes: Holes,
    /// Increases with every chunk; 0 for those of the context.
    age: u64,
}

impl DriverAddresses {
    /// Addresses in the `bytes` bytes starting at `start`, of which the movable part of a context takes
    /// `context_bytes`.
    pub fn new(start: u64, bytes: u64, context_bytes: u64, layout: HostLayout) -> Self {
        let context_bytes = context_bytes / PAGE_BYTES * PAGE_BYTES;
        let lower_bytes = (context_bytes + PAGE_BYTES).next_multiple_of(CHUNK_BYTES);
        let gaps = layout.gaps().iter();
        let above_context: u64 = gaps.map(|gap| gap + THREAD_HEAP_BYTES).sum();
        let above = lower_bytes + BETWEEN_CONTEXT_CHUNKS_BYTES + CHUNK_BYTES + above_context;
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
        let mut addresses = Self {
            bottom: start,
            top: upper + CHUNK_BYTES,
            chunks,
            chunks_made: 0,
            context: (lower, context_bytes),
        };
        addresses.occupy(lower + lower_bytes, BETWEEN_CONTEXT_CHUNKS_BYTES);
        for gap in layout.gaps() {
            addresses.occupy(addresses.top + gap, THREAD_HEAP_BYTES);
            addresses.top += gap + THREAD_HEAP_BYTES;
        }
        addresses
    }

    /// The same on a card whose context takes `context_bytes` in all.
    pub fn on_card(start: u64, bytes: u64, context_bytes: u64, layout: HostLayout) -> Self {
        // The piece that the first kernel replaces is 27/32 of what grows with the card (H200: 434,110,464 bytes).
        let movable_bytes = context_bytes.saturating_sub(CONTEXT_FIXED_BYTES) / 32 * 27;
        Self::new(start, bytes, movable_bytes, layout)
    }

    /// Takes addresses that are never given back.
    fn occupy(&mut self, start: u64, bytes: u64) {
        let holes = Holes::default();
        let age = 0;
        self.chunks.insert(start, Chunk { bytes, holes, age });
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

    /// Frees what [`take`](Self::take) returned.
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

//! Reserving memory up front: a caller that knows how much will be needed allocates it before the run, not during it.

use super::Allocator;
use crate::driver::Driver;
use crate::trace::TraceSink;

/// The most that there will be at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Allocations that are live, or that wait for other streams.
    pub live: usize,
    /// Segments that came from the driver.
    pub segments: usize,
    /// Pairs of a stream and a pool.
    pub places: usize,
}

impl<D: Driver, S: TraceSink> Allocator<D, S> {
    /// Reserves space. Up to that, allocating and freeing does not touch the heap.
    pub fn reserve(&mut self, room: Room) {
        // Free blocks lie between live ones, or are whole segments; expandable segments have a hole next
        // to each.
        let free = room.live + 2 * room.segments;
        self.blocks.reserve(room.live + free);
        // A node has at least one block, and mostly many.
        self.pools.nodes.reserve(free / 4 + 16);
        self.pools.reserve_sets(2 * room.places);
        if let Some(by_address) = &mut self.by_address {
            by_address.reserve(room.live);
        }
        self.expandable.reserve(2 * room.places);
        self.scratch.reserve(free);
        self.driver.reserve_room(room.segments);
    }

    /// The same allocator for callers that identify blocks by id
    /// ([`free_block`](Self::free_block), [`record_stream_of`](Self::record_stream_of),
    /// [`complete_block`](Self::complete_block)): it keeps no table of addresses, so lookups by address
    /// fail. Call it before anything is allocated.
    #[must_use]
    pub fn without_addresses(mut self) -> Self {
        self.by_address = None;
        self
    }
}

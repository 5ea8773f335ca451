//! Expandable segments: a range of addresses that is reserved once, and into which memory is mapped
//! page by page. Its blocks cover the whole range; holes are blocks without memory.

use super::Allocator;
use super::malloc::Quest;
use crate::driver::{Driver, DriverRequest};
use crate::ids::{Address, PoolKind};
use crate::rounding::SMALL_SEGMENT_BYTES;
use crate::structures::blocks::{Block, NONE, State};
use crate::trace::{Action, TraceSink};

#[derive(Clone, Copy, Debug)]
pub(super) struct Expandable {
    pub(super) address: u64,
    pub(super) bytes: u64,
    /// The page size; 0 marks an unused slot.
    pub(super) page_bytes: u64,
}

impl<D: Driver, S: TraceSink> Allocator<D, S> {
    /// A free block of at least the requested size, removed from its set.
    pub(super) fn grow_expandable(&mut self, quest: &Quest) -> Option<u32> {
        let size = quest.size;
        let mut candidate = match self.room_in_segments(quest) {
            Some(block) => block,
            None => self.reserve_segment(quest)?,
        };
        if self.blocks[candidate].state == State::Unmapped {
            let bytes = self.blocks[candidate].size.min(size);
            if !self.map(candidate, bytes) {
                return None;
            }
        }
        while self.blocks[candidate].size < size {
            // A free block with a hole after it: the hole is mapped, and swallows the block.
            let missing = size - self.blocks[candidate].size;
            let hole = self.blocks[candidate].next;
            if hole == NONE {
                // Only where one request exceeds what a segment reserves.
                return None;
            }
            let bytes = missing.min(self.blocks[hole].size);
            if !self.map(hole, bytes) {
                return None;
            }
            candidate = hole;
        }
        self.remove_free(candidate);
        Some(candidate)
    }

    /// The lowest place in an existing segment where enough addresses are free in a row.
    fn room_in_segments(&self, quest: &Quest) -> Option<u32> {
        let holes = self.pools.sets[quest.set as usize].unmapped;
        self.pools.nodes.iter(holes).find_map(|entry| {
            let before = self.blocks[entry.block].prev;
            let start = if before != NONE && self.blocks[before].is_allocatable() {
                before
            } else {
                entry.block
            };
            self.has_room(start, quest.size).then_some(start)
        })
    }

    fn has_room(&self, start: u32, size: u64) -> bool {
        let mut bytes = 0;
        let mut number = start;
        while bytes < size && number != NONE && self.blocks[number].is_allocatable() {
            bytes += self.blocks[number].size;
            number = self.blocks[number].next;
        }
        bytes >= size
    }

    /// The bytes that a segment for this request reserves, before rounding to pages, and a page.
    fn reserve_of(&self, quest: &Quest) -> (u64, u64) {
        let page_bytes = match quest.kind {
            PoolKind::Small => SMALL_SEGMENT_BYTES,
            PoolKind::Large => self.settings.large_segment_size,
        };
        let bytes = self.settings.expandable_reserve(self.driver.total_bytes());
        (bytes, page_bytes)
    }

    /// What a segment reserves, if a request is larger than that.
    pub(super) fn exceeded_reserve(&self, quest: &Quest) -> Option<u64> {
        let (bytes, page_bytes) = self.reserve_of(quest);
        let exceeds = quest.expandable && quest.size > bytes.next_multiple_of(page_bytes);
        exceeds.then_some(bytes)
    }

    fn reserve_segment(&mut self, quest: &Quest) -> Option<u32> {
        let (bytes, page_bytes) = self.reserve_of(quest);
        let bytes = bytes.next_multiple_of(page_bytes);
        if quest.size > bytes {
            return None;
        }
        let address = self.driver.reserve(DriverRequest {
            bytes,
            stream: quest.stream,
            pool: self.pools.pool(quest.pool).id,
        })?;
        let segment = Expandable {
            address: address.0,
            bytes,
            page_bytes,
        };
        Some(self.add_hole(segment, quest.set))
    }

    /// Enters a reserved range: one hole.
    pub(super) fn add_hole(&mut self, segment: Expandable, set: u32) -> u32 {
        let place = self
            .expandable
            .iter()
            .position(|other| other.page_bytes == 0);
        let place = match place {
            Some(place) => {
                self.expandable[place] = segment;
                place
            }
            None => {
                self.expandable.push(segment);
                self.expandable.len() - 1
            }
        };
        let rank = self.rank_of_segment();
        let number = self.blocks.add(Block {
            address: segment.address,
            size: segment.bytes,
            requested: 0,
            age_base: 0,
            prev: NONE,
            next: NONE,
            set,
            rank,
            expandable: place as u32,
            uses: NONE,
            event_count: 0,
            state: State::Unmapped,
        });
        self.insert_hole(number);
        number
    }

    fn insert_hole(&mut self, number: u32) {
        let block = &mut self.blocks[number];
        block.state = State::Unmapped;
        let entry = Self::hole_entry(number, block);
        let holes = &mut self.pools.sets[block.set as usize].unmapped;
        self.pools.nodes.insert(holes, entry);
    }

    fn remove_hole(&mut self, number: u32) {
        let block = &self.blocks[number];
        let entry = Self::hole_entry(number, block);
        let holes = &mut self.pools.sets[block.set as usize].unmapped;
        self.pools.nodes.remove(holes, &entry);
    }

    /// Cuts a block in two after `bytes`; returns the number of the second, which is in no set.
    pub(super) fn cut(&mut self, number: u32, bytes: u64) -> u32 {
        let whole = &self.blocks[number];
        let rest = Block {
            address: whole.address + bytes,
            size: whole.size - bytes,
            prev: number,
            requested: 0,
            age_base: 0,
            uses: NONE,
            event_count: 0,
            ..*whole
        };
        let (whole_rank, after) = (whole.rank, whole.next);
        let rank = self.rank_of_part(whole_rank);
        let rest = self.blocks.add(Block { rank, ..rest });
        let whole = &mut self.blocks[number];
        whole.size = bytes;
        whole.next = rest;
        if after != NONE {
            self.blocks[after].prev = rest;
        }
        rest
    }

    /// Cuts a hole in two after `bytes`; returns the second.
    pub(super) fn cut_hole(&mut self, hole: u32, bytes: u64) -> u32 {
        let rest = self.cut(hole, bytes);
        self.insert_hole(rest);
        rest
    }

    /// Maps memory to the first `bytes` of a hole, in whole pages, and merges it with what is free
    /// around it. Whether the driver had enough.
    fn map(&mut self, hole: u32, bytes: u64) -> bool {
        let segment = self.expandable[self.blocks[hole].expandable as usize];
        let bytes = bytes.next_multiple_of(segment.page_bytes);
        let address = self.blocks[hole].address;
        if !self.driver.map(Address(address), bytes, segment.page_bytes) {
            return false;
        }
        self.open_hole(hole, bytes);
        let set = self.blocks[hole].set;
        self.count_reserved(set, bytes);
        self.stats.num_device_alloc += 1;
        self.tell(Action::SegmentMap, address, bytes, set);
        true
    }

    /// The first `bytes` of a hole become a free block.
    pub(super) fn open_hole(&mut self, hole: u32, bytes: u64) {
        self.remove_hole(hole);
        if bytes < self.blocks[hole].size {
            let rest = self.cut(hole, bytes);
            self.insert_hole(rest);
        }
        let (prev, next) = (self.blocks[hole].prev, self.blocks[hole].next);
        self.absorb_free(hole, prev);
        self.absorb_free(hole, next);
        self.insert_free(hole);
    }

    /// Unmaps the whole pages inside a free block. What is left before and after them becomes separate
    /// blocks.
    pub(super) fn unmap(&mut self, number: u32) {
        let block = &self.blocks[number];
        let segment = self.expandable[block.expandable as usize];
        let (start, end) = (block.address, block.address + block.size);
        let offset = (start - segment.address).next_multiple_of(segment.page_bytes);
        let first = segment.address + offset;
        let last =
            segment.address + (end - segment.address) / segment.page_bytes * segment.page_bytes;
        if last <= first {
            return;
        }
        let bytes = last - first;
        self.driver.unmap(Address(first), bytes);
        self.remove_free(number);
        if first > start {
            // The part in front is the new block; the old one keeps its place in the middle.
            let front = self.cut_front(number, first - start);
            self.insert_free(front);
        }
        if end > last {
            let rest = self.cut(number, bytes);
            self.insert_free(rest);
        }
        let (prev, next) = (self.blocks[number].prev, self.blocks[number].next);
        self.blocks[number].state = State::Unmapped;
        self.absorb_hole(number, prev);
        self.absorb_hole(number, next);
        self.insert_hole(number);
        let set = self.blocks[number].set;
        self.count_returned(set, bytes);
        self.stats.num_device_free += 1;
        self.tell(Action::SegmentUnmap, first, bytes, set);
    }

    /// Cuts the first `bytes` off a block; returns the number of the first part, which is in no set.
    fn cut_front(&mut self, number: u32, bytes: u64) -> u32 {
        let whole = &self.blocks[number];
        let front = Block {
            size: bytes,
            next: number,
            requested: 0,
            age_base: 0,
            uses: NONE,
            event_count: 0,
            ..*whole
        };
        let (whole_rank, before) = (whole.rank, whole.prev);
        let rank = self.rank_of_part(whole_rank);
        let front = self.blocks.add(Block { rank, ..front });
        let whole = &mut self.blocks[number];
        whole.address += bytes;
        whole.size -= bytes;
        whole.prev = front;
        if before != NONE {
            self.blocks[before].next = front;
        }
        front
    }

    fn absorb_hole(&mut self, number: u32, neighbour: u32) {
        if neighbour != NONE && self.blocks[neighbour].state == State::Unmapped {
            self.remove_hole(neighbour);
            self.absorb(number, neighbour);
        }
    }

    /// Returns the address range of a segment to the driver if it is one single hole.
    pub(super) fn drop_if_unmapped(&mut self, number: u32) {
        let block = &self.blocks[number];
        if block.state != State::Unmapped || block.is_split() {
            return;
        }
        let place = block.expandable as usize;
        self.remove_hole(number);
        let segment = self.expandable[place];
        self.expandable[place].page_bytes = 0;
        self.driver
            .release_reservation(Address(segment.address), segment.bytes);
        self.blocks.remove(number);
    }
}

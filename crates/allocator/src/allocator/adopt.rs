//! Starting from a state that was recorded elsewhere: segments with their blocks, as a snapshot shows
//! them.

use super::Allocator;
use super::expandable::Expandable;
use crate::driver::Driver;
use crate::ids::{Address, PoolId, PoolKind, StreamId};
use crate::pools::PoolOptions;
use crate::structures::blocks::{Block, NONE, State};
use crate::trace::TraceSink;

/// What a block is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockState {
    /// `active_allocated`.
    Allocated,
    /// `active_pending_free`: freed, other streams still use it.
    PendingFree,
    /// `inactive`.
    Inactive,
}

/// A block inside a recorded segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockImage {
    pub size: u64,
    pub requested: u64,
    pub state: BlockState,
}

/// A recorded segment. Blocks follow one another from `address` on. Of an expandable segment there is
/// one image per mapped range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentImage {
    pub address: Address,
    pub stream: StreamId,
    pub pool: PoolId,
    pub kind: PoolKind,
    /// For an expandable segment the range that is reserved for it.
    pub reserved: Option<(Address, u64)>,
    pub blocks: Vec<BlockImage>,
}

impl SegmentImage {
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.blocks.iter().map(|block| block.size).sum()
    }
}

/// Why a recorded segment cannot be adopted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdoptError {
    #[error("the segment at {0} has no blocks")]
    Empty(Address),
    #[error("the range at {0} is not free inside the address range of its expandable segment")]
    OutsideReservation(Address),
}

impl<D: Driver, S: TraceSink> Allocator<D, S> {
    /// Adopts a segment. Counts its blocks as if they were allocated now, emits no entries, and does not
    /// call the driver. Segments are ranked in the order of these calls.
    pub fn adopt(&mut self, segment: &SegmentImage) -> Result<(), AdoptError> {
        if segment.blocks.is_empty() {
            return Err(AdoptError::Empty(segment.address));
        }
        if self.pools.find(segment.pool).is_none() {
            self.pools.add(segment.pool, PoolOptions::default());
        }
        let pool = self.pools.find(segment.pool).unwrap_or_default();
        let set = self.pools.set(pool, segment.kind, segment.stream);
        let head = match segment.reserved {
            None => self.adopt_ordinary(segment, set),
            Some(reserved) => self.adopt_range(segment, set, reserved)?,
        };
        if pool != 0 {
            self.pools.pool_mut(pool).driver_segments += 1;
        }
        self.count_reserved(set, segment.bytes());
        self.carve(head, segment);
        Ok(())
    }

    fn adopt_ordinary(&mut self, segment: &SegmentImage, set: u32) -> u32 {
        let bytes = segment.bytes();
        let rank = self.rank_of_segment();
        self.stats.segment.increase(segment.kind, 1);
        if bytes >= self.settings.max_split_size {
            self.stats.oversize_segment_more();
        }
        self.blocks.add(Block {
            address: segment.address.0,
            size: bytes,
            requested: 0,
            age_base: 0,
            prev: NONE,
            next: NONE,
            set,
            rank,
            expandable: NONE,
            uses: NONE,
            event_count: 0,
            state: State::Free,
        })
    }

    /// The block that covers a mapped range, in no set.
    fn adopt_range(
        &mut self,
        segment: &SegmentImage,
        set: u32,
        (start, length): (Address, u64),
    ) -> Result<u32, AdoptError> {
        let known = self
            .expandable
            .iter()
            .any(|other| other.page_bytes != 0 && other.address == start.0);
        if !known {
            let page_bytes = match segment.kind {
                PoolKind::Small => crate::rounding::SMALL_SEGMENT_BYTES,
                PoolKind::Large => self.settings.large_segment_size,
            };
            let reservation = Expandable {
                address: start.0,
                bytes: length,
                page_bytes,
            };
            self.add_hole(reservation, set);
        }
        let (from, bytes) = (segment.address.0, segment.bytes());
        let holes = self.pools.sets[set as usize].unmapped;
        let hole = self.pools.nodes.iter(holes).find(|entry| {
            let hole = &self.blocks[entry.block];
            hole.address <= from && from + bytes <= hole.address + hole.size
        });
        let mut hole = hole
            .ok_or(AdoptError::OutsideReservation(segment.address))?
            .block;
        let before = from - self.blocks[hole].address;
        if before > 0 {
            hole = self.cut_hole(hole, before);
        }
        self.open_hole(hole, bytes);
        self.remove_free(hole);
        Ok(hole)
    }

    /// Cuts a free block that is in no set into the recorded blocks.
    fn carve(&mut self, head: u32, segment: &SegmentImage) {
        let kind = segment.kind;
        let ordinary = !self.blocks[head].is_expandable();
        let mut number = head;
        let last = segment.blocks.len() - 1;
        for (index, image) in segment.blocks.iter().enumerate() {
            let rest = (index < last).then(|| self.cut(number, image.size));
            let is_split = self.blocks[number].is_split();
            self.blocks[number].requested = image.requested;
            if image.state == BlockState::Inactive {
                self.insert_free(number);
                if is_split && ordinary {
                    self.stats.inactive_split.increase(kind, 1);
                    self.stats.inactive_split_bytes.increase(kind, image.size);
                }
            } else {
                self.adopt_active(number, kind, image);
            }
            number = rest.unwrap_or(number);
        }
    }

    fn adopt_active(&mut self, number: u32, kind: PoolKind, image: &BlockImage) {
        let block = &mut self.blocks[number];
        let address = block.address;
        self.stats.active.increase(kind, 1);
        self.stats.active_bytes.increase(kind, image.size);
        self.stats.requested_bytes.increase(kind, image.requested);
        if image.state == BlockState::Allocated {
            block.state = State::Allocated;
            self.stats.allocation.increase(kind, 1);
            self.stats.allocated_bytes.increase(kind, image.size);
            if image.size >= self.settings.max_split_size {
                self.stats.oversize_allocation_more();
            }
        } else {
            block.state = State::Pending;
        }
        self.enter(address, number);
    }
}

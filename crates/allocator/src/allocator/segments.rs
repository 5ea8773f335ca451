//! The current segments and their blocks, as in `torch.cuda.memory_snapshot()`.

use super::Allocator;
use super::adopt::BlockState;
use crate::driver::Driver;
use crate::ids::{Address, PoolId, PoolKind, StreamId};
use crate::structures::blocks::{NONE, State};
use crate::trace::{Action, TraceEvent, TraceSink};

/// A segment, or of an expandable one a range that is mapped without a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentView {
    pub address: Address,
    pub total_size: u64,
    pub allocated_size: u64,
    pub active_size: u64,
    /// Requested bytes, over active blocks.
    pub requested_size: u64,
    pub stream: StreamId,
    pub kind: PoolKind,
    pub pool: PoolId,
    pub is_expandable: bool,
    /// In the order of addresses, covering the segment.
    pub blocks: Vec<BlockView>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockView {
    pub address: Address,
    pub size: u64,
    /// Stale for free blocks, as in PyTorch.
    pub requested_size: u64,
    pub state: BlockState,
}

impl<D: Driver, S: TraceSink> Allocator<D, S> {
    /// All segments, by address.
    pub fn segments(&self) -> Vec<SegmentView> {
        let mut segments: Vec<SegmentView> = self
            .blocks
            .iter()
            .filter(|(_, block)| {
                let starts = block.prev == NONE || !self.blocks[block.prev].is_mapped();
                block.is_mapped() && starts
            })
            .map(|(number, _)| self.segment_from(number))
            .collect();
        segments.sort_by_key(|segment| segment.address);
        segments
    }

    fn segment_from(&self, head: u32) -> SegmentView {
        let first = &self.blocks[head];
        let set = &self.pools.sets[first.set as usize];
        let mut segment = SegmentView {
            address: Address(first.address),
            total_size: 0,
            allocated_size: 0,
            active_size: 0,
            requested_size: 0,
            stream: set.stream,
            kind: set.kind,
            pool: self.pools.pool(set.pool).id,
            is_expandable: first.is_expandable(),
            blocks: Vec::new(),
        };
        let mut number = head;
        while number != NONE && self.blocks[number].is_mapped() {
            let block = &self.blocks[number];
            let state = match block.state {
                State::Allocated => BlockState::Allocated,
                State::Pending => BlockState::PendingFree,
                _ => BlockState::Inactive,
            };
            segment.total_size += block.size;
            if state == BlockState::Allocated {
                segment.allocated_size += block.size;
            }
            if state != BlockState::Inactive {
                segment.active_size += block.size;
                segment.requested_size += block.requested;
            }
            segment.blocks.push(BlockView {
                address: Address(block.address),
                size: block.size,
                requested_size: block.requested,
                state,
            });
            number = block.next;
        }
        segment
    }

    /// The size of the largest free block, of any pool and stream.
    pub fn largest_free_block(&self) -> u64 {
        let sets = self.pools.sets.iter();
        let largest = sets.filter_map(|set| Some(set.free.last(&self.pools.nodes)?.size));
        largest.max().unwrap_or(0)
    }

    /// What `memory_snapshot()` leaves in the trace.
    pub fn record_snapshot(&mut self) {
        self.sink.record(TraceEvent {
            action: Action::Snapshot,
            address: Address(0),
            bytes: self.stats.active_bytes.all.current as u64,
            stream: StreamId::DEFAULT,
            pool: PoolId::DEFAULT,
        });
    }
}

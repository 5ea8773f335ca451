//! Blocks that other streams use: they stay active after their free until those streams have passed
//! an event that is recorded then.

use std::collections::VecDeque;

use super::Allocator;
use super::free::InvalidPointer;
use crate::driver::{Driver, RecordedEvent};
use crate::ids::{Address, BlockId, StreamId};
use crate::structures::blocks::{NONE, State};
use crate::structures::hash_order::HashOrder;
use crate::trace::TraceSink;

/// How PyTorch identifies a stream, besides its raw handle. The order in which several streams' blocks come
/// back depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamIdentity {
    /// The device's ordinal.
    pub device: u8,
    /// `torch.cuda.Stream.stream_id`. For external streams it is the handle.
    pub id: u64,
}

impl StreamIdentity {
    fn hash(self) -> u64 {
        const CUDA: u64 = 1;
        const ID_BITS: u64 = (1 << 48) - 1;
        CUDA << 56 | u64::from(self.device) << 48 | (self.id & ID_BITS)
    }
}

impl<D: Driver, S: TraceSink> Allocator<D, S> {
    /// Registers PyTorch's id of a stream. Unknown ones count as external streams.
    pub fn identify_stream(&mut self, stream: StreamId, identity: StreamIdentity) {
        self.identities.retain(|&(other, _)| other != stream);
        self.identities.push((stream, identity));
    }

    fn stream_hash(&self, stream: StreamId) -> u64 {
        let known = self.identities.iter().find(|&&(other, _)| other == stream);
        let unknown = StreamIdentity {
            device: 0,
            id: stream.0,
        };
        known.map_or(unknown, |&(_, identity)| identity).hash()
    }

    /// `Tensor.record_stream`: a stream other than its own uses the block at `address`.
    pub fn record_stream(
        &mut self,
        address: Address,
        stream: StreamId,
    ) -> Result<(), InvalidPointer> {
        if address == Address(0) {
            return Ok(());
        }
        let number = self.find(address).ok_or(InvalidPointer(address))?;
        self.record_stream_of(BlockId(number), stream)
    }

    /// The same for a live allocation, without an address lookup.
    pub fn record_stream_of(
        &mut self,
        block: BlockId,
        stream: StreamId,
    ) -> Result<(), InvalidPointer> {
        let number = self.live(block)?;
        let own = self.pools.sets[self.blocks[number].set as usize].stream;
        if stream == own {
            return Ok(());
        }
        if self.blocks[number].uses == NONE {
            self.blocks[number].uses = match self.spare_uses.pop() {
                Some(list) => list,
                None => {
                    self.uses.push(HashOrder::default());
                    self.uses.len() as u32 - 1
                }
            };
        }
        let hash = self.stream_hash(stream);
        self.uses[self.blocks[number].uses as usize].insert(hash, stream);
        if self.is_suspended(own) && !self.capture_uses.contains(&(number, stream)) {
            self.capture_uses.push((number, stream));
        }
        Ok(())
    }

    /// Records an event on every stream that uses the block.
    pub(super) fn record_events(&mut self, number: u32) {
        if !self.capture_uses.is_empty() {
            self.capture_uses.retain(|&(block, _)| block != number);
        }
        let list = self.take_uses(number);
        if list == NONE {
            return;
        }
        for place in 0..self.uses[list as usize].len() {
            let Some(stream) = self.uses[list as usize].get(place) else {
                break;
            };
            self.events_recorded += 1;
            self.events_open += 1;
            self.blocks[number].event_count += 1;
            let queue = self.queue_of(stream);
            self.queues[queue]
                .1
                .push_back((self.events_recorded, number));
            if !self.busy_queues.contains(queue) {
                let hash = self.stream_hash(stream);
                self.busy_queues.insert(hash, queue);
            }
        }
        // The list keeps its memory for the next block.
        self.uses[list as usize].reset();
    }

    fn queue_of(&mut self, stream: StreamId) -> usize {
        let known = self.queues.iter().position(|(other, _)| *other == stream);
        known.unwrap_or_else(|| {
            self.queues.push((stream, VecDeque::new()));
            self.queues.len() - 1
        })
    }

    /// Detaches the list of uses from a block; its contents stay until the list is reused.
    fn take_uses(&mut self, number: u32) -> u32 {
        let list = std::mem::replace(&mut self.blocks[number].uses, NONE);
        if list != NONE {
            self.spare_uses.push(list);
        }
        list
    }

    /// What a request does first: complete the blocks whose events have passed.
    pub fn process_events(&mut self) {
        if self.events_open == 0 && self.deferred.is_empty() {
            return;
        }
        self.record_deferred_events();
        let mut place = 0;
        while let Some(index) = self.busy_queues.get(place) {
            let stream = self.queues[index].0;
            while let Some(&(number, block)) = self.queues[index].1.front() {
                if !self.driver.has_passed(RecordedEvent { stream, number }) {
                    break;
                }
                self.queues[index].1.pop_front();
                self.event_passed(block);
            }
            if self.queues[index].1.is_empty() {
                self.busy_queues.remove(index);
            } else {
                place += 1;
            }
        }
    }

    fn event_passed(&mut self, block: u32) {
        self.events_open -= 1;
        self.blocks[block].event_count -= 1;
        if self.blocks[block].event_count == 0 {
            self.complete_free(block);
        }
    }

    /// Frees that a capture deferred get their events, without the uses that the capture recorded.
    pub(super) fn record_deferred_events(&mut self) {
        for block in std::mem::take(&mut self.deferred) {
            let list = self.blocks[block].uses;
            if list != NONE {
                let capture_uses = &self.capture_uses;
                self.uses[list as usize].retain(|stream| !capture_uses.contains(&(block, stream)));
            }
            self.record_events(block);
            if self.blocks[block].event_count == 0 {
                self.complete_free(block);
            }
        }
    }

    /// Waits for all events, or for those of one pool's blocks.
    pub(super) fn synchronize(&mut self, only_pool: Option<u32>) {
        self.stats.num_sync_all_streams += 1;
        self.record_deferred_events();
        let queues: Vec<usize> = self.busy_queues.iter().collect();
        for index in queues {
            for _ in 0..self.queues[index].1.len() {
                let Some((number, block)) = self.queues[index].1.pop_front() else {
                    break;
                };
                let set = self.blocks[block].set;
                if only_pool.is_some_and(|pool| self.pools.sets[set as usize].pool != pool) {
                    self.queues[index].1.push_back((number, block));
                } else {
                    self.event_passed(block);
                }
            }
            if self.queues[index].1.is_empty() {
                self.busy_queues.remove(index);
            }
        }
    }

    /// Sets the order in which blocks are returned when all streams are synchronized; others come last. A
    /// recording tells it, and the numbers of streams, on which it depends, are not recorded.
    pub(crate) fn set_completion_order(&mut self, addresses: &[Address]) {
        let place = |address: u64| addresses.iter().position(|other| other.0 == address);
        for (_, queue) in &mut self.queues {
            let blocks = &self.blocks;
            queue
                .make_contiguous()
                .sort_by_key(|&(_, block)| place(blocks[block].address).unwrap_or(addresses.len()));
        }
    }

    /// Completes a pending free, whatever it waits for: from a recorded `free_completed`, or a
    /// graph capture that knows the block to be unused. Whether there was such a block.
    pub fn complete(&mut self, address: Address) -> bool {
        let number = self.find(address);
        number.is_some_and(|number| self.complete_block(BlockId(number)))
    }

    /// The same for an allocated block, without an address lookup.
    pub fn complete_block(&mut self, block: BlockId) -> bool {
        let found = self.blocks.get(block.0);
        let is_pending = found.is_some_and(|block| block.state == State::Pending);
        if is_pending {
            self.take_off_waiting(block.0);
            self.complete_free(block.0);
        }
        is_pending
    }

    pub(super) fn take_off_waiting(&mut self, number: u32) {
        self.deferred.retain(|&block| block != number);
        let list = self.take_uses(number);
        if list != NONE {
            self.uses[list as usize].reset();
        }
        self.capture_uses.retain(|&(block, _)| block != number);
        let mut left = self.blocks[number].event_count;
        for (_, queue) in &mut self.queues {
            if left == 0 {
                break;
            }
            let mut place = 0;
            while place < queue.len() {
                if queue[place].1 == number {
                    queue.remove(place);
                    left -= 1;
                } else {
                    place += 1;
                }
            }
        }
        self.events_open -= u64::from(self.blocks[number].event_count);
        self.blocks[number].event_count = 0;
    }
}

//! Freeing memory: the request, and the completion when no stream uses it any more.

use super::Allocator;
use crate::driver::Driver;
use crate::ids::{Address, BlockId};
use crate::structures::blocks::{NONE, State};
use crate::trace::{Action, TraceSink};

/// An address that no live block has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid device pointer: {0}")]
pub struct InvalidPointer(pub Address);

impl<D: Driver, S: TraceSink> Allocator<D, S> {
    /// Frees what starts at `address`. Null is ignored.
    pub fn free(&mut self, address: Address) -> Result<(), InvalidPointer> {
        if address == Address(0) {
            return Ok(());
        }
        match self.find(address) {
            Some(number) if self.blocks[number].state == State::Allocated => {
                self.request_free(number);
                Ok(())
            }
            _ => Err(InvalidPointer(address)),
        }
    }

    /// Frees a live allocation without an address lookup.
    pub fn free_block(&mut self, block: BlockId) -> Result<(), InvalidPointer> {
        if block.0 == NONE {
            return Ok(());
        }
        let number = self.live(block)?;
        self.request_free(number);
        Ok(())
    }

    /// The number of a block, if it is allocated.
    #[inline]
    pub(super) fn live(&self, block: BlockId) -> Result<u32, InvalidPointer> {
        match self.blocks.get(block.0) {
            Some(found) if found.state == State::Allocated => Ok(block.0),
            Some(found) => Err(InvalidPointer(Address(found.address))),
            None => Err(InvalidPointer(Address(0))),
        }
    }

    /// Whether a block is in use and starts at an address. The id of a freed block may be reused.
    #[inline]
    pub(crate) fn is_in_use_at(&self, block: BlockId, address: Address) -> bool {
        let found = self.blocks.get(block.0);
        found.is_some_and(|found| found.address == address.0 && found.is_in_use())
    }

    /// What is in use, in no order.
    pub(crate) fn blocks_in_use(&self) -> impl Iterator<Item = (Address, BlockId)> + '_ {
        let in_use = self.blocks.iter().filter(|(_, block)| block.is_in_use());
        in_use.map(|(number, block)| (Address(block.address), BlockId(number)))
    }

    #[inline]
    fn request_free(&mut self, number: u32) {
        let block = &mut self.blocks[number];
        block.state = State::Pending;
        let (address, size, requested, set) =
            (block.address, block.size, block.requested, block.set);
        let uses = block.uses;
        let (kind, stream) = {
            let set = &self.pools.sets[set as usize];
            (set.kind, set.stream)
        };
        self.stats.allocation.decrease(kind, 1);
        self.stats.allocated_bytes.decrease(kind, size);
        self.tell(Action::FreeRequested, address, requested, set);
        if size >= self.settings.max_split_size {
            self.stats.oversize_allocation_less();
        }
        if uses == NONE {
            self.complete_free(number);
        } else if self.is_suspended(stream) {
            self.deferred.push(number);
        } else {
            self.record_events(number);
        }
    }

    /// Adds a block that is no longer in use to the free ones, merged with its neighbours.
    #[inline]
    pub(super) fn complete_free(&mut self, number: u32) {
        let block = &self.blocks[number];
        let (address, size, requested, set) =
            (block.address, block.size, block.requested, block.set);
        let (prev, next, is_ordinary) = (block.prev, block.next, !block.is_expandable());
        let kind = self.pools.sets[set as usize].kind;
        self.tell(Action::FreeCompleted, address, requested, set);
        if let Some(by_address) = &mut self.by_address {
            by_address.remove(address, |number| self.blocks.address_of(number));
        }
        let mut split_blocks = 0_i64;
        let mut split_bytes = 0_i64;
        for neighbour in [prev, next] {
            let absorbed = self.absorb_free(number, neighbour);
            if absorbed > 0 {
                split_blocks -= 1;
                split_bytes -= absorbed as i64;
            }
        }
        self.insert_free(number);
        let block = &self.blocks[number];
        if block.is_split() {
            split_blocks += 1;
            split_bytes += block.size as i64;
        }
        if is_ordinary {
            self.stats.inactive_split.change(kind, split_blocks);
            self.stats.inactive_split_bytes.change(kind, split_bytes);
        }
        self.stats.active.decrease(kind, 1);
        self.stats.active_bytes.decrease(kind, size);
        self.stats.requested_bytes.decrease(kind, requested);
    }

    /// Merges a free neighbour into a block that is in no set; returns the bytes it had.
    #[inline]
    pub(super) fn absorb_free(&mut self, number: u32, neighbour: u32) -> u64 {
        if neighbour == NONE || self.blocks[neighbour].state != State::Free {
            return 0;
        }
        self.remove_free(neighbour);
        self.absorb(number, neighbour)
    }

    /// Merges a neighbour that is in no set either.
    #[inline]
    pub(super) fn absorb(&mut self, number: u32, neighbour: u32) -> u64 {
        let other = &self.blocks[neighbour];
        let (address, bytes, prev, next) = (other.address, other.size, other.prev, other.next);
        let block = &mut self.blocks[number];
        block.size += bytes;
        if block.prev == neighbour {
            block.address = address;
            block.prev = prev;
            if prev != NONE {
                self.blocks[prev].next = number;
            }
        } else {
            block.next = next;
            if next != NONE {
                self.blocks[next].prev = number;
            }
        }
        self.blocks.remove(neighbour);
        bytes
    }
}

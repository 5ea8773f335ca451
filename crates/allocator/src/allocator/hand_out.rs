//! The last step of a request: splits the block if the rest is worth keeping, and updates statistics.

use super::Allocator;
use super::malloc::{Allocation, Quest};
use crate::driver::Driver;
use crate::ids::{Address, BlockId};
use crate::rounding::{MIN_BLOCK_BYTES, SMALL_MAX_BYTES};
use crate::structures::blocks::{Block, NONE, State};
use crate::trace::{Action, TraceSink};

impl<D: Driver, S: TraceSink> Allocator<D, S> {
    /// Hands out a block that is in no set.
    #[inline]
    pub(super) fn hand_out(
        &mut self,
        found: u32,
        quest: &Quest,
        splits_finely: bool,
    ) -> Allocation {
        let splits = self.is_split_for(found, quest.size, splits_finely);
        let number = self.take_front(found, quest.size, splits);
        let kind = quest.kind;
        let block = &mut self.blocks[number];
        block.state = State::Allocated;
        block.requested = quest.request;
        let (address, size, set) = (block.address, block.size, block.set);
        self.tell(Action::Alloc, address, quest.request, set);
        self.enter(address, number);
        self.stats.allocation.increase(kind, 1);
        self.stats.allocated_bytes.increase(kind, size);
        self.stats.active.increase(kind, 1);
        self.stats.active_bytes.increase(kind, size);
        self.stats.requested_bytes.increase(kind, quest.request);
        if size >= self.settings.max_split_size {
            self.stats.oversize_allocation_more();
        }
        Allocation {
            address: Address(address),
            block: BlockId(number),
            size,
        }
    }

    #[inline]
    fn is_split_for(&self, found: u32, size: u64, splits_finely: bool) -> bool {
        let block = &self.blocks[found];
        let remaining = block.size - size;
        let pool = self.pools.sets[block.set as usize].pool;
        if pool != 0 && self.pools.pool(pool).options.no_split {
            return false;
        }
        if splits_finely {
            remaining >= MIN_BLOCK_BYTES
        } else {
            size < self.settings.max_split_size && remaining > SMALL_MAX_BYTES
        }
    }

    /// The block to hand out: a new one in front of the rest, or the whole.
    #[inline]
    fn take_front(&mut self, found: u32, size: u64, splits: bool) -> u32 {
        let whole = &self.blocks[found];
        let was_split = whole.is_split();
        let is_ordinary = !whole.is_expandable();
        let kind = self.pools.sets[whole.set as usize].kind;
        if !splits {
            if was_split && is_ordinary {
                let size = whole.size;
                self.stats.inactive_split_bytes.decrease(kind, size);
                self.stats.inactive_split.decrease(kind, 1);
            }
            return found;
        }
        let front = Block {
            address: whole.address,
            size,
            requested: 0,
            age_base: 0,
            prev: whole.prev,
            next: found,
            set: whole.set,
            rank: whole.rank,
            expandable: whole.expandable,
            uses: NONE,
            event_count: 0,
            state: State::Allocated,
        };
        let (before, whole_rank) = (whole.prev, whole.rank);
        let rank = self.rank_of_part(whole_rank);
        let front = self.blocks.add(Block { rank, ..front });
        if before != NONE {
            self.blocks[before].next = front;
        }
        let rest = &mut self.blocks[found];
        rest.prev = front;
        rest.address += size;
        rest.size -= size;
        let rest_size = rest.size;
        self.insert_free(found);
        if is_ordinary {
            if was_split {
                self.stats.inactive_split_bytes.decrease(kind, size);
            } else {
                self.stats.inactive_split_bytes.increase(kind, rest_size);
                self.stats.inactive_split.increase(kind, 1);
            }
        }
        front
    }
}

//! Getting memory from the driver, within the limit.

use super::Allocator;
use super::malloc::{Grown, Quest};
use crate::driver::{Driver, DriverRequest};
use crate::pools::DEFAULT_POOL;
use crate::rounding;
use crate::structures::blocks::{Block, NONE, State};
use crate::trace::{Action, TraceSink};

impl<D: Driver, S: TraceSink> Allocator<D, S> {
    /// The request to the driver if the cache has no block.
    pub(super) fn segment_bytes(&self, quest: &Quest) -> u64 {
        rounding::segment_size(quest.size, self.settings.large_segment_size)
    }

    /// One attempt. The block it returns is in no set.
    pub(super) fn grow(&mut self, quest: &Quest, is_retry: bool) -> Grown {
        if is_retry {
            self.stats.num_alloc_retries += 1;
        }
        let wanted = self
            .reserved_total
            .saturating_add(self.segment_bytes(quest));
        if self.limit.is_some_and(|limit| wanted > limit) {
            return Grown::Exhausted;
        }
        if self.is_rejected_early(wanted) {
            self.stats.num_oom_rejections += 1;
            return Grown::Rejected;
        }
        let block = if quest.expandable {
            self.grow_expandable(quest)
        } else {
            self.new_segment(quest)
        };
        match block {
            Some(block) => {
                if quest.pool != DEFAULT_POOL {
                    self.pools.pool_mut(quest.pool).driver_segments += 1;
                }
                Grown::Block(block)
            }
            None => Grown::Exhausted,
        }
    }

    /// `throw_on_cudamalloc_oom` measures with the option, not with what was set at run time.
    fn is_rejected_early(&self, wanted: u64) -> bool {
        if !(self.behaviour.can_reject_early && self.settings.throw_on_cudamalloc_oom) {
            return false;
        }
        let part = self.settings.per_process_memory_fraction * self.driver.total_bytes() as f64;
        wanted > part as u64
    }

    fn new_segment(&mut self, quest: &Quest) -> Option<u32> {
        let bytes = self.segment_bytes(quest);
        let address = self.driver.allocate(DriverRequest {
            bytes,
            stream: quest.stream,
            pool: self.pools.pool(quest.pool).id,
        })?;
        let rank = self.rank_of_segment();
        let number = self.blocks.add(Block {
            address: address.0,
            size: bytes,
            requested: 0,
            age_base: 0,
            prev: NONE,
            next: NONE,
            set: quest.set,
            rank,
            expandable: NONE,
            uses: NONE,
            event_count: 0,
            state: State::Free,
        });
        self.stats.segment.increase(quest.kind, 1);
        self.count_reserved(quest.set, bytes);
        if bytes >= self.settings.max_split_size {
            self.stats.oversize_segment_more();
        }
        self.stats.num_device_alloc += 1;
        self.tell(Action::SegmentAlloc, address.0, bytes, quest.set);
        Some(number)
    }

    /// The driver gave memory.
    pub(super) fn count_reserved(&mut self, set: u32, bytes: u64) {
        self.reserved_total += bytes;
        let set = &self.pools.sets[set as usize];
        let (pool, kind) = (set.pool, set.kind);
        self.stats.reserved_bytes.increase(kind, bytes);
        if pool != DEFAULT_POOL && self.behaviour.counts_private_pools {
            let id = self.pools.pool(pool).id;
            self.stats.private_pool(id).increase(kind, bytes);
        }
    }

    /// The driver got memory back.
    pub(super) fn count_returned(&mut self, set: u32, bytes: u64) {
        self.reserved_total -= bytes;
        let set = &self.pools.sets[set as usize];
        let (pool, kind) = (set.pool, set.kind);
        self.stats.reserved_bytes.decrease(kind, bytes);
        if pool != DEFAULT_POOL {
            if self.behaviour.counts_private_pools {
                let id = self.pools.pool(pool).id;
                self.stats.private_pool(id).decrease(kind, bytes);
            }
            let segments = &mut self.pools.pool_mut(pool).driver_segments;
            *segments = segments.saturating_sub(1);
        }
    }
}

//! Garbage collection: before a request to the driver, free segments unused for long are given
//! back, once more than a part of the limit is reserved.

use super::Allocator;
use crate::driver::Driver;
use crate::ids::PoolKind;
use crate::pools::DEFAULT_POOL;
use crate::trace::TraceSink;

impl<D: Driver, S: TraceSink> Allocator<D, S> {
    pub(super) fn collect_garbage(&mut self) {
        let Some(limit) = self.limit else {
            return;
        };
        let threshold = (self.settings.garbage_collection_threshold * limit as f64) as u64;
        if self.reserved_total <= threshold {
            return;
        }
        let target = self.reserved_total - threshold;
        let half = &self.pools.pool(DEFAULT_POOL).halves[PoolKind::Large.index()];
        let searches = half.searches;
        let mut whole = std::mem::take(&mut self.scratch);
        let free = half
            .sets
            .iter()
            .flat_map(|&(_, set)| self.pools.free_in(set))
            .map(|entry| entry.block);
        whole.extend(free.filter(|&block| !self.blocks[block].is_split()));
        let age = |allocator: &Self, block: u32| searches - allocator.blocks[block].age_base;
        let mut total_age: u64 = whole.iter().map(|&block| age(self, block)).sum();
        let mut reclaimed = 0;
        let mut freed_any = true;
        let mut count = whole.len();
        while reclaimed < target && freed_any && count > 0 {
            freed_any = false;
            let average = total_age as f64 / count as f64;
            whole.retain(|&block| {
                let is_old = age(self, block) as f64 >= average;
                if !is_old || self.blocks[block].is_expandable() {
                    return true;
                }
                freed_any = true;
                reclaimed += self.blocks[block].size;
                total_age -= age(self, block);
                count -= 1;
                self.release_block(block);
                false
            });
        }
        whole.clear();
        self.scratch = whole;
    }
}

//! Best fit: the smallest free block of the stream that is large enough, with the rules for oversize
//! and expandable blocks.

use super::Allocator;
use crate::driver::Driver;
use crate::structures::blocks::{NONE, State};
use crate::structures::entry::Entry;
use crate::structures::size_bins::SizeBins;
use crate::trace::TraceSink;

impl<D: Driver, S: TraceSink> Allocator<D, S> {
    /// Takes a block for `size` out of a set, or returns [`NONE`].
    #[inline]
    pub(super) fn search(&mut self, set: u32, size: u64, expandable: bool) -> u32 {
        if self.collects {
            let set = &self.pools.sets[set as usize];
            let (pool, half) = (set.pool, set.kind.index());
            self.pools.pool_mut(pool).halves[half].searches += 1;
        }
        match self.best_fit(set, size, expandable) {
            Some(found) => {
                let free = &mut self.pools.sets[set as usize].free;
                free.remove(&mut self.pools.nodes, &found);
                found.block
            }
            None => NONE,
        }
    }

    #[inline]
    fn best_fit(&self, set: u32, size: u64, expandable: bool) -> Option<Entry> {
        let free = &self.pools.sets[set as usize].free;
        let mut found = free.first_not_before(&self.pools.nodes, &self.search_key(size))?;
        if self.blocks[found.block].is_expandable() {
            found = if expandable {
                self.least_reach(free, found)
            } else {
                self.first_ordinary(free, found)?
            };
        }
        let max_split = self.settings.max_split_size;
        let is_unfit = if size < max_split {
            found.size >= max_split
        } else {
            found.size >= size.saturating_add(self.settings.max_non_split_rounding)
        };
        (!is_unfit).then_some(found)
    }

    /// Among expandable blocks a block that can grow counts as large as it can grow: it is used last.
    fn least_reach(&self, free: &SizeBins, mut found: Entry) -> Entry {
        while self.blocks[found.block].is_expandable() {
            let Some(next) = free.after(&self.pools.nodes, &found) else {
                break;
            };
            if self.reach(next.block) >= self.reach(found.block) {
                break;
            }
            found = next;
        }
        found
    }

    fn reach(&self, number: u32) -> u64 {
        let block = &self.blocks[number];
        match block.next {
            NONE => block.size,
            next if self.blocks[next].state == State::Unmapped => {
                block.size + self.blocks[next].size
            }
            _ => block.size,
        }
    }

    /// Expandable segments were switched off: skips the blocks that are left of them.
    fn first_ordinary(&self, free: &SizeBins, found: Entry) -> Option<Entry> {
        let after = |entry: &Entry| free.after(&self.pools.nodes, entry);
        std::iter::successors(after(&found), after)
            .find(|entry| !self.blocks[entry.block].is_expandable())
    }
}

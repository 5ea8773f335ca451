//! Returns cached memory to the driver: one oversize block, or all free blocks that are whole segments.

use super::Allocator;
use super::malloc::Quest;
use crate::driver::Driver;
use crate::ids::{Address, PoolId, PoolKind};
use crate::pools::{DEFAULT_POOL, PoolError};
use crate::settings::UNLIMITED;
use crate::structures::entry::Entry;
use crate::trace::{Action, TraceSink};

impl<D: Driver, S: TraceSink> Allocator<D, S> {
    /// `torch.cuda.empty_cache()` for this device.
    pub fn empty_cache(&mut self) -> Result<(), PoolError> {
        if !self.scopes.is_empty()
            && self.behaviour.scopes_suspend_flushing
            && !self.behaviour.flush_inside_scope_allowed
        {
            return Err(PoolError::FlushInsideScope);
        }
        self.release_all(PoolId::DEFAULT);
        Ok(())
    }

    /// What destroying a `MemPool` does at its end: release what it has cached.
    pub fn empty_pool_cache(&mut self, pool: PoolId) {
        self.release_all(pool);
    }

    /// Releases free blocks that are whole segments: of all pools for the default id, otherwise of one pool.
    pub(super) fn release_all(&mut self, id: PoolId) {
        // The current stream is unknown here; a capture anywhere counts as one on it.
        let suspended = if self.behaviour.scopes_suspend_flushing {
            !self.scopes.is_empty()
        } else {
            self.is_capturing()
        };
        if id.is_default() && !suspended {
            self.synchronize(None);
            self.release_half(DEFAULT_POOL, PoolKind::Large);
            self.release_half(DEFAULT_POOL, PoolKind::Small);
        }
        let freeable: Vec<PoolId> = self.pools.freeable.iter().collect();
        for pool in freeable {
            let Some(index) = self.pools.find(pool) else {
                continue;
            };
            if !id.is_default() {
                if pool != id {
                    continue;
                }
                self.synchronize(Some(index));
            }
            self.release_half(index, PoolKind::Small);
            self.release_half(index, PoolKind::Large);
            if self.pools.pool(index).driver_segments == 0 && self.is_without_blocks(index) {
                self.pools.remove(index);
            }
        }
    }

    fn is_without_blocks(&self, pool: u32) -> bool {
        self.pools.is_vacant(pool)
            && !self
                .blocks
                .iter()
                .any(|(_, block)| self.pools.sets[block.set as usize].pool == pool)
    }

    fn release_half(&mut self, pool: u32, kind: PoolKind) {
        let mut free = std::mem::take(&mut self.scratch);
        let sets = &self.pools.pool(pool).halves[kind.index()].sets;
        let entries = sets.iter().flat_map(|&(_, set)| self.pools.free_in(set));
        free.extend(entries.map(|entry| entry.block));
        // Read first: a released segment is no longer known.
        free.retain(|&block| {
            let is_expandable = self.blocks[block].is_expandable();
            if !is_expandable && !self.blocks[block].is_split() {
                self.release_block(block);
            }
            is_expandable
        });
        for &block in &free {
            self.unmap(block);
            self.drop_if_unmapped(block);
        }
        free.clear();
        self.scratch = free;
    }

    /// Returns a free segment to the driver.
    pub(super) fn release_block(&mut self, number: u32) {
        let block = &self.blocks[number];
        let (address, bytes, set) = (block.address, block.size, block.set);
        self.stats.num_device_free += 1;
        self.tell(Action::SegmentFree, address, bytes, set);
        self.driver.free(Address(address), bytes);
        self.count_returned(set, bytes);
        let kind = self.pools.sets[set as usize].kind;
        self.stats.segment.decrease(kind, 1);
        if bytes >= self.settings.max_split_size {
            self.stats.oversize_segment_less();
        }
        self.remove_free(number);
        self.blocks.remove(number);
    }

    /// With a split size set: releases one oversize block that is large enough, or several that are
    /// together. Returns whether enough was released.
    pub(super) fn release_available(&mut self, quest: &Quest) -> bool {
        let max_split = self.settings.max_split_size;
        if max_split == UNLIMITED {
            return false;
        }
        let wanted = quest.size.max(max_split);
        let skips = self.behaviour.oversize_release_skips_expandable;
        let free = &self.pools.sets[quest.set as usize].free;
        let nodes = &self.pools.nodes;
        let first = free.first_not_before(nodes, &self.search_key(wanted));
        if let Some(Entry { block, .. }) = first
            && !(skips && self.blocks[block].is_expandable())
        {
            if self.blocks[block].is_expandable() {
                return false;
            }
            self.release_block(block);
            return true;
        }
        // Largest first, from just before the first that would be large enough.
        let mut oversize = std::mem::take(&mut self.scratch);
        let mut next = match &first {
            Some(first) => free.before(nodes, first),
            None => free.last(nodes),
        };
        let mut released = 0;
        while let Some(entry) = next {
            if entry.size < max_split || released >= wanted {
                break;
            }
            if !self.blocks[entry.block].is_expandable() {
                oversize.push(entry.block);
                released += entry.size;
            }
            next = free.before(nodes, &entry);
        }
        for block in oversize.drain(..) {
            self.release_block(block);
        }
        self.scratch = oversize;
        released >= wanted
    }
}

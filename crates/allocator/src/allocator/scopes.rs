//! Private pools: creating them, opening scopes that direct requests to them, releasing them.

use super::Allocator;
use crate::driver::Driver;
use crate::ids::{PoolId, StreamId, ThreadId};
use crate::pools::{DEFAULT_POOL, PoolError, PoolOptions, Scope, ScopeFilter};
use crate::trace::TraceSink;

impl<D: Driver, S: TraceSink> Allocator<D, S> {
    /// Creates a private pool, or adds a user to it: what `MemPool()` and a graph capture do.
    pub fn create_pool(&mut self, id: PoolId, options: PoolOptions) {
        match self.pools.find(id) {
            Some(index) => {
                let pool = self.pools.pool_mut(index);
                pool.use_count += 1;
                self.pools.freeable.remove(id);
            }
            None => {
                self.pools.add(id, options);
            }
        }
        if options.use_on_oom && !self.pools.helpers.contains(&id) {
            self.pools.helpers.push(id);
        }
    }

    /// `setUseOnOOM`: a `MemPool` loses this when it is destroyed.
    pub fn set_use_on_oom(&mut self, id: PoolId, on: bool) -> Result<(), PoolError> {
        let index = self.pools.find(id).ok_or(PoolError::Unknown(id))?;
        self.pools.pool_mut(index).options.use_on_oom = on;
        self.pools.helpers.retain(|&other| other != id);
        if on {
            self.pools.helpers.push(id);
        }
        Ok(())
    }

    /// `beginAllocateToPool`: requests that the filter accepts go to the pool, which is made if it is
    /// not there and gets one user more.
    pub fn begin_scope(&mut self, id: PoolId, filter: ScopeFilter) -> Result<(), PoolError> {
        let found = self.pools.find(id);
        if found.is_some_and(|index| self.scopes.iter().any(|scope| scope.pool == index)) {
            return Err(PoolError::AlreadyOpen);
        }
        self.create_pool(id, PoolOptions::default());
        let pool = self.pools.find(id).ok_or(PoolError::Unknown(id))?;
        self.scopes.push(Scope { pool, filter });
        Ok(())
    }

    /// `endAllocateToPool`. The user that [`begin_scope`](Self::begin_scope) added stays:
    /// [`release_pool`](Self::release_pool) takes it away, at once for `use_mem_pool`, with the graph
    /// for a capture.
    pub fn end_scope(&mut self, id: PoolId) -> Result<(), PoolError> {
        let index = self.pools.find(id).ok_or(PoolError::NotOpen)?;
        let place = self.scopes.iter().position(|scope| scope.pool == index);
        self.scopes.remove(place.ok_or(PoolError::NotOpen)?);
        if self.settings.graph_capture_record_stream_reuse && self.release.at_least(12) {
            self.complete_deferred_of(index);
        }
        Ok(())
    }

    /// From 2.12 on the end of a capture frees what it deferred, if the option is on.
    fn complete_deferred_of(&mut self, pool: u32) {
        let of_pool = |&block: &u32| self.pools.sets[self.blocks[block].set as usize].pool == pool;
        let waiting: Vec<u32> = self.deferred.iter().copied().filter(of_pool).collect();
        for block in waiting {
            self.take_off_waiting(block);
            self.complete_free(block);
        }
    }

    /// Removes one user of a pool. After the last one, a flush may release its memory.
    pub fn release_pool(&mut self, id: PoolId) -> Result<(), PoolError> {
        let index = self.pools.find(id).ok_or(PoolError::Unknown(id))?;
        let pool = self.pools.pool_mut(index);
        if pool.use_count == 0 || id.is_default() {
            return Err(PoolError::NotInUse(id));
        }
        pool.use_count -= 1;
        if pool.use_count == 0 {
            self.pools.make_freeable(id);
        }
        Ok(())
    }

    /// What destroying a `MemPool` object does.
    pub fn destroy_pool(&mut self, id: PoolId) -> Result<(), PoolError> {
        self.set_use_on_oom(id, false)?;
        self.release_pool(id)?;
        self.empty_pool_cache(id);
        Ok(())
    }

    /// Whether a pool exists and is in use.
    pub fn is_pool_in_use(&self, id: PoolId) -> bool {
        let found = self.pools.find(id);
        found.is_some_and(|index| self.pools.pool(index).use_count > 0)
    }

    /// Ids of the private pools there are.
    pub fn private_pools(&self) -> impl Iterator<Item = PoolId> {
        self.pools.private().map(|(_, pool)| pool.id)
    }

    /// Whether polling and flushing are deferred: by any open scope up to 2.12, by a capture of this
    /// stream from 2.13 on.
    #[inline]
    pub(super) fn is_suspended(&self, stream: StreamId) -> bool {
        if self.scopes.is_empty() {
            return false;
        }
        self.behaviour.scopes_suspend_flushing
            || self
                .scopes
                .iter()
                .any(|scope| scope.filter.captures(stream))
    }

    pub(super) fn is_capturing(&self) -> bool {
        let captures = |scope: &Scope| matches!(scope.filter, ScopeFilter::Capture(_));
        self.scopes.iter().any(captures)
    }

    /// The pool that the open scopes choose for a request.
    #[inline]
    pub(super) fn chosen_pool(&self, thread: ThreadId, stream: StreamId) -> u32 {
        if self.scopes.is_empty() {
            return DEFAULT_POOL;
        }
        let accepts = |scope: &&Scope| scope.filter.accepts(thread, stream);
        let scope = if self.behaviour.newest_scope_first {
            self.scopes.iter().rev().find(accepts)
        } else {
            self.scopes.iter().find(accepts)
        };
        scope.map_or(DEFAULT_POOL, |scope| scope.pool)
    }
}

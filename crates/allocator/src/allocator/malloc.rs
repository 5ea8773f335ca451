//! The stages of a request: search the cache, ask the driver, release, retry, fail.

use super::Allocator;
use crate::driver::Driver;
use crate::ids::{Address, BlockId, PoolId, PoolKind, StreamId, ThreadId};
use crate::oom_text::OutOfMemory;
use crate::pools::DEFAULT_POOL;
use crate::release::UseOnOom;
use crate::rounding::{self, ABSURD_BYTES, SMALL_MAX_BYTES};
use crate::structures::blocks::NONE;
use crate::trace::{Action, TraceEvent, TraceSink};

/// A request for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub bytes: u64,
    pub stream: StreamId,
    /// The host thread, which decides whether a `use_mem_pool` scope applies.
    pub thread: ThreadId,
    /// An existing pool that overrides open scopes; for replaying recordings that name pools. A private
    /// one counts as an open scope during the request.
    pub pool: Option<PoolId>,
}

impl Request {
    /// From the thread 0, for the pool that the open scopes choose.
    #[must_use]
    pub const fn new(bytes: u64, stream: StreamId) -> Self {
        Self {
            bytes,
            stream,
            thread: ThreadId(0),
            pool: None,
        }
    }
}

/// An allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    pub address: Address,
    pub block: BlockId,
    /// The size of the block: what `memory_allocated` grows by.
    pub size: u64,
}

impl Allocation {
    /// What a request for no bytes gets. Freeing it does nothing.
    pub const NULL: Self = Self {
        address: Address(0),
        block: BlockId(NONE),
        size: 0,
    };
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum AllocError {
    /// `torch.OutOfMemoryError`; [`OutOfMemory::text`] is its message.
    #[error("out of memory: {} bytes were requested from the driver", .0.segment_bytes)]
    OutOfMemory(OutOfMemory),
    /// `throw_on_cudamalloc_oom` refused the request before it reached the driver.
    #[error(
        "CUDA out of memory. Allocation was preemptively rejected because it would exceed \
         per_process_memory_fraction limit. Requested size: {}", crate::oom_text::size_text(*.0)
    )]
    Rejected(u64),
    /// A size that no memory has, mostly from an overflow.
    #[error("CUDA out of memory. Tried to allocate more than 1EB memory.")]
    Absurd,
    #[error("no pool {0}")]
    UnknownPool(PoolId),
}

/// A request in progress.
#[derive(Clone, Copy)]
pub(super) struct Quest {
    pub(super) request: u64,
    /// The request, rounded.
    pub(super) size: u64,
    pub(super) pool: u32,
    pub(super) kind: PoolKind,
    pub(super) set: u32,
    pub(super) stream: StreamId,
    /// Whether this request may be served by expandable segments.
    pub(super) expandable: bool,
}

/// How an attempt to get memory from the driver ended.
pub(super) enum Grown {
    Block(u32),
    Exhausted,
    Rejected,
}

impl<D: Driver, S: TraceSink> Allocator<D, S> {
    /// Memory for `bytes` bytes on `stream`.
    pub fn malloc(&mut self, bytes: u64, stream: StreamId) -> Result<Allocation, AllocError> {
        self.malloc_request(Request::new(bytes, stream))
    }

    /// Memory for a request in full.
    pub fn malloc_request(&mut self, request: Request) -> Result<Allocation, AllocError> {
        if request.bytes == 0 {
            return Ok(Allocation::NULL);
        }
        if request.bytes >= ABSURD_BYTES {
            return Err(AllocError::Absurd);
        }
        let suspended = self.is_suspended(request.stream)
            || (self.behaviour.scopes_suspend_flushing
                && request.pool.is_some_and(|pool| !pool.is_default()));
        if !suspended {
            self.process_events();
        }
        let quest = self.quest(request)?;
        let mut block = self.search(quest.set, quest.size, quest.expandable);
        let mut splits_finely = quest.kind == PoolKind::Small || self.splits_as_expandable(&quest);
        if block == NONE {
            (block, splits_finely) = self.acquire(&quest, splits_finely, suspended)?;
        }
        Ok(self.hand_out(block, &quest, splits_finely))
    }

    fn quest(&mut self, request: Request) -> Result<Quest, AllocError> {
        let (size, kind) = self.size_and_kind(request.bytes);
        let pool = self.pool_of(request)?;
        Ok(Quest {
            request: request.bytes,
            size,
            pool,
            kind,
            set: self.pools.set(pool, kind, request.stream),
            stream: request.stream,
            expandable: self.is_expandable_for(pool),
        })
    }

    #[inline]
    fn size_and_kind(&self, bytes: u64) -> (u64, PoolKind) {
        let size = rounding::block_size(
            bytes,
            &self.settings.roundup_power2_divisions,
            self.behaviour.one_division_leaves_unrounded,
        );
        let is_small = size <= SMALL_MAX_BYTES;
        (
            size,
            if is_small {
                PoolKind::Small
            } else {
                PoolKind::Large
            },
        )
    }

    #[inline]
    fn pool_of(&self, request: Request) -> Result<u32, AllocError> {
        match request.pool {
            Some(PoolId::DEFAULT) => Ok(DEFAULT_POOL),
            Some(id) => self.pools.find(id).ok_or(AllocError::UnknownPool(id)),
            None => Ok(self.chosen_pool(request.thread, request.stream)),
        }
    }

    #[inline]
    fn is_expandable_for(&self, pool: u32) -> bool {
        let custom = pool != DEFAULT_POOL && self.pools.pool(pool).options.custom_allocator;
        self.settings.expandable_segments && !(self.behaviour.expandable_follows_pool && custom)
    }

    /// Up to 2.9 the option alone decided how large blocks are split.
    fn splits_as_expandable(&self, quest: &Quest) -> bool {
        if self.behaviour.expandable_follows_pool {
            quest.expandable
        } else {
            self.settings.expandable_segments
        }
    }

    /// A block from anywhere but the pool's cache, and whether it is split down to 512 bytes.
    #[cold]
    fn acquire(
        &mut self,
        quest: &Quest,
        splits_finely: bool,
        suspended: bool,
    ) -> Result<(u32, bool), AllocError> {
        if self.collects {
            self.collect_garbage();
        }
        match self.grow(quest, false) {
            Grown::Block(block) => return Ok((block, splits_finely)),
            Grown::Rejected => return Err(AllocError::Rejected(quest.request)),
            Grown::Exhausted => {}
        }
        let when = self.behaviour.use_on_oom;
        if when == UseOnOom::BeforeRelease
            && let Some(block) = self.search_pools_for_oom(quest)
        {
            return Ok((block, quest.kind == PoolKind::Small));
        }
        if self.release_available(quest)
            && let Grown::Block(block) = self.grow(quest, false)
        {
            return Ok((block, splits_finely));
        }
        if !suspended {
            self.release_all(PoolId::DEFAULT);
            if let Grown::Block(block) = self.grow(quest, true) {
                return Ok((block, splits_finely));
            }
        }
        if when == UseOnOom::AfterFlush
            && let Some(block) = self.search_pools_for_oom(quest)
        {
            return Ok((block, quest.kind == PoolKind::Small));
        }
        Err(AllocError::OutOfMemory(self.give_up(quest)))
    }

    /// Pools that may help out the default one.
    fn search_pools_for_oom(&mut self, quest: &Quest) -> Option<u32> {
        if quest.pool != DEFAULT_POOL {
            return None;
        }
        // PyTorch keeps them in a standard hash set, which inserts at the front.
        let helpers = self.pools.helpers.clone();
        helpers.into_iter().rev().find_map(|id| {
            let pool = self.pools.find(id)?;
            let set = self.pools.set(pool, quest.kind, quest.stream);
            let block = self.search(set, quest.size, false);
            (block != NONE).then_some(block)
        })
    }

    fn give_up(&mut self, quest: &Quest) -> OutOfMemory {
        let info = self.driver.memory_info();
        self.sink.record(TraceEvent {
            action: Action::Oom,
            address: Address(info.free),
            bytes: quest.size,
            stream: quest.stream,
            pool: self.pools.pool(quest.pool).id,
        });
        self.stats.num_ooms += 1;
        OutOfMemory {
            requested_bytes: quest.request,
            rounded_bytes: quest.size,
            segment_bytes: self.segment_bytes(quest),
            total_bytes: info.total,
            free_bytes: info.free,
            limit_bytes: self.limit,
            allocated_bytes: self.stats.allocated_bytes.all.current as u64,
            reserved_bytes: self.stats.reserved_bytes.all.current as u64,
            private_pools_free_bytes: self.free_in_private_pools(),
            expandable_segments: quest.expandable,
            exceeded_reserve_bytes: self.exceeded_reserve(quest),
        }
    }

    fn free_in_private_pools(&self) -> u64 {
        self.pools
            .private()
            .flat_map(|(_, pool)| &pool.halves)
            .flat_map(|half| &half.sets)
            .flat_map(|&(_, set)| self.pools.free_in(set))
            .map(|entry| entry.size)
            .sum()
    }
}

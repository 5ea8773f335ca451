//! The pools of one device: the default one, and a private one for every graph or `MemPool`. A pool
//! has a small and a large half, and each half a set of free blocks per stream.

use crate::ids::{PoolId, PoolKind, StreamId, ThreadId};
use crate::structures::entry::Entry;
use crate::structures::hash_order::HashOrder;
use crate::structures::size_bins::SizeBins;
use crate::structures::trees::{Nodes, Tree};

/// The options of a `MemPool`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolOptions {
    /// Requests of the default pool may be served from here before they fail (from 2.8).
    pub use_on_oom: bool,
    /// Blocks are handed out whole (from 2.10).
    pub no_split: bool,
    /// Memory comes from a custom allocator: never expandable segments.
    pub custom_allocator: bool,
}

/// Which requests an open pool scope accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScopeFilter {
    /// Those of one host thread: `torch.cuda.use_mem_pool`.
    Thread(ThreadId),
    /// Those on streams that take part in a graph capture.
    Capture(Vec<StreamId>),
}

impl ScopeFilter {
    pub(crate) fn accepts(&self, thread: ThreadId, stream: StreamId) -> bool {
        match self {
            Self::Thread(owner) => *owner == thread,
            Self::Capture(streams) => streams.contains(&stream),
        }
    }

    pub(crate) fn captures(&self, stream: StreamId) -> bool {
        matches!(self, Self::Capture(streams) if streams.contains(&stream))
    }
}

/// What is wrong with a call that opens, closes or releases a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    #[error("beginAllocateToPool: already recording to mempool_id")]
    AlreadyOpen,
    #[error("endAllocatePool: not currently recording to mempool_id")]
    NotOpen,
    #[error("no pool {0}")]
    Unknown(PoolId),
    #[error("pool {0} is no longer in use")]
    NotInUse(PoolId),
    #[error("this release of PyTorch cannot flush its cache while a pool scope is open")]
    FlushInsideScope,
}

pub(crate) const DEFAULT_POOL: u32 = 0;

#[derive(Clone, Debug)]
pub(crate) struct Pool {
    pub(crate) id: PoolId,
    pub(crate) options: PoolOptions,
    pub(crate) use_count: u32,
    /// Segments that came from the driver and were not returned.
    pub(crate) driver_segments: u64,
    pub(crate) halves: [Half; 2],
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Half {
    /// By stream, in the order of their handles.
    pub(crate) sets: Vec<(StreamId, u32)>,
    /// Searches so far, counted only while garbage collection is on.
    pub(crate) searches: u64,
}

/// The free blocks of one half of a pool on one stream.
#[derive(Clone, Debug)]
pub(crate) struct StreamSet {
    pub(crate) pool: u32,
    pub(crate) kind: PoolKind,
    pub(crate) stream: StreamId,
    pub(crate) free: SizeBins,
    /// Holes of expandable segments, by address.
    pub(crate) unmapped: Tree,
}

impl StreamSet {
    fn new(pool: u32, kind: PoolKind, stream: StreamId) -> Self {
        Self {
            pool,
            kind,
            stream,
            free: SizeBins::default(),
            unmapped: Tree::default(),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Scope {
    pub(crate) pool: u32,
    pub(crate) filter: ScopeFilter,
}

/// All pools and their sets. Places of deleted pools and sets are reused.
#[derive(Clone, Debug)]
pub(crate) struct Pools {
    pub(crate) pools: Vec<Option<Pool>>,
    pub(crate) sets: Vec<StreamSet>,
    /// The nodes of the sets.
    pub(crate) nodes: Nodes,
    /// Pools that are no longer in use: a flush may release their cached memory.
    pub(crate) freeable: HashOrder<PoolId>,
    /// Pools that help out when memory runs out, the newest last.
    pub(crate) helpers: Vec<PoolId>,
    spare_sets: Vec<u32>,
}

impl Pools {
    pub(crate) fn new() -> Self {
        let mut pools = Self {
            pools: Vec::new(),
            sets: Vec::new(),
            nodes: Nodes::default(),
            freeable: HashOrder::default(),
            helpers: Vec::new(),
            spare_sets: Vec::new(),
        };
        pools.add(PoolId::DEFAULT, PoolOptions::default());
        pools
    }

    pub(crate) fn add(&mut self, id: PoolId, options: PoolOptions) -> u32 {
        let pool = Pool {
            id,
            options,
            use_count: 1,
            driver_segments: 0,
            halves: [Half::default(), Half::default()],
        };
        match self.pools.iter().position(Option::is_none) {
            Some(place) => {
                self.pools[place] = Some(pool);
                place as u32
            }
            None => {
                self.pools.push(Some(pool));
                self.pools.len() as u32 - 1
            }
        }
    }

    pub(crate) fn find(&self, id: PoolId) -> Option<u32> {
        let is_it = |pool: &Option<Pool>| pool.as_ref().is_some_and(|pool| pool.id == id);
        self.pools.iter().position(is_it).map(|index| index as u32)
    }

    #[inline]
    pub(crate) fn pool(&self, index: u32) -> &Pool {
        self.pools[index as usize].as_ref().expect("a pool in use")
    }

    #[inline]
    pub(crate) fn pool_mut(&mut self, index: u32) -> &mut Pool {
        self.pools[index as usize].as_mut().expect("a pool in use")
    }

    /// Private pools, in no order that matters.
    pub(crate) fn private(&self) -> impl Iterator<Item = (u32, &Pool)> {
        (0..)
            .zip(&self.pools)
            .skip(1)
            .filter_map(|(index, pool)| Some((index, pool.as_ref()?)))
    }

    /// Removes a private pool that has no memory.
    pub(crate) fn remove(&mut self, index: u32) {
        if let Some(pool) = self.pools[index as usize].take() {
            self.freeable.remove(pool.id);
            let sets = pool.halves.iter().flat_map(|half| &half.sets);
            self.spare_sets.extend(sets.map(|&(_, set)| set));
        }
    }

    /// Marks a pool whose last user is gone.
    pub(crate) fn make_freeable(&mut self, id: PoolId) {
        let hash = if id.0 != 0 { id.0 } else { id.1 };
        self.freeable.insert(hash, id);
    }

    /// Whether no block is left in a pool.
    pub(crate) fn is_vacant(&self, index: u32) -> bool {
        let halves = &self.pool(index).halves;
        halves.iter().flat_map(|half| &half.sets).all(|&(_, set)| {
            let set = &self.sets[set as usize];
            set.free.is_empty() && set.unmapped.is_empty()
        })
    }

    /// What is free in a set, in order.
    pub(crate) fn free_in(&self, set: u32) -> impl Iterator<Item = Entry> + '_ {
        self.sets[set as usize].free.iter(&self.nodes)
    }

    /// The set of a stream in half a pool, created on demand.
    #[inline]
    pub(crate) fn set(&mut self, pool: u32, kind: PoolKind, stream: StreamId) -> u32 {
        let sets = &self.pool(pool).halves[kind.index()].sets;
        if let [(only, set)] = sets[..]
            && only == stream
        {
            return set;
        }
        match sets.binary_search_by_key(&stream, |&(stream, _)| stream) {
            Ok(place) => sets[place].1,
            Err(place) => self.add_set(pool, kind, stream, place),
        }
    }

    /// Creates this many sets before they are needed.
    pub(crate) fn reserve_sets(&mut self, sets: usize) {
        self.sets.reserve(sets);
        self.spare_sets.reserve(self.sets.len() + sets);
        for _ in 0..sets {
            self.spare_sets.push(self.sets.len() as u32);
            let mut set = StreamSet::new(DEFAULT_POOL, PoolKind::Small, StreamId::DEFAULT);
            set.free.make_bins();
            self.sets.push(set);
        }
        for half in self
            .pools
            .iter_mut()
            .flatten()
            .flat_map(|pool| &mut pool.halves)
        {
            half.sets.reserve(sets);
        }
    }

    #[cold]
    fn add_set(&mut self, pool: u32, kind: PoolKind, stream: StreamId, place: usize) -> u32 {
        let number = match self.spare_sets.pop() {
            Some(number) => {
                let set = &mut self.sets[number as usize];
                (set.pool, set.kind, set.stream) = (pool, kind, stream);
                number
            }
            None => {
                self.sets.push(StreamSet::new(pool, kind, stream));
                self.sets.len() as u32 - 1
            }
        };
        let half = &mut self.pool_mut(pool).halves[kind.index()];
        half.sets.insert(place, (stream, number));
        number
    }
}

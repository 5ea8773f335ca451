//! The allocator itself. One instance represents one device of one process.

mod adopt;
mod collect;
mod events;
mod expandable;
mod free;
mod grow;
mod hand_out;
mod malloc;
mod release_cached;
mod room;
mod scopes;
mod search;
mod segments;

pub use adopt::{AdoptError, BlockImage, BlockState, SegmentImage};
pub use events::StreamIdentity;
pub use free::InvalidPointer;
pub use malloc::{AllocError, Allocation, Request};
pub use room::Room;
pub use segments::{BlockView, SegmentView};

use std::collections::VecDeque;

use crate::driver::Driver;
use crate::ids::{Address, PoolId, StreamId};
use crate::pools::{Pools, Scope};
use crate::release::{Behaviour, FractionRule, Release, TieBreak};
use crate::settings::{Settings, SettingsError};
use crate::stats::Stats;
use crate::structures::address_map::AddressMap;
use crate::structures::blocks::{Block, Blocks};
use crate::structures::entry::Entry;
use crate::structures::hash_order::HashOrder;
use crate::trace::{Action, NoTrace, TraceEvent, TraceSink};

/// PyTorch's caching allocator for one device: give it a driver and the operations of a program, and
/// it hands out what PyTorch would, asks the driver for what PyTorch would, and counts what PyTorch
/// counts.
///
/// Nothing is shared, and nothing depends on time or on the environment: the same calls give the same
/// answers. Cloning one (where driver and sink can be cloned) makes an independent copy of its state.
#[derive(Clone, Debug)]
pub struct Allocator<D, S = NoTrace> {
    release: Release,
    behaviour: Behaviour,
    settings: Settings,
    driver: D,
    sink: S,
    stats: Stats,
    blocks: Blocks,
    /// Live and pending blocks; empty if the caller uses block ids only.
    by_address: Option<AddressMap>,
    pools: Pools,
    scopes: Vec<Scope>,
    /// The most that may be reserved.
    limit: Option<u64>,
    reserved_total: u64,
    segments_made: u32,
    blocks_made: u32,
    expandable: Vec<expandable::Expandable>,
    /// Other streams that use a block, by `Block::uses`.
    uses: Vec<HashOrder<StreamId>>,
    spare_uses: Vec<u32>,
    /// Events that have not passed, with their blocks: one queue per stream.
    queues: Vec<(StreamId, VecDeque<(u64, u32)>)>,
    /// The queues that are not empty, in the order in which they are polled.
    busy_queues: HashOrder<usize>,
    /// What PyTorch calls the streams.
    identities: Vec<(StreamId, StreamIdentity)>,
    events_recorded: u64,
    events_open: u64,
    /// Freed during a capture, with uses on other streams.
    deferred: Vec<u32>,
    /// Uses that were recorded during a capture.
    capture_uses: Vec<(u32, StreamId)>,
    /// Garbage collection is possible, so searches are counted.
    collects: bool,
    /// A scratch list of blocks, so that none is allocated.
    scratch: Vec<u32>,
}

impl<D: Driver> Allocator<D> {
    /// An allocator that keeps no trace.
    pub fn new(release: Release, settings: Settings, driver: D) -> Self {
        Self::with_trace(release, settings, driver, NoTrace)
    }
}

impl<D: Driver, S: TraceSink> Allocator<D, S> {
    /// An allocator that tells `sink` what it does.
    pub fn with_trace(release: Release, settings: Settings, driver: D, sink: S) -> Self {
        let fraction = settings.per_process_memory_fraction;
        let mut allocator = Self {
            release,
            behaviour: release.behaviour(),
            stats: Stats::new(settings.max_split_size),
            settings,
            driver,
            sink,
            blocks: Blocks::default(),
            by_address: Some(AddressMap::default()),
            pools: Pools::new(),
            scopes: Vec::new(),
            limit: None,
            reserved_total: 0,
            segments_made: 0,
            blocks_made: 0,
            expandable: Vec::new(),
            uses: Vec::new(),
            spare_uses: Vec::new(),
            queues: Vec::new(),
            busy_queues: HashOrder::default(),
            identities: Vec::new(),
            events_recorded: 0,
            events_open: 0,
            deferred: Vec::new(),
            capture_uses: Vec::new(),
            collects: false,
            scratch: Vec::new(),
        };
        if fraction < 1.0 {
            allocator.set_memory_fraction(fraction);
        }
        allocator.note_settings();
        allocator
    }

    /// `torch.cuda.set_per_process_memory_fraction`. Nothing is released; only growth is limited.
    /// `fraction` lies in [0, 1], which PyTorch checks in Python.
    pub fn set_memory_fraction(&mut self, fraction: f64) {
        let part = fraction * self.driver.total_bytes() as f64;
        self.limit = match self.behaviour.fraction {
            FractionRule::AlwaysFloor => Some(part as u64),
            _ if fraction >= 1.0 => None,
            FractionRule::FloorBelowOne => Some(part as u64),
            FractionRule::RoundBelowOne => Some(part.round() as u64),
        };
        self.note_settings();
    }

    /// Limits growth to this many reserved bytes, where they are known rather than a fraction.
    pub fn set_limit(&mut self, bytes: Option<u64>) {
        self.limit = bytes;
        self.note_settings();
    }

    /// Options at run time, read as this release reads them.
    pub fn apply_settings(&mut self, text: &str) -> Result<(), SettingsError> {
        let result = self.settings.apply(text, self.release);
        self.note_settings();
        result
    }

    fn note_settings(&mut self) {
        self.collects = self.limit.is_some() && self.settings.garbage_collection_threshold > 0.0;
    }

    pub fn release(&self) -> Release {
        self.release
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The limit that a memory fraction set, in bytes.
    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// For resetting peaks and sums.
    pub fn stats_mut(&mut self) -> &mut Stats {
        &mut self.stats
    }

    pub fn driver(&self) -> &D {
        &self.driver
    }

    pub fn driver_mut(&mut self) -> &mut D {
        &mut self.driver
    }

    pub fn sink(&self) -> &S {
        &self.sink
    }

    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    #[inline(always)]
    fn tell(&mut self, action: Action, address: u64, bytes: u64, set: u32) {
        let set = &self.pools.sets[set as usize];
        let event = TraceEvent {
            action,
            address: Address(address),
            bytes,
            stream: set.stream,
            pool: if set.pool == 0 {
                PoolId::DEFAULT
            } else {
                self.pools.pool(set.pool).id
            },
        };
        self.sink.record(event);
    }

    /// The rank of the first block of a new segment.
    #[inline]
    fn rank_of_segment(&mut self) -> u32 {
        match self.behaviour.tie_break {
            TieBreak::Address => 0,
            TieBreak::ConstructionOrder => self.next_construction(),
            TieBreak::SegmentThenAddress => {
                self.segments_made = self.segments_made.wrapping_add(1);
                self.segments_made
            }
        }
    }

    /// The rank of a block that is cut off another.
    #[inline]
    fn rank_of_part(&mut self, whole: u32) -> u32 {
        match self.behaviour.tie_break {
            TieBreak::Address => 0,
            TieBreak::ConstructionOrder => self.next_construction(),
            TieBreak::SegmentThenAddress => whole,
        }
    }

    /// 2.12 counts blocks in a signed 32-bit number; flipping the sign bit keeps its order.
    fn next_construction(&mut self) -> u32 {
        self.blocks_made = self.blocks_made.wrapping_add(1);
        self.blocks_made ^ 0x8000_0000
    }

    /// The key of a search for `size`: before every block of that size.
    #[inline]
    fn search_key(&self, size: u64) -> Entry {
        Entry {
            size,
            address: 0,
            // The counter of a search key is -1 in 2.12.
            rank: match self.behaviour.tie_break {
                TieBreak::ConstructionOrder => 0x7fff_ffff,
                _ => 0,
            },
            block: 0,
        }
    }

    #[inline]
    fn entry(number: u32, block: &Block) -> Entry {
        Entry {
            size: block.size,
            address: block.address,
            rank: block.rank,
            block: number,
        }
    }

    fn hole_entry(number: u32, block: &Block) -> Entry {
        Entry {
            size: 0,
            address: block.address,
            rank: 0,
            block: number,
        }
    }

    /// The live or pending block that starts at an address.
    #[inline]
    fn find(&self, address: Address) -> Option<u32> {
        let address_of = |number| self.blocks.address_of(number);
        self.by_address.as_ref()?.get(address.0, address_of)
    }

    /// Enters a block that is live or pending from now on under its address.
    #[inline]
    fn enter(&mut self, address: u64, number: u32) {
        if let Some(by_address) = &mut self.by_address {
            by_address.insert(address, number, |number| self.blocks.address_of(number));
        }
    }

    /// Puts a block among the free ones of its set; its age starts now.
    #[inline]
    fn insert_free(&mut self, number: u32) {
        let block = &mut self.blocks[number];
        block.state = crate::structures::blocks::State::Free;
        let set = &mut self.pools.sets[block.set as usize];
        if self.collects {
            let pool = self.pools.pools[set.pool as usize].as_ref();
            block.age_base = pool.map_or(0, |pool| pool.halves[set.kind.index()].searches);
        }
        let entry = Self::entry(number, block);
        set.free.insert(&mut self.pools.nodes, entry);
    }

    #[inline]
    fn remove_free(&mut self, number: u32) {
        let block = &self.blocks[number];
        let entry = Self::entry(number, block);
        let set = &mut self.pools.sets[block.set as usize];
        let found = set.free.remove(&mut self.pools.nodes, &entry);
        debug_assert!(found, "a free block stands in its set");
    }
}

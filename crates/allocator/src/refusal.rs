//! Why no cached block served a request, and which live blocks keep segments from being returned.
//!
//! Fragmentation as data: [`Refusal::of`] examines the segments when a request fails and says for every
//! cached block which rule kept it from serving the request. The caller puts it into words.

use crate::allocator::{BlockState, BlockView, SegmentView};
use crate::ids::{PoolId, PoolKind, StreamId};
use crate::release::Release;
use crate::rounding::{SMALL_MAX_BYTES, block_size, segment_size};
use crate::settings::Settings;

/// A request as the allocator sees it once it is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The size of the block.
    pub size: u64,
    /// The request to the driver when no cached block serves.
    pub segment_size: u64,
    pub kind: PoolKind,
    pub stream: StreamId,
    pub pool: PoolId,
}

impl Wanted {
    /// The sizes for a request of `bytes`. A rounded size stays the same.
    #[must_use]
    pub fn new(
        bytes: u64,
        stream: StreamId,
        pool: PoolId,
        settings: &Settings,
        release: Release,
    ) -> Self {
        let unrounded = release.behaviour().one_division_leaves_unrounded;
        let size = block_size(bytes, &settings.roundup_power2_divisions, unrounded);
        Self {
            size,
            segment_size: segment_size(size, settings.large_segment_size),
            kind: if size <= SMALL_MAX_BYTES {
                PoolKind::Small
            } else {
                PoolKind::Large
            },
            stream,
            pool,
        }
    }
}

/// The rule that kept a cached block from serving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WhyNot {
    /// It belongs to another private pool, or to the default one.
    OtherPool,
    /// Blocks up to 1 MiB and larger ones never serve each other.
    OtherKind,
    /// It was allocated for another stream.
    OtherStream,
    /// It is freed, but another stream has not passed the free yet.
    StillUsed,
    TooSmall,
    /// It is larger than `max_split_size_mb`, which keeps it whole for large requests.
    SplitLimit,
    /// The request is above `max_split_size_mb`, and the block is larger by more than
    /// `max_non_split_rounding_mb`.
    TooMuchSlack,
    /// Nothing: it would have served.
    Serves,
}

/// Cached blocks that the same rule kept from serving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachedBlocks {
    pub why: WhyNot,
    pub count: u64,
    pub bytes: u64,
    pub largest_bytes: u64,
}

/// A segment that could go back to the driver if its live blocks were not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedSegment {
    /// Its index among the examined segments.
    pub index: usize,
    pub total_bytes: u64,
    pub free_bytes: u64,
    /// What keeps it.
    pub live: Vec<BlockView>,
}

impl PinnedSegment {
    #[must_use]
    pub fn live_bytes(&self) -> u64 {
        self.live.iter().map(|block| block.size).sum()
    }
}

/// Why a request failed although memory was cached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub wanted: Wanted,
    /// Most bytes first.
    pub cached: Vec<CachedBlocks>,
    /// Segments without live blocks: a flush frees them.
    pub releasable_bytes: u64,
    /// Segments with free bytes that live blocks hold, those with the fewest live bytes first.
    pub pinned: Vec<PinnedSegment>,
}

impl Refusal {
    /// Examines all segments of a device for a request.
    #[must_use]
    pub fn of(wanted: Wanted, segments: &[SegmentView], settings: &Settings) -> Self {
        let mut cached: Vec<CachedBlocks> = Vec::new();
        let mut pinned = Vec::new();
        let mut releasable_bytes = 0;
        for (index, segment) in segments.iter().enumerate() {
            let mut free_bytes = 0;
            let mut live = Vec::new();
            for block in &segment.blocks {
                if block.state == BlockState::Allocated {
                    live.push(*block);
                    continue;
                }
                free_bytes += block.size;
                count(
                    &mut cached,
                    why_not(&wanted, segment, block, settings),
                    block,
                );
            }
            if live.is_empty() {
                releasable_bytes += segment.total_size;
            } else if free_bytes > 0 {
                pinned.push(PinnedSegment {
                    index,
                    total_bytes: segment.total_size,
                    free_bytes,
                    live,
                });
            }
        }
        cached.sort_by_key(|group| (std::cmp::Reverse(group.bytes), group.why));
        // Segments with the fewest live bytes first: little live memory that holds much free memory.
        pinned.sort_by(|one, other| {
            let held = |pin: &PinnedSegment| u128::from(pin.free_bytes);
            let cost = |pin: &PinnedSegment| u128::from(pin.live_bytes().max(1));
            (held(other) * cost(one))
                .cmp(&(held(one) * cost(other)))
                .then(one.index.cmp(&other.index))
        });
        Self {
            wanted,
            cached,
            releasable_bytes,
            pinned,
        }
    }

    /// Bytes in cached blocks of all kinds.
    #[must_use]
    pub fn cached_bytes(&self) -> u64 {
        self.cached.iter().map(|group| group.bytes).sum()
    }

    /// Of [`pinned`](Self::pinned) the first few that together, with what the driver has free and a
    /// flush gives back, would make room for the request. Empty when they never would, or when room
    /// is there without them.
    #[must_use]
    pub fn cheapest_pins(&self, driver_free_bytes: u64) -> &[PinnedSegment] {
        let mut room = driver_free_bytes.saturating_add(self.releasable_bytes);
        for (at, pin) in self.pinned.iter().enumerate() {
            if room >= self.wanted.segment_size {
                return &self.pinned[..at];
            }
            room = room.saturating_add(pin.total_bytes);
        }
        if room >= self.wanted.segment_size {
            return &self.pinned;
        }
        &[]
    }
}

fn why_not(
    wanted: &Wanted,
    segment: &SegmentView,
    block: &BlockView,
    settings: &Settings,
) -> WhyNot {
    let limit = settings.max_split_size;
    if segment.pool != wanted.pool {
        WhyNot::OtherPool
    } else if segment.kind != wanted.kind {
        WhyNot::OtherKind
    } else if segment.stream != wanted.stream {
        WhyNot::OtherStream
    } else if block.state == BlockState::PendingFree {
        WhyNot::StillUsed
    } else if block.size < wanted.size {
        WhyNot::TooSmall
    } else if wanted.size < limit && block.size >= limit {
        WhyNot::SplitLimit
    } else if wanted.size >= limit
        && block.size >= wanted.size.saturating_add(settings.max_non_split_rounding)
    {
        WhyNot::TooMuchSlack
    } else {
        WhyNot::Serves
    }
}

fn count(groups: &mut Vec<CachedBlocks>, why: WhyNot, block: &BlockView) {
    let at = groups.iter().position(|group| group.why == why);
    let at = at.unwrap_or_else(|| {
        groups.push(CachedBlocks {
            why,
            count: 0,
            bytes: 0,
            largest_bytes: 0,
        });
        groups.len() - 1
    });
    let group = &mut groups[at];
    group.count += 1;
    group.bytes += block.size;
    group.largest_bytes = group.largest_bytes.max(block.size);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Allocator, SimpleDriver};

    const MIB: u64 = 1 << 20;

    fn wanted(bytes: u64, settings: &Settings) -> Wanted {
        let stream = StreamId::DEFAULT;
        Wanted::new(bytes, stream, PoolId::DEFAULT, settings, Release::REFERENCE)
    }

    fn bytes_of(refusal: &Refusal, why: WhyNot) -> u64 {
        let group = refusal.cached.iter().find(|group| group.why == why);
        group.map_or(0, |group| group.bytes)
    }

    #[test]
    fn each_cached_block_is_refused_by_the_first_rule_that_speaks_against_it() {
        let settings = Settings::parse("max_split_size_mb:64", Release::REFERENCE).unwrap();
        let driver = SimpleDriver::new(1 << 30);
        let mut allocator = Allocator::new(Release::REFERENCE, settings.clone(), driver);
        let mut cache = |bytes: u64, stream: u64| {
            let block = allocator.malloc(bytes, StreamId(stream)).unwrap();
            allocator.free(block.address).unwrap();
        };
        cache(80 * MIB, 0);
        cache(12 * MIB, 0);
        cache(100, 0);
        cache(30 * MIB, 7);
        let segments = allocator.segments();
        let refusal = Refusal::of(wanted(40 * MIB, &settings), &segments, &settings);
        assert_eq!(bytes_of(&refusal, WhyNot::SplitLimit), 80 * MIB);
        assert_eq!(bytes_of(&refusal, WhyNot::TooSmall), 12 * MIB);
        assert_eq!(bytes_of(&refusal, WhyNot::OtherKind), 2 * MIB);
        assert_eq!(bytes_of(&refusal, WhyNot::OtherStream), 30 * MIB);
        assert_eq!(refusal.cached_bytes(), 124 * MIB);
        assert_eq!(refusal.releasable_bytes, 124 * MIB);
        let large = Refusal::of(wanted(65 * MIB, &settings), &segments, &settings);
        assert_eq!(bytes_of(&large, WhyNot::Serves), 80 * MIB);
    }

    #[test]
    fn the_segment_that_least_keeps_is_named_first() {
        let settings = Settings::default();
        let driver = SimpleDriver::new(1 << 30);
        let mut allocator = Allocator::new(Release::REFERENCE, settings.clone(), driver);
        // Three segments of 20 MiB, each filled by three blocks of which the first stays.
        let mut freed = Vec::new();
        for sizes in [[2, 9, 9], [6, 9, 5], [4, 9, 7]] {
            let blocks = sizes.map(|size| allocator.malloc(size * MIB, StreamId::DEFAULT));
            freed.extend(blocks.into_iter().skip(1));
        }
        for block in freed {
            allocator.free(block.unwrap().address).unwrap();
        }
        let refusal = Refusal::of(
            wanted(30 * MIB, &settings),
            &allocator.segments(),
            &settings,
        );
        let live: Vec<u64> = refusal
            .pinned
            .iter()
            .map(PinnedSegment::live_bytes)
            .collect();
        assert_eq!(live, [2 * MIB, 4 * MIB, 6 * MIB]);
        assert_eq!(refusal.releasable_bytes, 0);
        assert_eq!(refusal.cheapest_pins(0).len(), 2);
        assert_eq!(refusal.cheapest_pins(30 * MIB).len(), 0);
        let never = Refusal::of(
            wanted(900 * MIB, &settings),
            &allocator.segments(),
            &settings,
        );
        assert!(never.cheapest_pins(0).is_empty());
    }
}

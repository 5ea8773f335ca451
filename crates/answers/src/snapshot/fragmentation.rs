//! Why cached memory did not help, in words.

use ghostgpu_allocator::{
    Address, BlockState, BlockView, CachedBlocks, PinnedSegment, PoolId, PoolKind, Refusal,
    Release, SegmentView, Settings, StreamId, Wanted, WhyNot,
};
use ghostgpu_ledger::{CardLedger, Moment, Places, Segment};
use ghostgpu_recording::CardMemory;
use ghostgpu_text::{grouped, human};

/// The last request that failed.
#[derive(Debug, Clone, Copy)]
pub struct Failed {
    /// The index of its event.
    pub event: usize,
    /// The requested bytes, rounded as the allocator rounds them.
    pub bytes: u64,
    pub stream: u64,
    pub pool: PoolId,
    /// What the driver had left.
    pub driver_free_bytes: u64,
}

/// What kept a request from getting new memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The card: this is all the memory that the driver had for PyTorch.
    Card { capacity_bytes: u64 },
    /// A memory fraction, because the driver had enough. A snapshot does not say how much it allows, only that it is at
    /// least what was once reserved.
    Limit { at_least_bytes: u64 },
}

impl Failed {
    fn wanted(&self, settings: &Settings, release: Release) -> Wanted {
        Wanted::new(
            self.bytes,
            StreamId(self.stream),
            self.pool,
            settings,
            release,
        )
    }

    pub fn last_of(card: &CardMemory) -> Option<Self> {
        let (event, failure) = card.failed_requests().next_back()?;
        let pool = card.pools.get(failure.pool.0 as usize);
        let pool = pool.copied().unwrap_or_default();
        Some(Self {
            event: event as usize,
            bytes: failure.requested_bytes,
            stream: pool.stream,
            pool: pool_id(pool.number),
            driver_free_bytes: failure.driver_free_bytes.unwrap_or(0),
        })
    }
}

/// The state of the memory when a request failed.
#[derive(Debug)]
pub struct AtFailure {
    pub(super) failed: Failed,
    wanted: Wanted,
    segments: Vec<Segment>,
    reserved_bytes: u64,
    pub bound: Bound,
}

impl AtFailure {
    pub fn of(ledger: &CardLedger, failed: Failed, settings: &Settings, release: Release) -> Self {
        let wanted = failed.wanted(settings, release);
        let segments = ledger.segments_at(Moment(failed.event));
        let reserved_bytes: u64 = segments.iter().map(|segment| segment.bytes).sum();
        let bound = if failed.driver_free_bytes < wanted.segment_size {
            Bound::Card {
                capacity_bytes: reserved_bytes.saturating_add(failed.driver_free_bytes),
            }
        } else {
            Bound::Limit {
                at_least_bytes: ledger.peak_reserved().reserved_bytes.max(reserved_bytes),
            }
        };
        Self {
            failed,
            wanted,
            segments,
            reserved_bytes,
            bound,
        }
    }
}

/// Why no cached block could serve the failed request; `in_full` names each group of cached blocks.
pub(super) fn of_failure(
    ledger: &CardLedger,
    at_failure: &AtFailure,
    settings: &Settings,
    in_full: bool,
) -> Vec<String> {
    let AtFailure {
        failed,
        wanted,
        segments,
        reserved_bytes: reserved,
        bound,
    } = at_failure;
    let (wanted, reserved) = (*wanted, *reserved);
    let views: Vec<_> = segments.iter().map(|one| view(ledger, one)).collect();
    let refusal = Refusal::of(wanted, &views, settings);
    let cached = refusal.cached_bytes();
    let (free_bytes, who) = match *bound {
        Bound::Card { .. } => (
            failed.driver_free_bytes,
            format!("the driver had {}", human(failed.driver_free_bytes)),
        ),
        Bound::Limit { at_least_bytes } => (
            at_least_bytes.saturating_sub(reserved),
            format!(
                "the driver had {}, but a memory fraction (set_per_process_memory_fraction) allows \
                 PyTorch no more",
                human(failed.driver_free_bytes)
            ),
        ),
    };
    let mut sentences = vec![format!(
        "a block of {} needed {} of new memory; {who}; {} was reserved, of which {} was cached",
        human(wanted.size),
        human(wanted.segment_size),
        human(reserved),
        human(cached)
    )];
    if in_full {
        sentences.extend(refusal.cached.iter().map(why_not));
    }
    let room = cached.saturating_add(free_bytes);
    if room < wanted.segment_size {
        sentences.push(format!(
            "this is not fragmentation: only {} was cached or free, less than the {} that was needed",
            human(room),
            human(wanted.segment_size)
        ));
        return sentences;
    }
    sentences.push(format!(
        "this is fragmentation: {} was cached or free, but {} was needed in one piece",
        human(room),
        human(wanted.segment_size)
    ));
    let pins = refusal.cheapest_pins(free_bytes);
    if !pins.is_empty() {
        sentences.push(pinned(ledger, segments, pins));
    }
    sentences
}

/// How much memory is cached at a moment without a failed request, and what keeps it.
pub(super) fn of_state(
    ledger: &CardLedger,
    segments: &[Segment],
    settings: &Settings,
) -> Vec<String> {
    let views: Vec<_> = segments.iter().map(|one| view(ledger, one)).collect();
    // A request that no block can serve, so that all cached blocks are examined.
    let wanted = Wanted {
        size: u64::MAX >> 1,
        segment_size: u64::MAX >> 1,
        kind: ghostgpu_allocator::PoolKind::Large,
        stream: StreamId::DEFAULT,
        pool: PoolId::DEFAULT,
    };
    let refusal = Refusal::of(wanted, &views, settings);
    let reserved: u64 = segments.iter().map(|segment| segment.bytes).sum();
    let cached = refusal.cached_bytes();
    if reserved == 0 {
        return vec!["nothing is reserved".to_owned()];
    }
    let largest = refusal.cached.iter().map(|group| group.largest_bytes).max();
    let mut sentences = vec![format!(
        "{} of {} reserved is cached ({:.1} %), in blocks of at most {}; torch.cuda.empty_cache() would \
         return {} to the driver",
        human(cached),
        human(reserved),
        cached as f64 / reserved as f64 * 100.0,
        human(largest.unwrap_or(0)),
        human(refusal.releasable_bytes)
    )];
    let held: u64 = refusal.pinned.iter().map(|pin| pin.free_bytes).sum();
    // Less is the usual slack of a cache.
    if held > reserved / 20 {
        let first = &refusal.pinned[..refusal.pinned.len().min(3)];
        sentences.push(format!(
            "live blocks in the same segments keep {} of it; {}",
            human(held),
            pinned(ledger, segments, first)
        ));
    }
    sentences
}

fn pool_id(number: Option<(u64, u64)>) -> PoolId {
    number.map_or(PoolId::DEFAULT, |(graph, user)| PoolId(graph, user))
}

/// A segment in the types of the allocator's replica.
fn view(ledger: &CardLedger, segment: &Segment) -> SegmentView {
    let blocks: Vec<BlockView> = segment
        .blocks
        .iter()
        .map(|block| {
            let one = block
                .allocation
                .and_then(|id| ledger.card().allocations.get(id.0 as usize));
            BlockView {
                address: Address(block.address),
                size: block.bytes,
                requested_size: one.map_or(0, |one| one.requested_bytes),
                state: match (block.allocation, block.is_pending) {
                    (None, _) => BlockState::Inactive,
                    (Some(_), true) => BlockState::PendingFree,
                    (Some(_), false) => BlockState::Allocated,
                },
            }
        })
        .collect();
    let sum = |counts: fn(&BlockView) -> bool, size: fn(&BlockView) -> u64| {
        let counted = blocks.iter().filter(|block| counts(block));
        counted.map(size).fold(0, u64::saturating_add)
    };
    let is_active = |block: &BlockView| block.state != BlockState::Inactive;
    SegmentView {
        address: Address(segment.address),
        total_size: segment.bytes,
        allocated_size: sum(
            |block| block.state == BlockState::Allocated,
            |block| block.size,
        ),
        active_size: sum(is_active, |block| block.size),
        requested_size: sum(is_active, |block| block.requested_size),
        stream: StreamId(segment.pool.stream),
        kind: match segment.is_small {
            true => PoolKind::Small,
            false => PoolKind::Large,
        },
        pool: pool_id(segment.pool.number),
        is_expandable: segment.is_expandable,
        blocks,
    }
}

fn why_not(group: &CachedBlocks) -> String {
    let blocks = match group.count {
        1 => "1 cached block".to_owned(),
        count => format!("{} cached blocks", grouped(count)),
    };
    let (have, belong) = match group.count {
        1 => ("has", "belongs"),
        _ => ("have", "belong"),
    };
    let largest = human(group.largest_bytes);
    let amount = human(group.bytes);
    match group.why {
        WhyNot::TooSmall => format!("{blocks} with {amount} {have} at most {largest} in one piece"),
        WhyNot::OtherStream => {
            format!(
                "{blocks} with {amount} {belong} to another stream, and streams share no blocks"
            )
        }
        WhyNot::OtherPool => format!(
            "{blocks} with {amount} {belong} to another pool (a captured graph's, or a MemPool's)"
        ),
        WhyNot::OtherKind => format!(
            "{blocks} with {amount} {belong} to the pool for other sizes (one is for up to 1 MiB, one for more)"
        ),
        WhyNot::StillUsed => {
            format!("{blocks} with {amount} may still be in use by another stream (record_stream)")
        }
        WhyNot::SplitLimit => format!(
            "{blocks} with {amount} {have} more than max_split_size_mb each, so only larger requests get \
             them"
        ),
        WhyNot::TooMuchSlack => format!(
            "{blocks} with {amount} {have} too much room left over (max_non_split_rounding_mb)"
        ),
        WhyNot::Serves => format!(
            "{blocks} with {amount} would have served: the state at the failure is not fully known"
        ),
    }
}

/// Which live blocks keep segments from being returned to the driver, and the lines that made them.
fn pinned(ledger: &CardLedger, segments: &[Segment], pins: &[PinnedSegment]) -> String {
    let total: u64 = pins.iter().map(|pin| pin.total_bytes).sum();
    let live: u64 = pins.iter().map(PinnedSegment::live_bytes).sum();
    let count: usize = pins.iter().map(|pin| pin.live.len()).sum();
    let mut sentence = format!(
        "{} with {} could be returned to the driver if not for {} with {}",
        counted(pins.len(), "segment"),
        human(total),
        counted(count, "live block"),
        human(live)
    );
    let owners = owners(ledger, segments, pins);
    if !owners.is_empty() {
        sentence.push_str(&format!(": {}", owners.join(", ")));
    }
    sentence
}

fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{} {what}s", grouped(count as u64)),
    }
}

/// Up to three lines that hold the blocks, the most bytes first.
fn owners(ledger: &CardLedger, segments: &[Segment], pins: &[PinnedSegment]) -> Vec<String> {
    let places = Places::of(ledger.recording(), ledger.card());
    let mut sums: Vec<(String, u64)> = Vec::new();
    for pin in pins {
        let Some(segment) = segments.get(pin.index) else {
            continue;
        };
        for live in &pin.live {
            let block = segment
                .blocks
                .iter()
                .find(|block| block.address == live.address.0);
            let id = block.and_then(|block| block.allocation);
            let one = id.and_then(|id| ledger.card().allocations.get(id.0 as usize));
            let frame = one.and_then(|one| places.frame_of(one.stack));
            let Some(frame) = frame.and_then(|frame| places.frame(frame)) else {
                continue;
            };
            let place = format!("{}:{}", frame.file, frame.line);
            match sums.iter_mut().find(|(known, _)| *known == place) {
                Some((_, bytes)) => *bytes += live.size,
                None => sums.push((place, live.size)),
            }
        }
    }
    sums.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    sums.truncate(3);
    sums.into_iter()
        .map(|(place, bytes)| format!("{} from {place}", human(bytes)))
        .collect()
}

//! Segments and settings as the document has them.

use std::collections::BTreeMap;

use ghostgpu_trace::{AllocatorSettings, BlockState, Segment, SegmentKind, Snapshot};

use super::document::{Limit, Pool, PoolState, SegmentState, Settings, State};

pub(super) fn settings(settings: &AllocatorSettings) -> Settings {
    Settings {
        text: settings.text.clone(),
        max_split_bytes: settings.max_split_bytes.map(|limit| match limit {
            Some(bytes) => Limit::Bytes(bytes),
            None => Limit::Word("unlimited"),
        }),
        garbage_collection_threshold: settings.garbage_collection_threshold,
        expandable_segments: settings.expandable_segments,
        release_lock_on_cudamalloc: settings.release_lock_on_cudamalloc,
        graph_capture_record_stream_reuse: settings.graph_capture_record_stream_reuse,
        roundup_power2_divisions: settings.roundup_power2_divisions.iter().copied().collect(),
        trace_overflowed: settings.trace_overflowed,
        trace_max_entries: settings.trace_max_entries,
    }
}

/// Sums over all segments of a device.
pub(super) fn state(snapshot: &Snapshot, device: usize) -> State {
    let mut state = State::EMPTY;
    for segment in snapshot.segments_of(device) {
        state.add(segment);
    }
    state
}

/// Sums by pool, stream and kind of segment, in that order.
pub(super) fn pools(snapshot: &Snapshot, device: usize) -> Vec<PoolState> {
    let mut pools: BTreeMap<_, State> = BTreeMap::new();
    for segment in snapshot.segments_of(device) {
        let key = (
            pool(segment),
            segment.stream,
            kind(segment),
            segment.is_expandable,
        );
        pools.entry(key).or_insert(State::EMPTY).add(segment);
    }
    pools
        .into_iter()
        .map(|((pool, stream, kind, is_expandable), state)| PoolState {
            pool,
            stream,
            kind,
            is_expandable,
            state,
        })
        .collect()
}

pub(super) fn segment(segment: &Segment) -> SegmentState {
    SegmentState {
        address: segment.address,
        pool: pool(segment),
        stream: segment.stream,
        kind: kind(segment),
        is_expandable: segment.is_expandable,
        total_bytes: segment.total_bytes,
        allocated_bytes: segment.allocated_bytes,
        active_bytes: segment.active_bytes,
        requested_bytes: segment.requested_bytes,
        blocks: segment.blocks.len() as u64,
        active_blocks: active_blocks(segment),
        largest_inactive_block_bytes: largest_inactive_block_bytes(segment),
    }
}

impl State {
    const EMPTY: Self = Self {
        segments: 0,
        reserved_bytes: 0,
        allocated_bytes: 0,
        active_bytes: 0,
        requested_bytes: Some(0),
        inactive_bytes: 0,
        inactive_pinned_bytes: 0,
        largest_inactive_block_bytes: 0,
        allocated_blocks: 0,
        pending_free_blocks: 0,
        inactive_blocks: 0,
    };

    fn add(&mut self, segment: &Segment) {
        let add = |sum: &mut u64, bytes: u64| *sum = sum.saturating_add(bytes);
        self.segments += 1;
        add(&mut self.reserved_bytes, segment.total_bytes);
        add(&mut self.allocated_bytes, segment.allocated_bytes);
        add(&mut self.active_bytes, segment.active_bytes);
        // One segment that does not say leaves the sum unknown.
        self.requested_bytes = self
            .requested_bytes
            .zip(segment.requested_bytes)
            .map(|(sum, bytes)| sum.saturating_add(bytes));
        let is_pinned = active_blocks(segment) > 0;
        for block in &segment.blocks {
            match block.state {
                BlockState::Allocated => self.allocated_blocks += 1,
                BlockState::PendingFree => self.pending_free_blocks += 1,
                BlockState::Inactive => {
                    self.inactive_blocks += 1;
                    add(&mut self.inactive_bytes, block.bytes);
                    if is_pinned {
                        add(&mut self.inactive_pinned_bytes, block.bytes);
                    }
                }
            }
        }
        self.largest_inactive_block_bytes = self
            .largest_inactive_block_bytes
            .max(largest_inactive_block_bytes(segment));
    }
}

fn active_blocks(segment: &Segment) -> u64 {
    let active = segment
        .blocks
        .iter()
        .filter(|block| block.state.is_active());
    active.count() as u64
}

fn largest_inactive_block_bytes(segment: &Segment) -> u64 {
    let inactive = segment
        .blocks
        .iter()
        .filter(|block| !block.state.is_active());
    inactive.map(|block| block.bytes).max().unwrap_or(0)
}

fn pool(segment: &Segment) -> Option<Pool> {
    segment.pool.map(|pool| Pool(pool.0, pool.1))
}

fn kind(segment: &Segment) -> &'static str {
    match segment.kind {
        SegmentKind::Small => "small",
        SegmentKind::Large => "large",
    }
}

//! What the state at the moment of the dump adds to the events before it.

use std::collections::{HashMap, HashSet};

use ghostgpu_pickle::SeededState;
use ghostgpu_recording::{
    Allocation, CardMemory, Category, Event, ModuleId, NameId, OperatorId, ReservedRanges,
    SegmentChange, StackId,
};
use ghostgpu_snapshot::{Segment, SegmentKind};

use super::Brought;
use super::pass::{NONE, is_possible};
use crate::pools::Pools;

/// Segments have their pool and kind from torch 2.1 on, events only from 2.12 on. So what is still reserved at the end
/// gets those of its segment.
fn name_pools(card: &mut CardMemory, at_end: &ReservedRanges) {
    let mut seen = HashSet::new();
    let last: Vec<(u32, SegmentChange)> = card
        .segment_changes()
        .rev()
        .filter(|(_, _, change)| seen.insert(change.address))
        .filter(|(_, is_reserved, _)| *is_reserved)
        .map(|(event, _, change)| (event, change))
        .collect();
    for (event, change) in last {
        let around = at_end.around(change.address);
        let Some(Event::Reserve(id)) = card.events.get(event as usize) else {
            continue;
        };
        if let (Some(around), Some(change)) = (around, card.changes.get_mut(id.0 as usize)) {
            (change.pool, change.is_small) = (around.pool, around.is_small);
        }
    }
}

/// A damaged file may release more than was reserved; then only as much as was reserved is released.
fn release_no_more_than_is_reserved(card: &mut CardMemory) {
    let before = card.reserved_before.iter().map(|range| range.bytes);
    let mut reserved = before.fold(0, u64::saturating_add);
    let is_reserved = card.events.iter().filter_map(|event| match event {
        Event::Reserve(_) => Some(true),
        Event::Release(_) => Some(false),
        _ => None,
    });
    for (change, is_reserved) in card.changes.iter_mut().zip(is_reserved) {
        if is_reserved {
            reserved = reserved.saturating_add(change.bytes);
        } else {
            change.bytes = change.bytes.min(reserved);
            reserved -= change.bytes;
        }
    }
}

/// Adds what follows from the state at the end: what was reserved before the first event, the true sizes of live blocks,
/// and live blocks that no event allocated, whose number it returns.
pub(super) fn add_final_state(
    card: &mut CardMemory,
    device: usize,
    live: &HashMap<u64, u32, SeededState>,
    brought: &mut Brought<'_>,
) -> usize {
    let mut pools = Pools::continuing(std::mem::take(&mut card.pools));
    let segments: Vec<&Segment> = brought
        .snapshot
        .segments_of(device)
        .filter(|segment| is_possible(segment.address, segment.total_bytes))
        .collect();
    let final_ranges: Vec<SegmentChange> = segments
        .iter()
        .map(|segment| SegmentChange {
            address: segment.address,
            bytes: segment.total_bytes,
            pool: pools.place(segment.stream, segment.pool),
            is_small: segment.kind == SegmentKind::Small,
            is_expandable: segment.is_expandable,
        })
        .collect();
    let mut at_end = ReservedRanges::default();
    for range in &final_ranges {
        at_end.reserve(*range);
    }
    let mut before = at_end.clone();
    for (_, is_reserved, change) in card.segment_changes().rev() {
        match is_reserved {
            true => before.release(change),
            false => before.reserve(change),
        }
    }
    card.reserved_before = before.iter().copied().collect();
    release_no_more_than_is_reserved(card);
    name_pools(card, &at_end);
    card.pools = pools.all;

    let mut older = 0;
    for (segment, range) in segments.into_iter().zip(&final_ranges) {
        let blocks = segment
            .blocks
            .iter()
            .filter(|block| block.state.is_active());
        for block in blocks.filter(|block| is_possible(block.address, block.bytes)) {
            let known = live.get(&block.address).filter(|id| **id != NONE);
            if let Some(one) = known.and_then(|id| card.allocations.get_mut(*id as usize)) {
                one.block_bytes = block.bytes.max(one.requested_bytes);
                if one.stack == StackId(0) {
                    one.stack = brought.stack(block.stack);
                }
                continue;
            }
            older += 1;
            card.allocations.push(Allocation {
                address: block.address,
                requested_bytes: block.live_bytes().min(block.bytes),
                block_bytes: block.bytes,
                allocated_at: None,
                freed_at: None,
                category: Category::Unknown,
                name: NameId(0),
                module: ModuleId(0),
                operator: OperatorId(0),
                stack: brought.stack(block.stack),
                pool: range.pool,
            });
        }
    }
    older
}

//! The memory itself at a moment: segments, and the blocks that cover them.

use std::collections::HashSet;

use ghostgpu_recording::{
    Allocation, AllocationId, CardMemory, Event, Pool, ReservedRanges, SegmentChange,
};

use crate::card_ledger::CardLedger;
use crate::moment::Moment;

/// Memory that the allocator has from the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub address: u64,
    pub bytes: u64,
    pub pool: Pool,
    pub is_small: bool,
    pub is_expandable: bool,
    /// In ascending order of addresses; they cover the whole segment.
    pub blocks: Vec<Block>,
}

/// A piece of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub address: u64,
    pub bytes: u64,
    /// The live allocation in it; `None` if it is free for reuse.
    pub allocation: Option<AllocationId>,
    /// It was freed, but another stream may still use it.
    pub is_pending: bool,
}

impl Segment {
    /// Bytes of the live blocks.
    pub fn live_bytes(&self) -> u64 {
        let live = self.blocks.iter().filter(|one| one.allocation.is_some());
        live.fold(0, |sum, one| sum.saturating_add(one.bytes))
    }

    /// Bytes that were requested for the live blocks.
    pub fn requested_bytes(&self, card: &CardMemory) -> u64 {
        let ids = self.blocks.iter().filter_map(|one| one.allocation);
        let live = ids.filter_map(|id| card.allocations.get(id.0 as usize));
        live.fold(0, |sum, one| sum.saturating_add(one.requested_bytes))
    }

    pub fn largest_free_bytes(&self) -> u64 {
        let free = self.blocks.iter().filter(|one| one.allocation.is_none());
        free.map(|one| one.bytes).max().unwrap_or(0)
    }
}

/// The ranges that are reserved at a moment.
pub(crate) fn reserved_at(card: &CardMemory, moment: Moment) -> ReservedRanges {
    let mut reserved = ReservedRanges::default();
    for change in &card.reserved_before {
        reserved.reserve(*change);
    }
    let until = card
        .segment_changes()
        .take_while(|one| (one.0 as usize) < moment.0);
    for (_, is_reserved, change) in until {
        match is_reserved {
            true => reserved.reserve(change),
            false => reserved.release(change),
        }
    }
    reserved
}

impl CardLedger<'_> {
    /// The segments at a moment, in ascending order of addresses. Adjacent pieces of an expandable segment are joined.
    pub fn segments_at(&self, moment: Moment) -> Vec<Segment> {
        let mut live: Vec<(AllocationId, &Allocation)> = self.live_at(moment).collect();
        live.sort_by_key(|(_, one)| one.address);
        let pending = self.pending_at(moment);
        let mut next = 0;
        joined(&reserved_at(self.card, moment))
            .into_iter()
            .map(|range| {
                while live
                    .get(next)
                    .is_some_and(|(_, one)| one.address < range.address)
                {
                    next += 1;
                }
                let inside = live[next..]
                    .iter()
                    .take_while(|(_, one)| one.address < range.end());
                self.segment(range, inside, &pending)
            })
            .collect()
    }

    fn segment<'b>(
        &self,
        range: SegmentChange,
        live: impl Iterator<Item = &'b (AllocationId, &'b Allocation)>,
        pending: &HashSet<AllocationId>,
    ) -> Segment {
        let mut blocks = Vec::new();
        let mut at = range.address;
        let free = |from: u64, to: u64| Block {
            address: from,
            bytes: to - from,
            allocation: None,
            is_pending: false,
        };
        for (id, one) in live {
            // A recording may contradict itself, so blocks are clipped to not overlap or exceed their segment.
            let from = one.address.max(at);
            let to = one.address.saturating_add(one.block_bytes).min(range.end());
            if to <= from {
                continue;
            }
            if from > at {
                blocks.push(free(at, from));
            }
            blocks.push(Block {
                address: from,
                bytes: to - from,
                allocation: Some(*id),
                is_pending: pending.contains(id),
            });
            at = to;
        }
        if at < range.end() {
            blocks.push(free(at, range.end()));
        }
        let pools = &self.card.pools;
        Segment {
            address: range.address,
            bytes: range.bytes,
            pool: pools
                .get(range.pool.0 as usize)
                .copied()
                .unwrap_or_default(),
            is_small: range.is_small,
            is_expandable: range.is_expandable,
            blocks,
        }
    }

    /// Allocations that were freed before a moment while another stream still used them.
    fn pending_at(&self, moment: Moment) -> HashSet<AllocationId> {
        let events = self.card.events.iter().take(moment.0);
        events
            .filter_map(|event| match event {
                Event::FreeRequested(id) if self.is_live(*id, moment) => Some(*id),
                _ => None,
            })
            .collect()
    }
}

fn joined(ranges: &ReservedRanges) -> Vec<SegmentChange> {
    let mut all: Vec<SegmentChange> = Vec::new();
    for range in ranges.iter() {
        match all.last_mut() {
            Some(last)
                if last.end() == range.address
                    && last.is_expandable
                    && range.is_expandable
                    && last.pool == range.pool =>
            {
                last.bytes = last.bytes.saturating_add(range.bytes);
            }
            _ => all.push(*range),
        }
    }
    all
}

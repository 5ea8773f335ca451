//! From the ranges and blocks before the first entry to segments that the allocator can take over.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use super::operations::Operations;
use super::ranges::Range;
use super::sizes::RequestSizes;
use super::start::{Start, StartBlock};
use super::warning::Warning;
use crate::allocator::{BlockImage, BlockState, SegmentImage};
use crate::ids::{Address, PoolId, PoolKind};
use crate::rounding::{SMALL_MAX_BYTES, SMALL_SEGMENT_BYTES};
use crate::trace::Action;

/// Segments in the order of their addresses, and what was assumed about them.
pub(super) fn images(
    start: &Start,
    operations: &Operations,
    sizes: &RequestSizes,
    reserve_bytes: u64,
) -> (Vec<SegmentImage>, Vec<Warning>) {
    let reservations = Reservations::of(start, operations, reserve_bytes);
    let mut extents = Extents::default();
    for range in start.ranges.iter() {
        extents.take_range(range, start, sizes);
    }
    extents.learn(operations);
    let images = start
        .ranges
        .iter()
        .map(|range| SegmentImage {
            address: Address(range.start),
            stream: range.stream,
            pool: range.pool.unwrap_or(PoolId::DEFAULT),
            kind: kind_of(range, start, sizes),
            reserved: range
                .is_expandable
                .then(|| reservations.around(range.start)),
            blocks: extents.blocks_of(range, start),
        })
        .collect();
    let mut warnings = Vec::new();
    if extents.assumed > 0 {
        warnings.push(Warning::BlockSizesAssumed {
            blocks: extents.assumed,
        });
    }
    (images, warnings)
}

fn kind_of(range: &Range, start: &Start, sizes: &RequestSizes) -> PoolKind {
    if let Some(kind) = range.kind {
        return kind;
    }
    let small = if range.is_expandable {
        let mut blocks = start.blocks.range(range.start..range.end);
        match blocks.next() {
            Some((_, block)) => sizes.is_small(block.requested),
            None => !range.bytes().is_multiple_of(sizes.large_segment_bytes),
        }
    } else {
        range.bytes() <= SMALL_SEGMENT_BYTES
    };
    if small {
        PoolKind::Small
    } else {
        PoolKind::Large
    }
}

/// How far blocks reach.
#[derive(Default)]
struct Extents {
    sizes: BTreeMap<u64, u64>,
    /// Blocks whose slack is in doubt, by the end of the certain part: start, end of the gap, and the
    /// lowest address that was allocated inside it.
    doubts: BTreeMap<u64, Doubt>,
    assumed: usize,
}

struct Doubt {
    block: u64,
    gap_end: u64,
    lowest: Option<u64>,
    is_settled: bool,
}

impl Extents {
    fn take_range(&mut self, range: &Range, start: &Start, sizes: &RequestSizes) {
        let splits_finely = range.is_expandable || kind_of(range, start, sizes) == PoolKind::Small;
        let blocks: Vec<(u64, StartBlock)> = start
            .blocks
            .range(range.start..range.end)
            .map(|(&address, &block)| (address, block))
            .collect();
        for (place, &(address, block)) in blocks.iter().enumerate() {
            let gap_end = blocks.get(place + 1).map_or(range.end, |&(next, _)| next);
            let rounded = block
                .size
                .map_or_else(|| sizes.block(block.requested), NonZeroU64::get);
            let certain = rounded.min(gap_end - address);
            let gap = gap_end - address - certain;
            let size = if block.size.is_some() || splits_finely {
                certain
            } else if gap <= SMALL_MAX_BYTES {
                // A large pool never has a free block this small: it belongs to the block.
                certain + gap
            } else {
                self.assumed += 1;
                let doubt = Doubt {
                    block: address,
                    gap_end,
                    lowest: None,
                    is_settled: false,
                };
                self.doubts.insert(address + certain, doubt);
                certain
            };
            self.sizes.insert(address, size);
        }
    }

    /// What is allocated right after a block, before it is freed, shows where the free part begins.
    fn learn(&mut self, operations: &Operations) {
        if self.doubts.is_empty() {
            return;
        }
        for operation in operations.iter() {
            let address = operation.address.0;
            let doubt = self.doubts.range_mut(..=address).next_back();
            match operation.action {
                Action::Alloc => {
                    if let Some((_, doubt)) = doubt
                        && address < doubt.gap_end
                        && !doubt.is_settled
                    {
                        doubt.lowest = Some(doubt.lowest.map_or(address, |low| low.min(address)));
                    }
                }
                Action::FreeRequested => {
                    let is_it = |doubt: &&mut Doubt| doubt.block == address;
                    if let Some(doubt) = self.doubts.values_mut().find(is_it) {
                        doubt.is_settled = true;
                    }
                }
                _ => {}
            }
        }
        for (&certain_end, doubt) in &self.doubts {
            if let Some(lowest) = doubt.lowest
                && lowest - certain_end <= SMALL_MAX_BYTES
            {
                self.sizes.insert(doubt.block, lowest - doubt.block);
                self.assumed -= 1;
            }
        }
    }

    fn blocks_of(&self, range: &Range, start: &Start) -> Vec<BlockImage> {
        let mut images = Vec::new();
        let mut at = range.start;
        let free = |size: u64| BlockImage {
            size,
            requested: 0,
            state: BlockState::Inactive,
        };
        for (&address, block) in start.blocks.range(range.start..range.end) {
            if address > at {
                images.push(free(address - at));
            }
            let size = self.sizes.get(&address).copied().unwrap_or_default();
            images.push(BlockImage {
                size,
                requested: block.requested,
                state: if block.is_pending {
                    BlockState::PendingFree
                } else {
                    BlockState::Allocated
                },
            });
            at = address + size;
        }
        if range.end > at {
            images.push(free(range.end - at));
        }
        images
    }
}

/// The address ranges that expandable segments had reserved.
struct Reservations {
    /// Length by start.
    by_start: BTreeMap<u64, u64>,
}

impl Reservations {
    /// Everything that was ever mapped within the length of one reservation is assumed to belong to one
    /// reservation, which begins at the lowest mapped address.
    fn of(start: &Start, operations: &Operations, reserve_bytes: u64) -> Self {
        let mapped = start.ranges.iter().filter(|range| range.is_expandable);
        let mut starts: Vec<u64> = mapped.map(|range| range.start).collect();
        if !starts.is_empty() {
            let maps = operations
                .iter()
                .filter(|entry| entry.action == Action::SegmentMap && entry.is_possible());
            starts.extend(maps.map(|entry| entry.address.0));
        }
        starts.sort_unstable();
        let mut by_start: BTreeMap<u64, u64> = BTreeMap::new();
        for address in starts {
            let last = by_start
                .last_key_value()
                .map(|(&start, &bytes)| start + bytes);
            if last.is_none_or(|end| address >= end) {
                by_start.insert(address, reserve_bytes);
            }
        }
        Self { by_start }
    }

    fn around(&self, address: u64) -> (Address, u64) {
        let found = self.by_start.range(..=address).next_back();
        let (&start, &bytes) = found.unwrap_or((&address, &0));
        (Address(start), bytes)
    }
}

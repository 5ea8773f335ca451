//! The segments and blocks that there were at a moment: the final state, with everything undone that
//! came after the moment.

use std::collections::{BTreeMap, HashSet};

use ghostgpu_trace::{Block, BlockState, EventKind, PoolId, Segment, SegmentKind, StackId};

use crate::allocation::Allocation;
use crate::ledger::{Ledger, Moment};

/// What the driver is asked for when a request up to 1 MiB finds nothing.
const SMALL_SEGMENT_BYTES: u64 = 2 << 20;

/// A range that the driver gave, without what is in it.
#[derive(Debug, Clone, Copy)]
struct Range {
    bytes: u64,
    stream: u64,
    kind: SegmentKind,
    pool: Option<PoolId>,
    is_expandable: bool,
    stack: StackId,
}

impl Ledger<'_> {
    /// The segments at a moment, in the order of addresses, each covered by its blocks.
    ///
    /// Sizes of live blocks are those of [`live_at`](Self::live_at). Which pool a segment was in that
    /// is gone at the end is known only from torch 2.12 on; it counts as the default pool otherwise.
    pub fn segments_at(&self, moment: Moment) -> Vec<Segment> {
        let live = self.live_at(moment);
        let waiting = self.waiting_at(moment);
        self.ranges_at(moment)
            .into_iter()
            .map(|(address, range)| {
                let first = live.partition_point(|block| block.address < address);
                let end = address.saturating_add(range.bytes);
                let inside = live[first..].iter().take_while(|block| block.address < end);
                self.segment(address, &range, inside, &waiting)
            })
            .collect()
    }

    /// Addresses of blocks whose free was asked for and had not happened.
    fn waiting_at(&self, moment: Moment) -> HashSet<u64> {
        let mut waiting = HashSet::new();
        let events = self.events;
        for at in 0..moment.0.min(events.len()) {
            match events.kinds()[at] {
                EventKind::FreeRequested => {
                    waiting.insert(events.addresses()[at]);
                }
                EventKind::FreeCompleted => {
                    waiting.remove(&events.addresses()[at]);
                }
                _ => {}
            }
        }
        waiting
    }

    fn ranges_at(&self, moment: Moment) -> BTreeMap<u64, Range> {
        let mut ranges: BTreeMap<u64, Range> = self
            .snapshot
            .segments_of(self.device())
            .map(|segment| {
                let range = Range {
                    bytes: segment.total_bytes,
                    stream: segment.stream,
                    kind: segment.kind,
                    pool: segment.pool,
                    is_expandable: segment.is_expandable,
                    stack: segment.stack,
                };
                (segment.address, range)
            })
            .collect();
        let events = self.events;
        for at in (moment.0.min(events.len())..events.len()).rev() {
            let (address, bytes) = (events.addresses()[at], events.bytes()[at]);
            match events.kinds()[at] {
                EventKind::SegmentAlloc => {
                    ranges.remove(&address);
                }
                EventKind::SegmentFree => {
                    ranges.insert(address, self.range_of_event(at, false));
                }
                EventKind::SegmentMap => cut(&mut ranges, address, bytes),
                EventKind::SegmentUnmap => {
                    join(&mut ranges, address, self.range_of_event(at, true))
                }
                _ => {}
            }
        }
        ranges
    }

    fn range_of_event(&self, at: usize, is_expandable: bool) -> Range {
        let events = self.events;
        let context = events.context(events.contexts()[at]);
        let bytes = events.bytes()[at];
        Range {
            bytes,
            stream: context.stream,
            // Pages of small pools are as large as their segments, those of large ones larger.
            kind: if bytes <= SMALL_SEGMENT_BYTES {
                SegmentKind::Small
            } else {
                SegmentKind::Large
            },
            pool: context.pool,
            is_expandable,
            stack: events.stacks()[at],
        }
    }

    fn segment<'a>(
        &self,
        address: u64,
        range: &Range,
        live: impl Iterator<Item = &'a Allocation>,
        waiting: &HashSet<u64>,
    ) -> Segment {
        let end = address.saturating_add(range.bytes);
        let mut blocks = Vec::new();
        let mut at = address;
        let free = |from: u64, to: u64| Block {
            address: from,
            bytes: to - from,
            requested_bytes: None,
            state: BlockState::Inactive,
            stack: StackId::NONE,
            forward_stack: StackId::NONE,
            history: Vec::new(),
        };
        for block in live {
            if block.address > at {
                blocks.push(free(at, block.address));
            }
            // A file may contradict itself: no block reaches behind its segment.
            let bytes = block.block_bytes.min(end - block.address);
            at = block.address + bytes;
            blocks.push(Block {
                address: block.address,
                bytes,
                requested_bytes: Some(block.bytes),
                state: if waiting.contains(&block.address) {
                    BlockState::PendingFree
                } else {
                    BlockState::Allocated
                },
                stack: block.stack,
                forward_stack: StackId::NONE,
                history: Vec::new(),
            });
        }
        if at < end {
            blocks.push(free(at, end));
        }
        let sum = |counts: fn(&Block) -> bool| -> u64 {
            let counted = blocks.iter().filter(|block| counts(block));
            counted.map(|block| block.bytes).sum()
        };
        Segment {
            device: self.device() as i64,
            address,
            total_bytes: range.bytes,
            allocated_bytes: sum(|block| block.state == BlockState::Allocated),
            active_bytes: sum(|block| block.state.is_active()),
            requested_bytes: Some(
                blocks
                    .iter()
                    .filter(|block| block.state.is_active())
                    .map(Block::live_bytes)
                    .sum(),
            ),
            stream: range.stream,
            kind: range.kind,
            pool: range.pool,
            is_expandable: range.is_expandable,
            stack: range.stack,
            forward_stack: StackId::NONE,
            blocks,
        }
    }
}

/// Undoes a mapping: the part of a range is not there any more.
fn cut(ranges: &mut BTreeMap<u64, Range>, address: u64, bytes: u64) {
    let Some((&start, &range)) = ranges.range(..=address).next_back() else {
        return;
    };
    let (end, cut_end) = (
        start.saturating_add(range.bytes),
        address.saturating_add(bytes),
    );
    if address >= end {
        return;
    }
    ranges.remove(&start);
    if start < address {
        let bytes = address - start;
        ranges.insert(start, Range { bytes, ..range });
    }
    if cut_end < end {
        let bytes = end - cut_end;
        ranges.insert(cut_end, Range { bytes, ..range });
    }
}

/// Undoes an unmapping: the part is there again, one with its neighbours.
fn join(ranges: &mut BTreeMap<u64, Range>, address: u64, mut range: Range) {
    let mut start = address;
    let alike = |other: &Range| other.is_expandable && other.stream == range.stream;
    if let Some((&before, &other)) = ranges.range(..address).next_back()
        && before.saturating_add(other.bytes) == address
        && alike(&other)
    {
        ranges.remove(&before);
        start = before;
        range = Range {
            bytes: range.bytes.saturating_add(other.bytes),
            ..other
        };
    }
    let after = start.saturating_add(range.bytes);
    if let Some(&other) = ranges.get(&after)
        && other.is_expandable
        && other.stream == range.stream
    {
        ranges.remove(&after);
        range = Range {
            bytes: range.bytes.saturating_add(other.bytes),
            ..other
        };
    }
    ranges.insert(start, range);
}

//! What there was before the first entry: the entries are undone one by one, backwards from the
//! segments at the end.

use std::collections::{BTreeMap, HashMap};

use super::operations::{Operation, Recording, is_possible};
use super::ranges::{Range, Ranges};
use super::warning::Warning;
use crate::allocator::{BlockState, SegmentView};
use crate::ids::PoolId;
use crate::structures::address_map::AddressMap;
use crate::trace::Action;

/// A block that was live or pending before the first entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StartBlock {
    pub(super) requested: u64,
    /// Known only of blocks that are still there at the end.
    pub(super) size: Option<u64>,
    pub(super) is_pending: bool,
}

/// The state before the first entry, and what undoing taught about the entries.
#[derive(Clone, Debug, Default)]
pub(super) struct Start {
    pub(super) ranges: Ranges,
    /// By address.
    pub(super) blocks: BTreeMap<u64, StartBlock>,
    /// Private pools of segments, by the entry that allocated or mapped them.
    pub(super) private_growth: HashMap<usize, PoolId>,
    /// Bytes reserved before the first entry, and the most at any time.
    pub(super) reserved: u64,
    pub(super) peak_reserved: u64,
    pub(super) warnings: Vec<Warning>,
}

/// Blocks by address, in places that are used again.
#[derive(Default)]
struct Live {
    places: AddressMap,
    blocks: Vec<(u64, StartBlock)>,
    vacant: Vec<u32>,
}

impl Live {
    fn place_of(&self, address: u64) -> Option<u32> {
        self.places
            .get(address, |place| self.blocks[place as usize].0)
    }

    fn insert(&mut self, address: u64, block: StartBlock) -> bool {
        let is_new = self.place_of(address).is_none();
        let place = match self.vacant.pop() {
            Some(place) => {
                self.blocks[place as usize] = (address, block);
                place
            }
            None => {
                self.blocks.push((address, block));
                self.blocks.len() as u32 - 1
            }
        };
        self.places
            .insert(address, place, |place| self.blocks[place as usize].0);
        is_new
    }

    fn get(&mut self, address: u64) -> Option<&mut StartBlock> {
        let place = self.place_of(address)?;
        Some(&mut self.blocks[place as usize].1)
    }

    fn remove(&mut self, address: u64) -> bool {
        let place = self
            .places
            .remove(address, |place| self.blocks[place as usize].0);
        self.vacant.extend(place);
        place.is_some()
    }

    fn into_sorted(self) -> BTreeMap<u64, StartBlock> {
        // A vacant place may name an address that another place has now: the map decides.
        let entries = (0_u32..).zip(&self.blocks);
        entries
            .filter(|&(place, &(address, _))| self.place_of(address) == Some(place))
            .map(|(_, &entry)| entry)
            .collect()
    }
}

impl Start {
    pub(super) fn of(recording: &Recording) -> Self {
        let mut undo = Undo {
            live: Live::default(),
            ranges: Ranges::default(),
            private_growth: HashMap::new(),
            reserved: 0,
            peak_reserved: 0,
            unknown_pools: 0,
            contradictions: 0,
            first_contradiction: 0,
        };
        for segment in &recording.segments {
            undo.take_segment(segment);
        }
        undo.peak_reserved = undo.reserved;
        for index in (0..recording.operations.len()).rev() {
            undo.undo(index, recording.operations.at(index));
        }
        undo.finish(recording)
    }
}

struct Undo {
    live: Live,
    ranges: Ranges,
    private_growth: HashMap<usize, PoolId>,
    reserved: u64,
    peak_reserved: u64,
    unknown_pools: usize,
    contradictions: usize,
    first_contradiction: usize,
}

impl Undo {
    fn take_segment(&mut self, segment: &SegmentView) {
        let (start, bytes) = (segment.address.0, segment.total_size);
        let is_taken = is_possible(segment.address, bytes)
            && self.ranges.insert(Range {
                start,
                end: start + bytes,
                stream: segment.stream,
                pool: Some(segment.pool),
                kind: Some(segment.kind),
                is_expandable: segment.is_expandable,
            });
        if !is_taken {
            self.contradictions += 1;
            return;
        }
        self.reserved += bytes;
        for block in &segment.blocks {
            let address = block.address.0;
            let is_inside = address >= start
                && is_possible(block.address, block.size)
                && is_possible(block.address, block.requested_size)
                && address + block.size <= start + bytes
                && block.size > 0;
            if !is_inside {
                self.contradictions += 1;
                continue;
            }
            if block.state != BlockState::Inactive {
                let start = StartBlock {
                    requested: block.requested_size,
                    size: Some(block.size),
                    is_pending: block.state == BlockState::PendingFree,
                };
                self.live.insert(block.address.0, start);
            }
        }
    }

    fn undo(&mut self, index: usize, operation: Operation) {
        let address = operation.address.0;
        let fits = operation.is_possible()
            && match operation.action {
                Action::Alloc => self.live.remove(address),
                Action::FreeRequested => match self.live.get(address) {
                    Some(block) => std::mem::replace(&mut block.is_pending, false),
                    None => {
                        let block = freed_later(operation.bytes, false);
                        self.live.insert(address, block);
                        false
                    }
                },
                Action::FreeCompleted => {
                    let block = freed_later(operation.bytes, true);
                    self.live.insert(address, block)
                }
                Action::SegmentAlloc | Action::SegmentMap => self.undo_growth(index, operation),
                Action::SegmentFree | Action::SegmentUnmap => {
                    self.reserved = self.reserved.saturating_add(operation.bytes);
                    self.peak_reserved = self.peak_reserved.max(self.reserved);
                    self.ranges.insert(Range {
                        start: address,
                        end: address + operation.bytes,
                        stream: operation.context.stream,
                        pool: operation.context.pool,
                        kind: None,
                        is_expandable: operation.action == Action::SegmentUnmap,
                    })
                }
                Action::Oom | Action::Snapshot => true,
            };
        if !fits {
            self.contradictions += 1;
            self.first_contradiction = index;
        }
    }

    fn undo_growth(&mut self, index: usize, operation: Operation) -> bool {
        self.reserved = self.reserved.saturating_sub(operation.bytes);
        let start = operation.address.0;
        let found = self.ranges.remove(start, start + operation.bytes);
        let pool = operation
            .context
            .pool
            .or(found.and_then(|range| range.pool));
        match pool {
            Some(pool) if !pool.is_default() => {
                self.private_growth.insert(index, pool);
            }
            Some(_) => {}
            None => self.unknown_pools += 1,
        }
        found.is_some()
    }

    fn finish(self, recording: &Recording) -> Start {
        let blocks = self.live.into_sorted();
        let mut warnings = Vec::new();
        if !self.ranges.is_empty() || !blocks.is_empty() {
            warnings.push(Warning::StartsLate {
                segments: self.ranges.len(),
                live_blocks: blocks.len(),
            });
        }
        let has_private = |segment: &SegmentView| !segment.pool.is_default();
        let private = !self.private_growth.is_empty() || recording.segments.iter().any(has_private);
        if self.unknown_pools > 0 && private {
            warnings.push(Warning::PoolsUnknown {
                segments: self.unknown_pools,
            });
        }
        if self.contradictions > 0 {
            warnings.push(Warning::Contradictions {
                entries: self.contradictions,
                first: self.first_contradiction,
            });
        }
        let allocates = recording.operations.actions().contains(&Action::Alloc);
        if !recording.operations.is_empty() && !allocates && recording.has_live_blocks() {
            warnings.push(Warning::EntriesLeftOut);
        }
        Start {
            ranges: self.ranges,
            blocks,
            private_growth: self.private_growth,
            reserved: self.reserved,
            peak_reserved: self.peak_reserved,
            warnings,
        }
    }
}

fn freed_later(requested: u64, is_pending: bool) -> StartBlock {
    StartBlock {
        requested,
        size: None,
        is_pending,
    }
}

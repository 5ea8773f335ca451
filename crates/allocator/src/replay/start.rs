//! The state before the first entry: the entries are undone one by one, backwards from the
//! segments at the end.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU64;

use super::operations::{Operation, Operations, Recording, is_possible};
use super::ranges::{Range, Ranges};
use super::warning::Warning;
use crate::allocator::{BlockState, SegmentView};
use crate::ids::{Address, PoolId};
use crate::structures::address_map::AddressMap;
use crate::trace::Action;

/// A block that was live or pending before the first entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StartBlock {
    pub(super) requested: u64,
    /// Known only of blocks that are still there at the end.
    pub(super) size: Option<NonZeroU64>,
    pub(super) is_pending: bool,
}

/// The state before the first entry, and what undoing revealed about the entries.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) ranges: Ranges,
    /// By address.
    pub(super) blocks: BTreeMap<u64, StartBlock>,
    /// Which lifetime each entry of a block belongs to: lifetimes that do not overlap share a number.
    /// [`NO_SLOT`] for entries without one.
    pub(super) slots: Vec<u32>,
    /// The numbers of `blocks`, in their order.
    pub(super) slots_of_blocks: Vec<u32>,
    /// How many numbers there are: at most this many allocations are live at a time.
    pub(super) slot_count: usize,
    /// Segments that came from the driver, and those before the first entry.
    pub(super) segment_count: usize,
    /// The first impossible entry; `usize::MAX` if there is none.
    pub(super) first_impossible: usize,
    /// Private pools of segments, by the entry that allocated or mapped them.
    pub(super) private_growth: HashMap<usize, PoolId>,
    /// Bytes reserved before the first entry, and the most at any time.
    pub(super) reserved: u64,
    pub(super) peak_reserved: u64,
    pub(super) warnings: Vec<Warning>,
}

/// An entry that belongs to no lifetime.
pub(super) const NO_SLOT: u32 = u32::MAX;

/// Blocks by address, in places that are reused.
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

    /// The place of a block that is entered, and whether its address was free.
    fn insert(&mut self, address: u64, block: StartBlock) -> (u32, bool) {
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
        let address_of = |place: u32| self.blocks[place as usize].0;
        let is_new = self.places.insert(address, place, address_of);
        (place, is_new)
    }

    fn remove(&mut self, address: u64) -> Option<u32> {
        let address_of = |place: u32| self.blocks[place as usize].0;
        let place = self.places.remove(address, address_of);
        self.vacant.extend(place);
        place
    }

    /// What is there, by address, with its places.
    fn into_sorted(self) -> (BTreeMap<u64, StartBlock>, Vec<u32>) {
        // A vacant place may name an address that another place has now: the map decides.
        let entries = (0_u32..).zip(&self.blocks);
        let mut there: Vec<(u32, (u64, StartBlock))> = entries
            .filter(|&(place, &(address, _))| self.place_of(address) == Some(place))
            .map(|(place, &entry)| (place, entry))
            .collect();
        there.sort_unstable_by_key(|&(_, (address, _))| address);
        let places = there.iter().map(|&(place, _)| place).collect();
        (there.into_iter().map(|(_, entry)| entry).collect(), places)
    }
}

impl Start {
    /// Whether a card can have had the entries from `first` up to `end`, given that it can have had
    /// those before them.
    #[inline]
    pub(super) fn is_possible(&self, first: usize, end: usize) -> bool {
        !(first..end).contains(&self.first_impossible)
    }

    pub(super) fn of(recording: &Recording) -> Self {
        let mut undo = Undo {
            live: Live::default(),
            slots: vec![NO_SLOT; recording.operations.len()],
            segment_count: recording.segments.len(),
            first_impossible: usize::MAX,
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
        let mut left = recording.operations.len();
        while let Some(index) = left.checked_sub(1) {
            left = undo.undo(index, &recording.operations);
        }
        undo.finish(recording)
    }
}

struct Undo {
    live: Live,
    slots: Vec<u32>,
    segment_count: usize,
    first_impossible: usize,
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
                    size: NonZeroU64::new(block.size),
                    is_pending: block.state == BlockState::PendingFree,
                };
                self.live.insert(block.address.0, start);
            }
        }
    }

    /// Undoes an entry, or the two of a free; returns how many are left.
    #[inline]
    fn undo(&mut self, index: usize, operations: &Operations) -> usize {
        let action = operations.actions()[index];
        let (address, bytes) = (operations.addresses()[index], operations.bytes()[index]);
        let is_possible = action.is_possible(Address(address), bytes);
        if !is_possible {
            self.first_impossible = index;
        }
        let mut left = index;
        let mut slot = NO_SLOT;
        let fits = is_possible
            && match action {
                Action::Alloc => {
                    slot = self.live.remove(address).unwrap_or(NO_SLOT);
                    slot != NO_SLOT
                }
                Action::FreeRequested => {
                    let (place, was_pending) = self.undo_request(address, bytes);
                    slot = place;
                    was_pending
                }
                Action::FreeCompleted => {
                    let is_whole = index > 0 && operations.is_request_of(index - 1, index);
                    let block = freed_later(bytes, !is_whole);
                    let (place, is_new) = self.live.insert(address, block);
                    slot = place;
                    if is_whole {
                        left = index - 1;
                        self.slots[left] = slot;
                    }
                    is_new
                }
                Action::SegmentAlloc | Action::SegmentMap => {
                    self.undo_growth(index, operations.at(index))
                }
                Action::SegmentFree | Action::SegmentUnmap => {
                    self.undo_release(operations.at(index))
                }
                Action::Oom | Action::Snapshot => true,
            };
        self.slots[index] = slot;
        if !fits {
            self.contradictions += 1;
            self.first_contradiction = index;
        }
        left
    }

    /// The place of a block whose free was requested, and whether it waited as it should.
    fn undo_request(&mut self, address: u64, bytes: u64) -> (u32, bool) {
        match self.live.place_of(address) {
            Some(place) => {
                let block = &mut self.live.blocks[place as usize].1;
                (place, std::mem::replace(&mut block.is_pending, false))
            }
            None => (
                self.live.insert(address, freed_later(bytes, false)).0,
                false,
            ),
        }
    }

    fn undo_release(&mut self, operation: Operation) -> bool {
        self.reserved = self.reserved.saturating_add(operation.bytes);
        self.peak_reserved = self.peak_reserved.max(self.reserved);
        self.ranges.insert(Range {
            start: operation.address.0,
            end: operation.address.0 + operation.bytes,
            stream: operation.context.stream,
            pool: operation.context.pool,
            kind: None,
            is_expandable: operation.action == Action::SegmentUnmap,
        })
    }

    fn undo_growth(&mut self, index: usize, operation: Operation) -> bool {
        self.segment_count += 1;
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
        let slot_count = self.live.blocks.len();
        let (blocks, slots_of_blocks) = self.live.into_sorted();
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
            slots: self.slots,
            slots_of_blocks,
            slot_count,
            segment_count: self.segment_count,
            first_impossible: self.first_impossible,
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

//! A memory snapshot as a recording without owners.
//!
//! PyTorch's allocator says what it did, and nothing about why. So a snapshot becomes events, allocations with
//! stack, size, lifetime and pool, segments, and failed requests; categories, modules, operators and stages stay
//! unknown. Event `n` of the recording is entry `n` of the trace, so that both are spoken of by the same number; only
//! where the trace has lost a free, one is put in.
//!
//! Ten million events are hundreds of megabytes: the snapshot's columns are consumed one by one.

use std::collections::{HashMap, HashSet};

use ghostgpu_pickle::SeededState;
use ghostgpu_recording::{
    About, Allocation, AllocationId, CardMemory, Category, Event, Failure, ModuleId, NameId, Names,
    OperatorId, Pool, PoolId, Recording, ReservedRanges, SegmentChange, Source, StackId,
};
use ghostgpu_trace::{EventColumns, EventContext, EventKind, Segment, SegmentKind, Snapshot};

use crate::named_ranges::NamedRanges;
use crate::names::{Stacks, Texts};
use crate::rounding::Rounding;

/// No event, in a column of events.
const NONE: u32 = u32::MAX;

/// What the driver is asked for when a request up to 1 MiB finds nothing.
const SMALL_SEGMENT_BYTES: u64 = 2 << 20;

/// No block and no segment is larger: sizes of a damaged file must not overflow sums.
const MOST_BYTES: u64 = 1 << 48;

/// Makes a recording of a snapshot, and takes the snapshot's events for that. What it is about beside the
/// allocator's settings (a file's name) is left to the caller.
pub fn recording_of_snapshot(snapshot: &mut Snapshot) -> Recording {
    let mut names = Names::default();
    let mut warnings: Vec<String> = snapshot.warnings.iter().map(ToString::to_string).collect();
    let mut cards = Vec::new();
    let devices = snapshot.active_devices();
    let mut stacks = Stacks::new(snapshot.stacks.len());
    let mut texts = Texts::default();
    for device in devices {
        let trace = snapshot
            .traces
            .iter_mut()
            .find(|trace| trace.device == device);
        let columns = trace
            .map(|trace| std::mem::take(&mut trace.events).into_columns())
            .unwrap_or_default();
        let mut brought = Brought {
            snapshot,
            names: &mut names,
            stacks: &mut stacks,
            texts: &mut texts,
        };
        let (card, older) = card(device, columns, &mut brought);
        if let Some(sentence) = older {
            warnings.push(sentence);
        }
        cards.push(card);
    }
    Recording {
        about: About {
            source: Source::Snapshot,
            allocator_settings: snapshot.settings.text.clone().unwrap_or_default(),
            ..About::default()
        },
        names,
        cards,
        warnings,
    }
}

/// Names of the snapshot on their way into the recording.
struct Brought<'a> {
    snapshot: &'a Snapshot,
    names: &'a mut Names,
    stacks: &'a mut Stacks,
    texts: &'a mut Texts,
}

impl Brought<'_> {
    fn stack(&mut self, stack: ghostgpu_trace::StackId) -> StackId {
        self.stacks.bring(stack, self.snapshot, self.names)
    }

    fn text(&mut self, name: ghostgpu_trace::NameId) -> NameId {
        self.texts.bring(name, &self.snapshot.names, self.names)
    }
}

/// One device, and a sentence about what is older than its events.
fn card(
    device: usize,
    columns: EventColumns,
    brought: &mut Brought<'_>,
) -> (CardMemory, Option<String>) {
    let EventColumns {
        kinds,
        addresses,
        bytes,
        times_us,
        stacks,
        contexts,
        known_contexts,
    } = columns;
    let contexts_are = Contexts::new(&known_contexts, brought);
    let first_us = times_us.iter().copied().find(|us| *us > 0).unwrap_or(0);
    let ranges = NamedRanges::of(&brought.snapshot.annotations, device, first_us, |name| {
        brought
            .texts
            .bring(name, &brought.snapshot.names, brought.names)
    });
    let mut card = CardMemory {
        index: device as u32,
        began_us: u64::try_from(first_us).unwrap_or(0),
        ..CardMemory::default()
    };

    let mut pass = Pass::over(&kinds, &addresses, &bytes);
    add_changes(&mut card, &kinds, &addresses, &bytes, |at| {
        contexts_are.of(contexts[at].0).pool
    });
    for at in (0..kinds.len()).filter(|at| kinds[*at] == EventKind::Oom) {
        card.failures.push(Failure {
            requested_bytes: bytes[at],
            driver_free_bytes: Some(addresses[at]),
            pool: contexts_are.of(contexts[at].0).pool,
            stack: brought.stack(stacks[at]),
        });
    }
    card.pools = contexts_are.pools.clone();
    let annotated: HashMap<u32, NameId> = pass
        .annotated
        .iter()
        .map(|(at, id)| (*id, contexts_are.of(contexts[*at].0).label))
        .collect();
    let frees_have_stack_of_allocation = pass.frees_have_stack_of_allocation(&stacks);
    card.times_us = times_of(times_us, first_us, &pass.lost_frees);
    card.events = std::mem::take(&mut pass.events);
    drop(kinds);

    // From here on only what each allocation needs is kept, column by column.
    let known_at = std::mem::take(&mut pass.known_from);
    let of =
        |column: &[u64]| -> Vec<u64> { known_at.iter().map(|at| column[*at as usize]).collect() };
    let (address_of, bytes_of) = (of(&addresses), of(&bytes));
    drop((addresses, bytes));
    let stack_of: Vec<StackId> = known_at
        .iter()
        .zip(&pass.begins)
        .map(
            |(at, begin)| match *begin == NONE && !frees_have_stack_of_allocation {
                true => StackId(0),
                false => brought.stack(stacks[*at as usize]),
            },
        )
        .collect();
    drop(stacks);
    let context_of: Vec<u32> = known_at.iter().map(|at| contexts[*at as usize].0).collect();
    drop((contexts, known_at));

    let rounding = Rounding::of(&brought.snapshot.settings);
    card.allocations.reserve_exact(pass.begins.len());
    for id in 0..pass.begins.len() {
        let context = contexts_are.of(context_of[id]);
        let begin = event(pass.begins[id]);
        let label = match (annotated.get(&(id as u32)), begin) {
            (Some(label), _) => *label,
            (None, Some(_)) if context.label != NameId(0) => context.label,
            // Positions are those of the recording's events, to which the times belong.
            (None, Some(begin)) => ranges.at(card
                .times_us
                .get(begin as usize)
                .map_or(0, |us| first_us.saturating_add_unsigned(*us))),
            (None, None) => NameId(0),
        };
        card.allocations.push(Allocation {
            address: address_of[id],
            requested_bytes: bytes_of[id],
            block_bytes: rounding.block_bytes(bytes_of[id]),
            allocated_at: begin,
            freed_at: event(pass.ends[id]),
            category: Category::Unknown,
            name: label,
            module: ModuleId(0),
            operator: OperatorId(0),
            stack: stack_of[id],
            pool: context.pool,
        });
    }
    card.ranges = ranges.ranges;
    let older = add_final_state(&mut card, device, &pass.live, brought);
    let has_events = !card.events.is_empty();
    let freed = pass.begins.iter().filter(|begin| **begin == NONE).count();
    (card, sentence(device, freed, older, has_events))
}

fn event(number: u32) -> Option<u32> {
    (number != NONE).then_some(number)
}

/// What is said about allocations that are older than the events.
fn sentence(device: usize, freed: usize, still_live: usize, has_events: bool) -> Option<String> {
    (has_events && freed + still_live > 0).then(|| {
        format!(
            "device {device}: {} blocks are older than the trace's first event: {freed} that it frees, {still_live} \
             that live to its end",
            freed + still_live
        )
    })
}

/// Pool and name that many events share.
#[derive(Clone, Copy, Default)]
struct Context {
    pool: PoolId,
    label: NameId,
}

struct Contexts {
    pools: Vec<Pool>,
    known: Vec<Context>,
}

impl Contexts {
    fn new(known: &[EventContext], brought: &mut Brought<'_>) -> Self {
        let mut pools = Pools::default();
        let known = known
            .iter()
            .map(|context| Context {
                pool: pools.place(context.stream, context.pool),
                label: brought.text(match context.category {
                    ghostgpu_trace::NameId::EMPTY => context.user_metadata,
                    category => category,
                }),
            })
            .collect();
        Self {
            pools: pools.all,
            known,
        }
    }

    fn of(&self, id: u32) -> Context {
        self.known.get(id as usize).copied().unwrap_or_default()
    }
}

/// Pools, each once.
struct Pools {
    all: Vec<Pool>,
    places: HashMap<Pool, PoolId>,
}

impl Default for Pools {
    fn default() -> Self {
        Self::continuing(vec![Pool::default()])
    }
}

impl Pools {
    fn continuing(all: Vec<Pool>) -> Self {
        let places = all.iter().enumerate();
        Self {
            places: places
                .map(|(at, pool)| (*pool, PoolId(at as u32)))
                .collect(),
            all,
        }
    }

    fn place(&mut self, stream: u64, number: Option<ghostgpu_trace::PoolId>) -> PoolId {
        let pool = Pool {
            stream,
            number: number.map(|number| (number.0, number.1)),
        };
        let next = PoolId(self.all.len() as u32);
        let place = *self.places.entry(pool).or_insert(next);
        if place == next {
            self.all.push(pool);
        }
        place
    }
}

/// Which allocation each event is about, found in one pass.
struct Pass {
    events: Vec<Event>,
    /// Of each allocation, the events that began and ended it, in the recording.
    begins: Vec<u32>,
    ends: Vec<u32>,
    /// Of each allocation, the entry of the trace that it is known from: its alloc, else its free.
    known_from: Vec<u32>,
    /// Entry of the trace that freed it.
    freed_by: Vec<u32>,
    /// By address: the allocation that is live there in the end, or `NONE` if what was there is gone.
    live: HashMap<u64, u32, SeededState>,
    /// Entries of the trace before which a free was put in.
    lost_frees: Vec<usize>,
    /// Entries that name an allocation, and which.
    annotated: Vec<(usize, u32)>,
}

impl Pass {
    fn over(kinds: &[EventKind], addresses: &[u64], bytes: &[u64]) -> Self {
        let mut pass = Self {
            events: Vec::with_capacity(kinds.len()),
            begins: Vec::new(),
            ends: Vec::new(),
            known_from: Vec::new(),
            freed_by: Vec::new(),
            live: HashMap::default(),
            lost_frees: Vec::new(),
            annotated: Vec::new(),
        };
        let (mut changes, mut failures) = (0, 0);
        let next = |count: &mut u32| {
            *count += 1;
            *count - 1
        };
        for (at, ((kind, address), bytes)) in kinds.iter().zip(addresses).zip(bytes).enumerate() {
            let is_possible = is_possible(*address, *bytes);
            let event = match kind {
                EventKind::Alloc if is_possible => pass.allocate(at, *address),
                EventKind::FreeRequested if is_possible => pass
                    .live_or_older(at, *address)
                    .map_or(Event::Other, Event::FreeRequested),
                EventKind::FreeCompleted if is_possible => pass.free(at, *address),
                EventKind::SegmentAlloc | EventKind::SegmentMap if is_possible => {
                    Event::Reserve(ghostgpu_recording::ChangeId(next(&mut changes)))
                }
                EventKind::SegmentFree | EventKind::SegmentUnmap if is_possible => {
                    Event::Release(ghostgpu_recording::ChangeId(next(&mut changes)))
                }
                EventKind::Oom => {
                    Event::OutOfMemory(ghostgpu_recording::FailureId(next(&mut failures)))
                }
                EventKind::Annotate => {
                    let id = pass.live.get(address).filter(|id| **id != NONE);
                    pass.annotated.extend(id.map(|id| (at, *id)));
                    Event::Other
                }
                _ => Event::Other,
            };
            pass.events.push(event);
        }
        pass
    }

    fn now(&self) -> u32 {
        self.events.len() as u32
    }

    fn add(&mut self, at: usize, begin: u32) -> u32 {
        let id = self.begins.len() as u32;
        self.begins.push(begin);
        self.ends.push(NONE);
        self.known_from.push(at as u32);
        self.freed_by.push(NONE);
        id
    }

    fn allocate(&mut self, at: usize, address: u64) -> Event {
        let earlier = self.live.get(&address).copied().filter(|id| *id != NONE);
        if let Some(earlier) = earlier {
            // Its free is not in the trace: whatever was there is gone.
            self.ends[earlier as usize] = self.now();
            self.lost_frees.push(at);
            self.events.push(Event::Free(AllocationId(earlier)));
        }
        let id = self.add(at, self.now());
        self.live.insert(address, id);
        Event::Allocate(AllocationId(id))
    }

    fn free(&mut self, at: usize, address: u64) -> Event {
        let Some(AllocationId(id)) = self.live_or_older(at, address) else {
            return Event::Other;
        };
        self.ends[id as usize] = self.now();
        self.freed_by[id as usize] = at as u32;
        self.live.insert(address, NONE);
        Event::Free(AllocationId(id))
    }

    /// What is live at an address. What nobody allocated is older than the trace, unless something else was
    /// there already.
    fn live_or_older(&mut self, at: usize, address: u64) -> Option<AllocationId> {
        match self.live.get(&address) {
            Some(&NONE) => None,
            Some(&id) => Some(AllocationId(id)),
            None => {
                let id = self.add(at, NONE);
                self.live.insert(address, id);
                Some(AllocationId(id))
            }
        }
    }

    /// Whether every free has the stack of its allocation, as histories without stacks of frees have: then a free
    /// says where an older allocation was made.
    fn frees_have_stack_of_allocation(&self, stacks: &[ghostgpu_trace::StackId]) -> bool {
        let stack = |at: u32| stacks.get(at as usize);
        let born_and_freed = (0..self.begins.len())
            .filter(|id| self.begins[*id] != NONE && self.freed_by[*id] != NONE);
        born_and_freed
            .map(|id| (self.known_from[id], self.freed_by[id]))
            .all(|(alloc, free)| stack(alloc) == stack(free))
    }
}

fn is_possible(address: u64, bytes: u64) -> bool {
    bytes <= MOST_BYTES
        && address
            .checked_add(bytes)
            .is_some_and(|end| end <= u64::MAX - MOST_BYTES)
}

/// Takes down what events reserve and release, and what was reserved before them.
fn add_changes(
    card: &mut CardMemory,
    kinds: &[EventKind],
    addresses: &[u64],
    bytes: &[u64],
    pool: impl Fn(usize) -> PoolId,
) {
    for (at, kind) in kinds.iter().enumerate() {
        let is_expandable = match kind {
            EventKind::SegmentAlloc | EventKind::SegmentFree => false,
            EventKind::SegmentMap | EventKind::SegmentUnmap => true,
            _ => continue,
        };
        if is_possible(addresses[at], bytes[at]) {
            card.changes.push(SegmentChange {
                address: addresses[at],
                bytes: bytes[at],
                pool: pool(at),
                // Pages of small pools are as large as their segments, those of large ones larger.
                is_small: bytes[at] <= SMALL_SEGMENT_BYTES,
                is_expandable,
            });
        }
    }
}

/// Times since the first event's. A free that was put in happens with the event after it.
fn times_of(times_us: Vec<i64>, first_us: i64, lost_frees: &[usize]) -> Vec<u64> {
    let since_first = |us: i64| u64::try_from(us.saturating_sub(first_us)).unwrap_or(0);
    if lost_frees.is_empty() {
        // Of equal size: made in place.
        return times_us.into_iter().map(since_first).collect();
    }
    let mut all = Vec::with_capacity(times_us.len() + lost_frees.len());
    let mut lost = lost_frees.iter().peekable();
    for (at, us) in times_us.into_iter().enumerate() {
        while lost.next_if(|lost| **lost == at).is_some() {
            all.push(since_first(us));
        }
        all.push(since_first(us));
    }
    all
}

/// Segments say their pool and kind from torch 2.1 on, events only from 2.12 on: what is still reserved at the end has
/// those of its segment.
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

/// A damaged file may give back what it never had: then only as much goes as there is.
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

/// Adds what the state at the end says: what was reserved before the first event, the true sizes of blocks that are
/// live, and those that no event allocated, which are counted.
fn add_final_state(
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

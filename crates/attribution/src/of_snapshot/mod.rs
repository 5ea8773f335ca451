//! A memory snapshot as a recording without owners.
//!
//! PyTorch's allocator records what it did, but not why. So a snapshot becomes events, allocations with stack, size,
//! lifetime and pool, segments, and failed requests; categories, modules, operators and stages stay unknown. Event `n`
//! of the recording is entry `n` of the trace, so that both have the same number, except where a free is inserted because
//! the trace has lost it.
//!
//! Ten million events take hundreds of megabytes, so the snapshot's columns are consumed one by one.

mod contexts;
mod final_state;
mod pass;

use std::collections::HashMap;

use ghostgpu_recording::{
    About, Allocation, CardMemory, Category, Failure, ModuleId, NameId, Names, OperatorId, PoolId,
    Recording, SegmentChange, Source, StackId,
};
use ghostgpu_snapshot::{EventColumns, EventKind, Snapshot};

use crate::named_ranges::NamedRanges;
use crate::names::{Stacks, Texts};
use crate::rounding::Rounding;
use contexts::Contexts;
use final_state::add_final_state;
use pass::{NONE, Pass, is_possible};

/// The size of the segment that is reserved for a request of up to 1 MiB.
const SMALL_SEGMENT_BYTES: u64 = 2 << 20;

/// Makes a recording from a snapshot, and consumes the snapshot's events. The caller fills in `about`, except for the
/// allocator's settings.
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
        ..Recording::default()
    }
}

/// Names of the snapshot that are added to the recording.
struct Brought<'a> {
    snapshot: &'a Snapshot,
    names: &'a mut Names,
    stacks: &'a mut Stacks,
    texts: &'a mut Texts,
}

impl Brought<'_> {
    fn stack(&mut self, stack: ghostgpu_snapshot::StackId) -> StackId {
        self.stacks.bring(stack, self.snapshot, self.names)
    }

    fn text(&mut self, name: ghostgpu_snapshot::NameId) -> NameId {
        self.texts.bring(name, &self.snapshot.names, self.names)
    }
}

/// The memory of one device, and a sentence about allocations that are older than its events.
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

    // From here on, only the columns that allocations need are kept.
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
            // Positions are indices of the recording's events, like the times.
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

/// The sentence about allocations that are older than the events.
fn sentence(device: usize, freed: usize, still_live: usize, has_events: bool) -> Option<String> {
    (has_events && freed + still_live > 0).then(|| {
        format!(
            "device {device}: {} blocks are older than the trace's first event: {freed} that it frees, {still_live} \
             that live to its end",
            freed + still_live
        )
    })
}

/// Adds what events reserve and release, and what was reserved before them.
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

/// Times since the first event. An inserted free has the time of the event after it.
fn times_of(times_us: Vec<i64>, first_us: i64, lost_frees: &[usize]) -> Vec<u64> {
    let since_first = |us: i64| u64::try_from(us.saturating_sub(first_us)).unwrap_or(0);
    if lost_frees.is_empty() {
        // The element sizes are equal, so this reuses the allocation.
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

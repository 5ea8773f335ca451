//! The timeline of one card.

use std::collections::HashSet;
use std::io::{self, Write};

use ghostgpu_ledger::{Sweep, SweepState};
use ghostgpu_recording::{
    AllocationId, CardMemory, Category, Event, Failure, PoolId, Recording, Source,
};
use ghostgpu_text::human;

use super::blocks::BlockSlices;
use super::clock::Clock;
use super::counter::Counter;
use super::lanes::Lanes;
use super::packets::{Argument, Happening, Packets, TrackUuid};
use super::segments::{SegmentSlices, push_pool};
use super::selection::BlockSelection;
use super::steps::{OpenSlices, write_ranges};
use super::{PerfettoOptions, PerfettoSummary};
use crate::text;

/// What a counter counts.
#[derive(Debug, Clone, Copy)]
enum Counted {
    /// Bytes of live blocks.
    Blocks,
    Reserved,
    /// Requested bytes of live blocks of a category.
    Requested(Category),
    /// Requested bytes of all live blocks.
    Active,
    /// The same without freed blocks that still wait for another stream.
    NotGivenBack,
}

/// Writes everything of one card, in one pass over its events.
pub(super) struct CardTimeline<'a> {
    recording: &'a Recording,
    card: &'a CardMemory,
    counters: Vec<(Counted, Counter)>,
    steps: Option<TrackUuid>,
    ranges: Lanes,
    segments: SegmentSlices,
    blocks: BlockSlices<'a>,
    clock: Clock,
    /// Freed blocks that still wait for another stream, with their requested bytes.
    pending: HashSet<AllocationId>,
    pending_bytes: u64,
}

impl<'a> CardTimeline<'a> {
    pub(super) fn new(
        recording: &'a Recording,
        card: &'a CardMemory,
        options: &PerfettoOptions,
        packets: &mut Packets<'_, impl Write>,
    ) -> io::Result<Self> {
        let group = packets.group_track(&format!("device {}", card.index))?;
        let counted = counted(recording, card);
        let points = options.max_counter_points / counted.len().max(1);
        let mut counters = Vec::new();
        for (rank, what) in counted.into_iter().enumerate() {
            let (name, description) = what.words();
            let track = packets.byte_counter_track(name, description, group, rank as u64)?;
            counters.push((what, Counter::new(track, card.events.len() + 1, points)));
        }
        let rank = counters.len() as u64;
        let steps = match card.phases.is_empty() {
            true => None,
            false => Some(packets.slice_track("steps and stages", "", group, rank)?),
        };
        let moments = packets.slice_track(
            "events",
            "Failed requests, pages of expandable segments.",
            group,
            rank + 2,
        )?;
        let segments = Lanes::new(
            "segments".to_owned(),
            "For as long as they are reserved.",
            group,
            rank + 3,
        );
        let blocks = Lanes::new(
            format!("blocks of {} and more", human(options.min_block_bytes)),
            "From allocation to free, with owner and stack.",
            group,
            rank + 4,
        );
        let pending = pending_at_first(recording, card);
        let sizes = card.allocations.iter().map(|one| one.requested_bytes);
        Ok(Self {
            recording,
            card,
            counters,
            steps,
            ranges: Lanes::new(
                "annotations".to_owned(),
                "Ranges of record_function.",
                group,
                rank + 1,
            ),
            segments: SegmentSlices::new(segments, moments),
            blocks: BlockSlices::new(recording, card, blocks, BlockSelection::new(sizes, options)),
            clock: Clock::of(card),
            pending_bytes: sum(card, &pending),
            pending,
        })
    }

    pub(super) fn summary(&self) -> PerfettoSummary {
        self.blocks.selection.summary
    }

    pub(super) fn write(&mut self, packets: &mut Packets<'_, impl Write>) -> io::Result<()> {
        let card = self.card;
        let names = &self.recording.names;
        write_ranges(card, names, &self.clock, &mut self.ranges, packets)?;
        for change in &card.reserved_before {
            let pool = self.pool(change.pool);
            let now = self.clock.latest_ns;
            self.segments.reserve(change, pool, true, now, packets)?;
        }
        for (at, one) in card.allocations.iter().enumerate() {
            if one.allocated_at.is_none() {
                let id = AllocationId(at as u32);
                self.blocks.begin(id, self.clock.latest_ns, packets)?;
            }
        }
        let mut sweep = Sweep::new(card);
        self.count(sweep.state(), packets)?;
        let mut phases = card.phases.iter().peekable();
        let mut open = OpenSlices::default();
        for (at, event) in card.events.iter().enumerate() {
            self.clock.advance(card, at);
            while let Some(phase) = phases.next_if(|phase| phase.first_event as usize <= at) {
                // Of several that begin here, the last has the event.
                let next = phases.peek();
                let has_events = next.is_none_or(|next| next.first_event as usize > at);
                if let (Some(steps), true) = (self.steps, has_events) {
                    open.enter(phase, steps, self.clock.latest_ns, packets)?;
                }
            }
            self.happen(at, *event, packets)?;
            if let Some((_, state)) = sweep.next() {
                self.count(&state, packets)?;
            }
        }
        if let Some(steps) = self.steps {
            open.close(steps, self.clock.latest_ns, packets)?;
        }
        for (_, counter) in &mut self.counters {
            counter.flush(packets)?;
        }
        Ok(())
    }

    fn pool(&self, id: PoolId) -> ghostgpu_recording::Pool {
        let pool = self.card.pools.get(id.0 as usize);
        pool.copied().unwrap_or_default()
    }

    fn count(
        &mut self,
        state: &SweepState,
        packets: &mut Packets<'_, impl Write>,
    ) -> io::Result<()> {
        for (what, counter) in &mut self.counters {
            let value = match what {
                Counted::Blocks => state.allocated_bytes,
                Counted::Reserved => state.reserved_bytes,
                Counted::Requested(category) => state.requested.get(*category),
                Counted::Active => state.requested_bytes,
                Counted::NotGivenBack => state.requested_bytes.saturating_sub(self.pending_bytes),
            };
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            counter.see(self.clock.latest_ns, value, packets)?;
        }
        Ok(())
    }

    fn happen(
        &mut self,
        at: usize,
        event: Event,
        packets: &mut Packets<'_, impl Write>,
    ) -> io::Result<()> {
        let now = self.clock.latest_ns;
        match event {
            Event::Allocate(id) => self.blocks.begin(id, now, packets),
            Event::FreeRequested(id) => {
                if self.pending.insert(id) {
                    self.pending_bytes = self.pending_bytes.saturating_add(self.requested(id));
                }
                // Usually the free completes at once; only a wait is worth drawing.
                match self.card.events.get(at + 1) {
                    Some(Event::Free(next)) if *next == id => Ok(()),
                    _ => self.blocks.wait(id, now, packets),
                }
            }
            Event::Free(id) => {
                if self.pending.remove(&id) {
                    self.pending_bytes = self.pending_bytes.saturating_sub(self.requested(id));
                }
                self.blocks.end(id, now, packets)
            }
            Event::Reserve(id) => {
                let change = self.card.change(id);
                let pool = self.pool(change.pool);
                self.segments.reserve(&change, pool, false, now, packets)
            }
            Event::Release(id) => {
                let change = self.card.change(id);
                let pool = self.pool(change.pool);
                self.segments.release(&change, pool, now, packets)
            }
            Event::OutOfMemory(id) => self.fail(self.card.failure(id), packets),
            Event::Other => Ok(()),
        }
    }

    fn requested(&self, id: AllocationId) -> u64 {
        let one = self.card.allocations.get(id.0 as usize);
        one.map_or(0, |one| one.requested_bytes)
    }

    fn fail(&self, failure: Failure, packets: &mut Packets<'_, impl Write>) -> io::Result<()> {
        let mut arguments = vec![("requested_bytes", Argument::Number(failure.requested_bytes))];
        if let Some(bytes) = failure.driver_free_bytes {
            arguments.push(("driver_free_bytes", Argument::Number(bytes)));
        }
        push_pool(&mut arguments, self.pool(failure.pool));
        let names = &self.recording.names;
        if text::frames(names, failure.stack).next().is_some() {
            arguments.push(("stack", Argument::Stack(failure.stack)));
        }
        packets.instant(&Happening {
            track: self.segments.moments,
            time_ns: self.clock.latest_ns,
            name: &format!("out of memory: {}", human(failure.requested_bytes)),
            arguments: &arguments,
        })
    }
}

/// Blocks that were freed before the first event: only the completion of their free is recorded.
fn pending_at_first(recording: &Recording, card: &CardMemory) -> HashSet<AllocationId> {
    let mut pending = HashSet::new();
    // A rehearsal is recorded from its beginning, and does not record the two separately.
    if recording.about.source == Source::Rehearsal {
        return pending;
    }
    let mut given_back = HashSet::new();
    for event in &card.events {
        match event {
            Event::FreeRequested(id) => {
                given_back.insert(*id);
            }
            Event::Free(id) if !given_back.remove(id) => {
                let one = card.allocations.get(id.0 as usize);
                if one.is_some_and(|one| one.allocated_at.is_none()) {
                    pending.insert(*id);
                }
            }
            _ => {}
        }
    }
    pending
}

fn sum(card: &CardMemory, ids: &HashSet<AllocationId>) -> u64 {
    let all = ids
        .iter()
        .filter_map(|id| card.allocations.get(id.0 as usize));
    all.fold(0, |sum, one| sum.saturating_add(one.requested_bytes))
}

/// The counters of a card: by category if owners are known.
fn counted(recording: &Recording, card: &CardMemory) -> Vec<Counted> {
    if recording.about.source == Source::Snapshot {
        return vec![Counted::NotGivenBack, Counted::Active, Counted::Reserved];
    }
    let mut is_used = [false; Category::ALL.len()];
    for one in &card.allocations {
        is_used[one.category as usize] = true;
    }
    let used = Category::ALL.into_iter().zip(is_used).filter(|one| one.1);
    let categories = used.map(|(category, _)| Counted::Requested(category));
    [Counted::Blocks, Counted::Reserved]
        .into_iter()
        .chain(categories)
        .collect()
}

impl Counted {
    /// Name and description of the track.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Blocks => ("allocated", "Bytes of live blocks."),
            Self::Reserved => ("reserved", "Bytes that PyTorch has from the driver."),
            Self::Requested(category) => (
                category.title(),
                "Requested bytes of live blocks of this category.",
            ),
            Self::Active => (
                "active",
                "Requested bytes from alloc to free_completed; blocks are larger by their rounding.",
            ),
            Self::NotGivenBack => (
                "allocated",
                "Requested bytes from alloc to free_requested; blocks are larger by their rounding.",
            ),
        }
    }
}

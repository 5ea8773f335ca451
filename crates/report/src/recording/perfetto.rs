//! Perfetto: the timeline of each card of a recording.
//!
//! A card is a track with, below it,
//!
//! - counters of allocated and reserved bytes, and of what was asked for in each category;
//! - the steps, and inside them the stages;
//! - where memory ran out;
//! - the largest blocks, each a slice for as long as it lived, with its owner and stack.

use std::collections::BTreeMap;
use std::io::{self, Write};

use ghostgpu_ledger::recording::{Place, Places, Sweep, SweepState};
use ghostgpu_recording::{Allocation, AllocationId, CardMemory, Category, Event, Recording};

use crate::error::ReportError;
use crate::perfetto::counter::Counter;
use crate::perfetto::lanes::{Lane, Lanes};
use crate::perfetto::packets::{Argument, Happening, Packets, TrackUuid};
use crate::perfetto::selection::BlockSelection;
use crate::perfetto::{PerfettoOptions, PerfettoSummary};

/// What a timeline shows; as for snapshots, see [`PerfettoOptions`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingPerfettoOptions {
    /// Blocks of fewer bytes are in the counters only.
    pub min_block_bytes: u64,
    /// At most so many blocks of one card are drawn, the largest first.
    pub max_blocks: usize,
    /// Each counter has at most about so many points; its highs and lows are kept.
    pub max_counter_points: usize,
}

impl Default for RecordingPerfettoOptions {
    fn default() -> Self {
        Self {
            min_block_bytes: 1 << 20,
            // A card has eleven counters here: some 100 MB in all.
            max_blocks: 200_000,
            max_counter_points: 200_000,
        }
    }
}

/// Writes the timeline of a recording, and says how much of it was drawn.
pub fn write_recording_perfetto(
    recording: &Recording,
    options: &RecordingPerfettoOptions,
    out: impl Write,
) -> Result<PerfettoSummary, ReportError> {
    let mut packets = Packets::new(&recording.names, None, out)?;
    let mut summary = PerfettoSummary::default();
    for card in &recording.cards {
        let mut timeline = CardTimeline::new(recording, card, options, &mut packets)?;
        timeline.write(&mut packets)?;
        summary.add(timeline.blocks.summary);
    }
    packets.finish()?;
    Ok(summary)
}

/// A counter, and what it counts.
struct Counted {
    counter: Counter,
    value: fn(&SweepState, Option<Category>) -> u64,
    category: Option<Category>,
}

struct CardTimeline<'a> {
    recording: &'a Recording,
    card: &'a CardMemory,
    places: Places<'a>,
    counters: Vec<Counted>,
    steps: TrackUuid,
    failures: TrackUuid,
    lanes: Lanes,
    blocks: BlockSelection,
    drawn: BTreeMap<AllocationId, Lane>,
    latest_ns: u64,
}

impl<'a> CardTimeline<'a> {
    fn new(
        recording: &'a Recording,
        card: &'a CardMemory,
        options: &RecordingPerfettoOptions,
        packets: &mut Packets<'_, impl Write>,
    ) -> io::Result<Self> {
        let group = packets.group_track(&format!("card {}", card.index))?;
        let mut counters = Vec::new();
        let mut count = |packets: &mut Packets<'_, _>, name: &str, description: &str, category| {
            let rank = counters.len() as u64;
            let track = packets.byte_counter_track(name, description, group, rank)?;
            let points = options.max_counter_points;
            counters.push(Counted {
                counter: Counter::new(track, card.events.len() + 1, points),
                value: match (category, name) {
                    (Some(_), _) => |state, category| {
                        category.map_or(0, |category| state.requested.get(category))
                    },
                    (None, "reserved") => |state, _| state.reserved_bytes,
                    (None, _) => |state, _| state.allocated_bytes,
                },
                category,
            });
            io::Result::Ok(())
        };
        count(packets, "allocated", "Bytes of live blocks", None)?;
        count(
            packets,
            "reserved",
            "Bytes that PyTorch has from the driver",
            None,
        )?;
        for category in Category::ALL {
            let is_used = card.allocations.iter().any(|one| one.category == category);
            if is_used {
                let description = "Requested bytes of live blocks of this category";
                count(packets, category.title(), description, Some(category))?;
            }
        }
        let rank = counters.len() as u64;
        let steps = packets.slice_track("steps and stages", "", group, rank)?;
        let failures = packets.slice_track("out of memory", "", group, rank + 1)?;
        let least = ghostgpu_text::human(options.min_block_bytes);
        let older = card
            .allocations
            .iter()
            .filter(|one| one.allocated_at.is_none());
        let made = card.events.iter().filter_map(|event| match event {
            Event::Allocate(id) => card.allocations.get(id.0 as usize),
            _ => None,
        });
        Ok(Self {
            recording,
            card,
            places: Places::of(recording, card),
            counters,
            steps,
            failures,
            lanes: Lanes::new(
                format!("blocks of {least} and more"),
                "From allocation to free, with owner and stack",
                group,
                rank + 2,
            ),
            blocks: BlockSelection::new(
                None,
                older.chain(made).map(|one| one.requested_bytes),
                &PerfettoOptions {
                    device: None,
                    min_block_bytes: options.min_block_bytes,
                    max_blocks: options.max_blocks,
                    max_counter_points: options.max_counter_points,
                },
            ),
            drawn: BTreeMap::new(),
            latest_ns: 0,
        })
    }

    fn write(&mut self, packets: &mut Packets<'_, impl Write>) -> io::Result<()> {
        let card = self.card;
        for (at, one) in card.allocations.iter().enumerate() {
            if one.allocated_at.is_none() {
                self.begin(AllocationId(at as u32), one, packets)?;
            }
        }
        let mut sweep = Sweep::new(card);
        self.count(sweep.state(), packets)?;
        let mut phases = card.phases.iter().peekable();
        let mut open = OpenSlices::default();
        for (at, event) in card.events.iter().enumerate() {
            let time_ns = card
                .times_us
                .get(at)
                .map_or(0, |us| us.saturating_mul(1000));
            self.latest_ns = self.latest_ns.max(time_ns);
            while let Some(phase) = phases.next_if(|phase| phase.first_event as usize <= at) {
                // Of several that begin here, the last has the event.
                let has_events = phases
                    .peek()
                    .is_none_or(|next| next.first_event as usize > at);
                if has_events {
                    open.enter(phase, self.steps, self.latest_ns, packets)?;
                }
            }
            self.happen(*event, packets)?;
            if let Some((_, state)) = sweep.next() {
                self.count(&state, packets)?;
            }
        }
        open.close(self.steps, self.latest_ns, packets)?;
        for counted in &mut self.counters {
            counted.counter.flush(packets)?;
        }
        Ok(())
    }

    fn count(
        &mut self,
        state: &SweepState,
        packets: &mut Packets<'_, impl Write>,
    ) -> io::Result<()> {
        for counted in &mut self.counters {
            let value = (counted.value)(state, counted.category);
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            counted.counter.see(self.latest_ns, value, packets)?;
        }
        Ok(())
    }

    fn happen(&mut self, event: Event, packets: &mut Packets<'_, impl Write>) -> io::Result<()> {
        match event {
            Event::Allocate(id) => match self.card.allocations.get(id.0 as usize) {
                Some(one) => self.begin(id, one, packets),
                None => Ok(()),
            },
            Event::Free(id) => match self.drawn.remove(&id) {
                Some(lane) => {
                    packets.end(self.lanes.track(lane), self.latest_ns)?;
                    self.lanes.give_back(lane);
                    Ok(())
                }
                None => Ok(()),
            },
            Event::OutOfMemory { requested_bytes } => packets.instant(&Happening {
                track: self.failures,
                time_ns: self.latest_ns,
                name: "out of memory",
                arguments: &[("requested_bytes", Argument::Number(requested_bytes))],
            }),
            Event::Reserve(_) | Event::Release(_) => Ok(()),
        }
    }

    fn begin(
        &mut self,
        id: AllocationId,
        one: &Allocation,
        packets: &mut Packets<'_, impl Write>,
    ) -> io::Result<()> {
        if !self.blocks.draws(one.requested_bytes) {
            return Ok(());
        }
        let lane = self.lanes.take(packets)?;
        self.drawn.insert(id, lane);
        let names = &self.recording.names;
        let text = |list: &'a [String], at: u32| list.get(at as usize).map_or("", |text| text);
        let module = names.modules.get(one.module.0 as usize);
        let mut arguments = vec![
            ("category", Argument::Text(one.category.title().into())),
            ("requested_bytes", Argument::Number(one.requested_bytes)),
            ("block_bytes", Argument::Number(one.block_bytes)),
            ("address", Argument::Address(one.address)),
        ];
        for (name, value) in [
            ("name", text(&names.texts, one.name.0)),
            ("module", module.map_or("", |module| &module.path)),
            ("operator", text(&names.operators, one.operator.0)),
        ] {
            if !value.is_empty() {
                arguments.push((name, Argument::Text(value.into())));
            }
        }
        let frames = names.stacks.get(one.stack.0 as usize);
        if frames.is_some_and(|frames| !frames.is_empty()) {
            arguments.push(("stack", Argument::Stack(one.stack.0)));
        }
        packets.begin(&Happening {
            track: self.lanes.track(lane),
            time_ns: self.latest_ns,
            name: &self.block_name(one),
            arguments: &arguments,
        })
    }

    /// A block's size, and the line or operator that made it.
    fn block_name(&self, one: &Allocation) -> String {
        let place = self.places.place(one);
        let made_by = match &place {
            Place::Line(id) => self.places.frame(*id).map(|frame| {
                let file = frame.file.rsplit(['/', '\\']).next().unwrap_or(&frame.file);
                format!("{} {file}:{}", frame.function, frame.line)
            }),
            Place::NoStack { .. } | Place::Older => None,
        };
        let made_by = made_by.unwrap_or_else(|| self.places.label(&place));
        format!("{} {made_by}", ghostgpu_text::human(one.requested_bytes))
    }
}

/// The step and the stage that are open on the track of steps.
#[derive(Default)]
struct OpenSlices {
    step: Option<u32>,
    has_stage: bool,
}

impl OpenSlices {
    fn enter(
        &mut self,
        phase: &ghostgpu_recording::Phase,
        track: TrackUuid,
        time_ns: u64,
        packets: &mut Packets<'_, impl Write>,
    ) -> io::Result<()> {
        if std::mem::take(&mut self.has_stage) {
            packets.end(track, time_ns)?;
        }
        if self.step != Some(phase.step) {
            if self.step.is_some() {
                packets.end(track, time_ns)?;
            }
            self.step = Some(phase.step);
            packets.begin(&Happening {
                track,
                time_ns,
                name: &format!("step {}", u64::from(phase.step) + 1),
                arguments: &[],
            })?;
        }
        self.has_stage = true;
        packets.begin(&Happening {
            track,
            time_ns,
            name: phase.stage.title(),
            arguments: &[],
        })
    }

    fn close(
        &mut self,
        track: TrackUuid,
        time_ns: u64,
        packets: &mut Packets<'_, impl Write>,
    ) -> io::Result<()> {
        for _ in 0..usize::from(self.has_stage) + usize::from(self.step.is_some()) {
            packets.end(track, time_ns)?;
        }
        Ok(())
    }
}

//! The timeline of one device.

use std::collections::HashMap;
use std::io::{self, Write};

use ghostgpu_ledger::{Ledger, UserFrames};
use ghostgpu_trace::{Event, EventKind, Events, Snapshot};

use super::annotations::write_annotations;
use super::arguments::{block_name, push_context, push_stack};
use super::clock::Clock;
use super::counter::Counter;
use super::follower::{Follower, pending_at_the_beginning};
use super::lanes::{Lane, Lanes};
use super::packets::{Argument, Happening, Packets, TrackUuid};
use super::selection::BlockSelection;
use super::{PerfettoOptions, PerfettoSummary};
use crate::holdings::events_of;

/// Writes everything of one device, in one pass over its events.
pub(super) struct DeviceTimeline<'a> {
    snapshot: &'a Snapshot,
    ledger: Ledger<'a>,
    user_frames: UserFrames,
    all_events: Option<&'a Events>,
    allocated: Counter,
    active: Counter,
    reserved: Counter,
    annotations: Lanes,
    events: TrackUuid,
    segments: Lanes,
    blocks: Lanes,
    selection: BlockSelection,
    clock: Clock,
}

/// A block that is drawn, with its track and whether it waits for its free.
#[derive(Debug, Clone, Copy)]
struct DrawnBlock {
    lane: Lane,
    is_waiting: bool,
}

impl<'a> DeviceTimeline<'a> {
    pub(super) fn new(
        snapshot: &'a Snapshot,
        device: usize,
        options: &PerfettoOptions,
        packets: &mut Packets<'_, impl Write>,
    ) -> io::Result<Self> {
        let ledger = Ledger::new(snapshot, device);
        let all_events = events_of(snapshot, device);
        let device = packets.group_track(&format!("device {device}"))?;
        let mut counter = |name, description, rank| -> io::Result<Counter> {
            let track = packets.byte_counter_track(name, description, device, rank)?;
            let points = options.max_counter_points;
            let values = 1 + all_events.map_or(0, Events::len);
            Ok(Counter::new(track, values, points))
        };
        let allocated = counter(
            "allocated",
            "Requested bytes from alloc to free_requested; blocks are larger by their rounding.",
            0,
        )?;
        let active = counter(
            "active",
            "Requested bytes from alloc to free_completed; blocks are larger by their rounding.",
            1,
        )?;
        let reserved = counter("reserved", "Bytes of all segments.", 2)?;
        let events = packets.slice_track(
            "events",
            "Out-of-memory errors, snapshots, pages of expandable segments.",
            device,
            4,
        )?;
        let older_sizes = ledger.older().iter().map(|block| block.bytes);
        let selection = BlockSelection::new(all_events, older_sizes, options);
        Ok(Self {
            clock: Clock::of(all_events),
            allocated,
            active,
            reserved,
            annotations: Lanes::new(
                "annotations".to_owned(),
                "Ranges of record_function.",
                device,
                3,
            ),
            events,
            segments: Lanes::new(
                "segments".to_owned(),
                "From segment_alloc to segment_free.",
                device,
                5,
            ),
            blocks: Lanes::new(
                format!(
                    "blocks of {} and more",
                    ghostgpu_text::human(options.min_block_bytes)
                ),
                "From alloc to free_completed.",
                device,
                6,
            ),
            selection,
            snapshot,
            ledger,
            user_frames: UserFrames::of(snapshot),
            all_events,
        })
    }

    pub(super) fn summary(&self) -> PerfettoSummary {
        self.selection.summary
    }

    pub(super) fn write(&mut self, packets: &mut Packets<'_, impl Write>) -> io::Result<()> {
        // Ranges have times; events without any give nothing to place them by.
        if !self.clock.counts_events {
            let device = self.ledger.device();
            write_annotations(self.snapshot, device, &mut self.annotations, packets)?;
        }
        let mut blocks = self.older_blocks(packets)?;
        let mut segments = self.older_segments(packets)?;
        self.count(self.clock.start_ns, &blocks, packets)?;
        let Some(events) = self.all_events else {
            return self.flush(packets);
        };
        for (at, event) in events.iter().enumerate() {
            let time_ns = self.clock.at(at, event);
            blocks.reserve(event);
            match event.kind {
                EventKind::Alloc => {
                    let drawn = if self.selection.draws(event.bytes) {
                        Some(self.begin_block(time_ns, at, event, packets)?)
                    } else {
                        None
                    };
                    let replaced = blocks.add(event.address, event.bytes, drawn, false);
                    self.end_block(replaced.flatten(), time_ns, packets)?;
                }
                EventKind::FreeRequested => {
                    // Usually the free completes at once: only a wait is worth drawing.
                    let next = events.get(at + 1);
                    let completes = next.is_some_and(|next| next.address == event.address);
                    let block = blocks.request_free(event.address);
                    if let (Some(Some(block)), false) = (block, completes) {
                        self.begin_wait(block, time_ns, packets)?;
                    }
                }
                EventKind::FreeCompleted => {
                    let ended = blocks.remove(event.address);
                    self.end_block(ended.flatten(), time_ns, packets)?;
                }
                EventKind::SegmentAlloc => {
                    self.begin_segment(&mut segments, time_ns, event, packets)?;
                }
                EventKind::SegmentFree => {
                    if let Some(lane) = segments.remove(&event.address) {
                        packets.end(self.segments.track(lane), time_ns)?;
                        self.segments.give_back(lane);
                    }
                }
                EventKind::SegmentMap
                | EventKind::SegmentUnmap
                | EventKind::Oom
                | EventKind::Snapshot
                | EventKind::Annotate => self.write_instant(time_ns, event, packets)?,
                EventKind::Other => {}
            }
            self.count(time_ns, &blocks, packets)?;
        }
        self.flush(packets)
    }

    fn count<T>(
        &mut self,
        time_ns: u64,
        blocks: &Follower<T>,
        packets: &mut Packets<'_, impl Write>,
    ) -> io::Result<()> {
        let totals = blocks.totals;
        self.allocated
            .see(time_ns, totals.allocated_bytes, packets)?;
        self.active.see(time_ns, totals.active_bytes, packets)?;
        self.reserved.see(time_ns, totals.reserved_bytes, packets)
    }

    fn flush(&mut self, packets: &mut Packets<'_, impl Write>) -> io::Result<()> {
        self.allocated.flush(packets)?;
        self.active.flush(packets)?;
        self.reserved.flush(packets)
    }

    /// Begins what is older than the trace at its beginning.
    fn older_blocks(
        &mut self,
        packets: &mut Packets<'_, impl Write>,
    ) -> io::Result<Follower<Option<DrawnBlock>>> {
        let pending = pending_at_the_beginning(self.snapshot, &self.ledger, self.all_events);
        let mut blocks = Follower::new(self.ledger.start().reserved_bytes);
        for block in self.ledger.older() {
            let mut drawn = None;
            if self.selection.draws(block.bytes) {
                let lane = self.blocks.take(packets)?;
                let mut arguments = vec![
                    ("requested_bytes", Argument::Number(block.bytes)),
                    ("address", Argument::Address(block.address)),
                    ("stream", Argument::Number(block.stream)),
                    ("allocated", Argument::Text("before the trace".into())),
                ];
                push_stack(&mut arguments, "stack", block.stack);
                packets.begin(&Happening {
                    track: self.blocks.track(lane),
                    time_ns: self.clock.start_ns,
                    name: &block_name(self.snapshot, &self.user_frames, block.bytes, block.stack),
                    arguments: &arguments,
                })?;
                drawn = Some(DrawnBlock {
                    lane,
                    is_waiting: false,
                });
            }
            let is_pending = pending.contains(&block.address);
            blocks.add(block.address, block.bytes, drawn, is_pending);
        }
        Ok(blocks)
    }

    /// Segments that were there at the beginning: what the trace frees or keeps, and does not make.
    fn older_segments(
        &mut self,
        packets: &mut Packets<'_, impl Write>,
    ) -> io::Result<HashMap<u64, Lane>> {
        let mut drawn = HashMap::new();
        let mut alive: HashMap<u64, ()> = HashMap::new();
        let mut older: Vec<(u64, u64)> = Vec::new();
        for event in self.all_events.into_iter().flat_map(Events::iter) {
            match event.kind {
                EventKind::SegmentAlloc => {
                    alive.insert(event.address, ());
                }
                EventKind::SegmentFree if alive.remove(&event.address).is_none() => {
                    older.push((event.address, event.bytes));
                }
                _ => {}
            }
        }
        for segment in self.snapshot.segments_of(self.ledger.device()) {
            if !segment.is_expandable && !alive.contains_key(&segment.address) {
                older.push((segment.address, segment.total_bytes));
            }
        }
        for (address, bytes) in older {
            let lane = self.segments.take(packets)?;
            packets.begin(&Happening {
                track: self.segments.track(lane),
                time_ns: self.clock.start_ns,
                name: &ghostgpu_text::human(bytes),
                arguments: &[
                    ("bytes", Argument::Number(bytes)),
                    ("address", Argument::Address(address)),
                    ("reserved", Argument::Text("before the trace".into())),
                ],
            })?;
            drawn.insert(address, lane);
        }
        Ok(drawn)
    }

    fn begin_segment(
        &mut self,
        segments: &mut HashMap<u64, Lane>,
        time_ns: u64,
        event: Event,
        packets: &mut Packets<'_, impl Write>,
    ) -> io::Result<()> {
        let lane = self.segments.take(packets)?;
        let mut arguments = vec![
            ("bytes", Argument::Number(event.bytes)),
            ("address", Argument::Address(event.address)),
        ];
        if let Some(events) = self.all_events {
            push_context(&mut arguments, self.snapshot, events, event);
        }
        packets.begin(&Happening {
            track: self.segments.track(lane),
            time_ns,
            name: &ghostgpu_text::human(event.bytes),
            arguments: &arguments,
        })?;
        if let Some(lost) = segments.insert(event.address, lane) {
            // Its free is lost; it cannot have lived longer.
            packets.end(self.segments.track(lost), time_ns)?;
            self.segments.give_back(lost);
        }
        Ok(())
    }

    fn begin_block(
        &mut self,
        time_ns: u64,
        at: usize,
        event: Event,
        packets: &mut Packets<'_, impl Write>,
    ) -> io::Result<DrawnBlock> {
        let lane = self.blocks.take(packets)?;
        let mut arguments = vec![
            ("requested_bytes", Argument::Number(event.bytes)),
            ("address", Argument::Address(event.address)),
            ("event", Argument::Number(at as u64)),
        ];
        if let Some(events) = self.all_events {
            push_context(&mut arguments, self.snapshot, events, event);
        }
        packets.begin(&Happening {
            track: self.blocks.track(lane),
            time_ns,
            name: &block_name(self.snapshot, &self.user_frames, event.bytes, event.stack),
            arguments: &arguments,
        })?;
        Ok(DrawnBlock {
            lane,
            is_waiting: false,
        })
    }

    fn begin_wait(
        &self,
        block: &mut DrawnBlock,
        time_ns: u64,
        packets: &mut Packets<'_, impl Write>,
    ) -> io::Result<()> {
        if std::mem::replace(&mut block.is_waiting, true) {
            return Ok(());
        }
        packets.begin(&Happening {
            track: self.blocks.track(block.lane),
            time_ns,
            name: "waits for another stream",
            arguments: &[],
        })
    }

    fn end_block(
        &mut self,
        block: Option<DrawnBlock>,
        time_ns: u64,
        packets: &mut Packets<'_, impl Write>,
    ) -> io::Result<()> {
        let Some(block) = block else {
            return Ok(());
        };
        let track = self.blocks.track(block.lane);
        if block.is_waiting {
            packets.end(track, time_ns)?;
        }
        packets.end(track, time_ns)?;
        self.blocks.give_back(block.lane);
        Ok(())
    }

    fn write_instant(
        &self,
        time_ns: u64,
        event: Event,
        packets: &mut Packets<'_, impl Write>,
    ) -> io::Result<()> {
        let mut arguments = vec![("bytes", Argument::Number(event.bytes))];
        if let Some(free) = event.device_free_bytes {
            arguments.push(("device_free_bytes", Argument::Number(free)));
        } else if event.address != 0 {
            arguments.push(("address", Argument::Address(event.address)));
        }
        if let Some(events) = self.all_events {
            push_context(&mut arguments, self.snapshot, events, event);
        }
        let name = match event.kind {
            EventKind::Oom => format!("out of memory: {}", ghostgpu_text::human(event.bytes)),
            EventKind::SegmentMap | EventKind::SegmentUnmap => {
                format!(
                    "{} {}",
                    event.kind.action(),
                    ghostgpu_text::human(event.bytes)
                )
            }
            kind => kind.action().to_owned(),
        };
        packets.instant(&Happening {
            track: self.events,
            time_ns,
            name: &name,
            arguments: &arguments,
        })
    }
}

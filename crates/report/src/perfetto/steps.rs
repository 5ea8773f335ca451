//! What the script was doing: steps and stages, and ranges that it named itself.

use std::io::{self, Write};

use ghostgpu_recording::{CardMemory, Names, Phase};

use super::clock::Clock;
use super::lanes::Lanes;
use super::packets::{Happening, Packets, TrackUuid};

/// The step and the stage that are open on the track of steps.
#[derive(Debug, Default)]
pub(super) struct OpenSlices {
    step: Option<u32>,
    has_stage: bool,
}

impl OpenSlices {
    pub(super) fn enter(
        &mut self,
        phase: &Phase,
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

    pub(super) fn close(
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

/// Writes the ranges of a card; without times there is nothing to place them by.
pub(super) fn write_ranges(
    card: &CardMemory,
    names: &Names,
    clock: &Clock,
    lanes: &mut Lanes,
    packets: &mut Packets<'_, impl Write>,
) -> io::Result<()> {
    if !clock.has_times() {
        return Ok(());
    }
    // Beginnings and ends in the order of time, so that a lane is free again when its range has ended.
    let mut open = std::collections::BTreeMap::new();
    let mut marks: Vec<(u64, bool, usize)> = Vec::new();
    for (at, range) in card.ranges.iter().enumerate() {
        marks.push((range.begin_us, true, at));
        marks.extend(
            range
                .end_us
                .map(|end_us| (end_us.max(range.begin_us), false, at)),
        );
    }
    marks.sort_by_key(|(time_us, is_begin, at)| (*time_us, *at, !is_begin));
    for (time_us, is_begin, at) in marks {
        let time_ns = clock.since_first_ns(time_us);
        if is_begin {
            let lane = lanes.take(packets)?;
            let name = names.texts.get(card.ranges[at].name.0 as usize);
            packets.begin(&Happening {
                track: lanes.track(lane),
                time_ns,
                name: name.map_or("", |name| name),
                arguments: &[],
            })?;
            open.insert(at, lane);
        } else if let Some(lane) = open.remove(&at) {
            packets.end(lanes.track(lane), time_ns)?;
            lanes.give_back(lane);
        }
    }
    Ok(())
}

//! Segments as slices for as long as they were reserved; pages of expandable segments as single moments.

use std::collections::HashMap;
use std::io::{self, Write};

use ghostgpu_recording::{Pool, SegmentChange};
use ghostgpu_text::human;

use super::lanes::{Lane, Lanes};
use super::packets::{Argument, Happening, Packets, TrackUuid};
use crate::text;

/// The arguments of a slice, each with its name.
pub(super) type Arguments<'a> = Vec<(&'static str, Argument<'a>)>;

/// Adds stream and pool, as far as they are known.
pub(super) fn push_pool(arguments: &mut Arguments<'_>, pool: Pool) {
    arguments.push(("stream", Argument::Number(pool.stream)));
    if let Some(pool) = text::pool(pool) {
        arguments.push(("pool", Argument::Text(pool.into())));
    }
}

/// The segments of one card.
pub(super) struct SegmentSlices {
    pub(super) lanes: Lanes,
    /// The track for pages that are mapped and unmapped.
    pub(super) moments: TrackUuid,
    drawn: HashMap<u64, Lane>,
}

impl SegmentSlices {
    pub(super) fn new(lanes: Lanes, moments: TrackUuid) -> Self {
        Self {
            lanes,
            moments,
            drawn: HashMap::new(),
        }
    }

    pub(super) fn reserve(
        &mut self,
        change: &SegmentChange,
        pool: Pool,
        is_older: bool,
        time_ns: u64,
        packets: &mut Packets<'_, impl Write>,
    ) -> io::Result<()> {
        if change.is_expandable {
            return match is_older {
                true => Ok(()),
                false => self.page("segment_map", change, pool, time_ns, packets),
            };
        }
        let lane = self.lanes.take(packets)?;
        let mut arguments = self::arguments(change, pool);
        if is_older {
            arguments.push(("reserved", Argument::Text("before the recording".into())));
        }
        packets.begin(&Happening {
            track: self.lanes.track(lane),
            time_ns,
            name: &human(change.bytes),
            arguments: &arguments,
        })?;
        if let Some(lost) = self.drawn.insert(change.address, lane) {
            // Its release is not recorded, but it cannot have lived longer.
            packets.end(self.lanes.track(lost), time_ns)?;
            self.lanes.give_back(lost);
        }
        Ok(())
    }

    pub(super) fn release(
        &mut self,
        change: &SegmentChange,
        pool: Pool,
        time_ns: u64,
        packets: &mut Packets<'_, impl Write>,
    ) -> io::Result<()> {
        if change.is_expandable {
            return self.page("segment_unmap", change, pool, time_ns, packets);
        }
        if let Some(lane) = self.drawn.remove(&change.address) {
            packets.end(self.lanes.track(lane), time_ns)?;
            self.lanes.give_back(lane);
        }
        Ok(())
    }

    fn page(
        &self,
        action: &str,
        change: &SegmentChange,
        pool: Pool,
        time_ns: u64,
        packets: &mut Packets<'_, impl Write>,
    ) -> io::Result<()> {
        packets.instant(&Happening {
            track: self.moments,
            time_ns,
            name: &format!("{action} {}", human(change.bytes)),
            arguments: &arguments(change, pool),
        })
    }
}

fn arguments<'a>(change: &SegmentChange, pool: Pool) -> Arguments<'a> {
    let mut arguments = vec![
        ("bytes", Argument::Number(change.bytes)),
        ("address", Argument::Address(change.address)),
    ];
    push_pool(&mut arguments, pool);
    arguments
}

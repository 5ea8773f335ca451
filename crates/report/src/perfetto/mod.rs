//! Perfetto: a timeline of each device in the native trace format.
//!
//! A device is a track with, below it,
//!
//! - counters of allocated, active and reserved bytes;
//! - the ranges that the user's `record_function` named;
//! - what happened at one moment: out-of-memory errors, snapshots, pages of expandable segments;
//! - segments, each a slice from `segment_alloc` to `segment_free`;
//! - the largest blocks, each a slice from `alloc` to `free_completed` with its stack; inside it, the
//!   time that it waited for another stream after its free was requested.
//!
//! What lives when the snapshot is taken has no end. Small blocks are in the counters only: a timeline
//! of millions of slices opens nowhere.

mod annotations;
mod arguments;
mod clock;
pub(crate) mod counter;
mod device;
mod follower;
pub(crate) mod lanes;
pub(crate) mod packets;
pub(crate) mod selection;

use std::io::Write;

use ghostgpu_trace::Snapshot;

use crate::error::ReportError;
use crate::holdings::{devices, events_of};
use device::DeviceTimeline;
use packets::Packets;

/// What a timeline shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerfettoOptions {
    /// Only this device.
    pub device: Option<usize>,
    /// Blocks of fewer requested bytes are in the counters only.
    pub min_block_bytes: u64,
    /// At most so many blocks of one device are drawn, the largest first and among equals the oldest.
    pub max_blocks: usize,
    /// Each counter of a device has at most about so many points; its highs and lows are kept.
    pub max_counter_points: usize,
}

impl Default for PerfettoOptions {
    fn default() -> Self {
        Self {
            device: None,
            min_block_bytes: 1 << 20,
            // With these, the largest file is some 100 MB for each device; Perfetto's page opens
            // about 500 MB and not 1 GB.
            max_blocks: 200_000,
            max_counter_points: 500_000,
        }
    }
}

/// What was drawn, and what was not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerfettoSummary {
    pub blocks_drawn: u64,
    /// Blocks below the smallest size that is drawn.
    pub blocks_too_small: u64,
    /// Blocks that would be large enough, and were too many.
    pub blocks_left_out: u64,
}

/// Writes the timeline of a snapshot.
pub fn write_perfetto(
    snapshot: &Snapshot,
    options: &PerfettoOptions,
    out: impl Write,
) -> Result<PerfettoSummary, ReportError> {
    let devices = devices(snapshot, options.device)?;
    let mut packets = Packets::new(
        snapshot,
        devices.iter().find_map(|d| first_time_us(snapshot, *d)),
        out,
    )?;
    let mut summary = PerfettoSummary::default();
    for device in devices {
        let mut timeline = DeviceTimeline::new(snapshot, device, options, &mut packets)?;
        timeline.write(&mut packets)?;
        summary.add(timeline.summary());
    }
    packets.finish()?;
    Ok(summary)
}

impl PerfettoSummary {
    pub(crate) fn add(&mut self, other: Self) {
        self.blocks_drawn += other.blocks_drawn;
        self.blocks_too_small += other.blocks_too_small;
        self.blocks_left_out += other.blocks_left_out;
    }
}

fn first_time_us(snapshot: &Snapshot, device: usize) -> Option<i64> {
    let events = events_of(snapshot, device)?;
    events.times_us().first().copied().filter(|us| *us > 0)
}

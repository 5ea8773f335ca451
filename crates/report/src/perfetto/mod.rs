//! Perfetto: a timeline of each card in the native trace format.
//!
//! A card is a track with, below it,
//!
//! - counters of allocated and reserved bytes; of what was asked for in each category, or of active bytes where
//!   owners are not known;
//! - the steps, and inside them the stages; the ranges that the script named itself;
//! - what happened at one moment: failed requests, pages of expandable segments;
//! - segments, each a slice for as long as it was reserved;
//! - the largest blocks, each a slice for as long as it lived, with its owner and stack; inside it, the time that it
//!   waited for another stream after it was given back.
//!
//! What is live at the end of the recording has no end. Small blocks are only in the counters, because no viewer opens a
//! timeline with millions of slices.

mod blocks;
mod card;
mod clock;
mod counter;
mod lanes;
mod packets;
mod segments;
mod selection;
mod steps;

use std::io::Write;

use ghostgpu_recording::Recording;

use crate::error::ReportError;
use crate::selection::cards;
use card::CardTimeline;
use packets::Packets;

/// What a timeline shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerfettoOptions {
    /// Only this card.
    pub card: Option<u32>,
    /// Blocks of fewer requested bytes are in the counters only.
    pub min_block_bytes: u64,
    /// At most this many blocks of one card are drawn: the largest, and among equals the oldest.
    pub max_blocks: usize,
    /// All counters of a card together have about this many points at most; highs and lows are kept.
    pub max_counter_points: usize,
}

impl Default for PerfettoOptions {
    fn default() -> Self {
        Self {
            card: None,
            min_block_bytes: 1 << 20,
            // With these, the largest file is about 100 MB per card. Perfetto's page opens about 500 MB, but not 1 GB.
            max_blocks: 200_000,
            max_counter_points: 1_500_000,
        }
    }
}

/// What was drawn, and what was not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerfettoSummary {
    pub blocks_drawn: u64,
    /// Blocks below the smallest size that is drawn.
    pub blocks_too_small: u64,
    /// Blocks that are large enough but exceed the limit.
    pub blocks_left_out: u64,
}

/// Writes the timeline of a recording, and says how much of it was drawn.
pub fn write_perfetto(
    recording: &Recording,
    options: &PerfettoOptions,
    out: impl Write,
) -> Result<PerfettoSummary, ReportError> {
    let cards = cards(recording, options.card)?;
    let some_time_us = cards.iter().map(|card| card.began_us).find(|us| *us > 0);
    let mut packets = Packets::new(&recording.names, some_time_us, out)?;
    let mut summary = PerfettoSummary::default();
    for card in cards {
        let mut timeline = CardTimeline::new(recording, card, options, &mut packets)?;
        timeline.write(&mut packets)?;
        summary.add(timeline.summary());
    }
    packets.finish()?;
    Ok(summary)
}

impl PerfettoSummary {
    fn add(&mut self, other: Self) {
        self.blocks_drawn += other.blocks_drawn;
        self.blocks_too_small += other.blocks_too_small;
        self.blocks_left_out += other.blocks_left_out;
    }
}

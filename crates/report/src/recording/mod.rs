//! A recording of a rehearsal as files that other tools open: one module for each format.

mod json;
mod perfetto;
mod pprof;

pub use json::{Breakdown, RecordingJsonOptions, recording_breakdown, write_recording_json};
pub use perfetto::{RecordingPerfettoOptions, write_recording_perfetto};
pub use pprof::write_recording_pprof;

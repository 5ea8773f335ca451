//! A recording of a rehearsal as files that other tools open: one module for each format.

mod json;
mod perfetto;
mod pprof;

pub use json::{RecordingJsonOptions, write_recording_json};
pub use perfetto::{RecordingPerfettoOptions, write_recording_perfetto};
pub use pprof::write_recording_pprof;

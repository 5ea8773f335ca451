//! Memory snapshots and recordings as files that other tools open.
//!
//! A [`Snapshot`](ghostgpu_trace::Snapshot) goes in, bytes come out; one module for each format. This
//! crate refuses to know where the snapshot came from, and where the bytes go.
//!
//! | function | opens in |
//! |---|---|
//! | [`write_pprof`] | `go tool pprof`, and what reads its profiles |
//! | [`write_perfetto`] | ui.perfetto.dev, `trace_processor` |
//! | [`write_folded`] | flame graph tools |
//! | [`write_json`] | programs; described in `docs/snapshot-json.md` |
//! | [`write_memory_viz`] | PyTorch's `_memory_viz.py` and its page |
//!
//! A [`Recording`](ghostgpu_recording::Recording) of a rehearsal says whose memory it is, and has functions of its
//! own: [`write_recording_pprof`], [`write_recording_perfetto`], [`write_recording_json`], which
//! `docs/report-json.md` describes, and [`write_html`], a page for any browser.
//!
//! In a snapshot, live memory is counted in requested bytes, from `alloc` to `free_completed`: that is what traces
//! record. The same snapshot gives the same bytes, and none of them holds more in memory than what is
//! live, what is large and the stacks.
//!
//! ```no_run
//! use ghostgpu_report::{At, Selection, write_folded};
//!
//! let snapshot = ghostgpu_trace::open("oom.pickle".as_ref())?;
//! let at_the_end = Selection { at: At::End, device: None };
//! write_folded(&snapshot, at_the_end, std::io::stdout().lock())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod error;
mod folded;
mod holdings;
#[cfg(test)]
mod hostile;
mod html;
mod json;
mod memory_viz;
mod origin;
mod perfetto;
mod pprof;
mod profile;
mod protobuf;
mod recording;
mod stacks;
#[cfg(test)]
mod test_snapshot;
mod text;

pub use error::ReportError;
pub use folded::write_folded;
pub use holdings::{At, Selection};
pub use html::write_html;
pub use json::{JsonOptions, write_json};
pub use memory_viz::{MemoryVizOptions, write_memory_viz};
pub use perfetto::{PerfettoOptions, PerfettoSummary, write_perfetto};
pub use pprof::write_pprof;
pub use recording::{
    Breakdown, RecordingJsonOptions, RecordingPerfettoOptions, recording_breakdown,
    write_recording_json, write_recording_perfetto, write_recording_pprof,
};

//! Exports of a recording for other tools.
//!
//! A [`Recording`](ghostgpu_recording::Recording), of a rehearsal or of a memory snapshot, becomes bytes; there is one
//! module per format. This crate does not know where the recording comes from or where the bytes go. What a recording
//! does not know is left out, never invented.
//!
//! | function | opens in |
//! |---|---|
//! | [`write_html`] | any browser, offline |
//! | [`write_json`] | programs; described in `docs/report-json.md` |
//! | [`write_pprof`] | `go tool pprof`, and what reads its profiles |
//! | [`write_perfetto`] | ui.perfetto.dev, `trace_processor` |
//! | [`write_folded`] | flame graph tools |
//! | [`write_memory_viz`] | PyTorch's `_memory_viz.py` and its page |
//!
//! The last one takes a [`Snapshot`](ghostgpu_snapshot::Snapshot) and writes it as PyTorch would. The same recording
//! gives the same bytes, and no format needs more memory than for live allocations, large ones and stacks.

#![forbid(unsafe_code)]

mod error;
mod folded;
#[cfg(test)]
mod hostile;
mod html;
mod json;
mod memory_viz;
mod perfetto;
mod pprof;
mod profile;
mod protobuf;
mod selection;
#[cfg(test)]
mod test_snapshot;
mod text;

pub use error::ReportError;
pub use folded::write_folded;
pub use html::write_html;
pub use json::{Breakdown, JsonOptions, breakdown, write_json};
pub use memory_viz::{MemoryVizOptions, write_memory_viz};
pub use perfetto::{PerfettoOptions, PerfettoSummary, write_perfetto};
pub use pprof::write_pprof;
pub use selection::{At, Selection};

//! Answers as text and JSON.
//!
//! The results of a command are values; this crate turns them into text and JSON. Text has three forms, chosen by
//! [`Style::detail`]: one line with the verdict, one screen of 24 lines and 80 columns, or everything.
//! There is one module for each question:
//!
//! - [`fits`]: does a job fit, and how much does it need? [`breakdown_answer`]: whose memory was it?
//! - [`growth`], [`largest_batch`], [`fixes`], [`cards`], [`sweep`]: questions that take several rehearsals
//! - [`explain`]: what an out-of-memory error means, and what to do about it; [`plan`]: which tricks make a job fit
//! - [`snapshot`], [`replay`]: what a memory snapshot shows, and what another setting would have changed
//! - [`doctor`], [`gpus`], [`tricks`]: what is installed, and which cards and tricks there are
//!
//! Nothing here knows arguments, opens a file, starts a process or queries a terminal: the [`Style`] says how wide text
//! is and whether it has colour.
//!
//! ```
//! use ghostgpu_answers::{Detail, Style, gpus};
//! use ghostgpu_device::Catalogue;
//!
//! let style = Style { width: 80, has_colour: false, detail: Detail::Quiet, current_dir: None };
//! let card = Catalogue::builtin().find("3060").expect("in the catalogue");
//! assert_eq!(gpus::text(&[card], style), "RTX 3060 12GB\n");
//! assert_eq!(gpus::json(&[card])["cards"][0]["capability"], "8.6");
//! ```

mod breakdown;
pub mod cards;
mod csv;
pub mod doctor;
pub mod explain;
pub mod fits;
pub mod fixes;
pub mod gpus;
pub mod growth;
mod headline;
pub mod largest_batch;
pub mod machines;
mod one_line;
mod peak;
pub mod plan;
pub mod ranks;
pub mod replay;
pub mod snapshot;
mod style;
pub mod sweep;
pub mod tricks;

pub use breakdown::breakdown_answer;
pub use style::{Detail, Style};

/// A document as it is written: pretty-printed, with a trailing newline.
pub fn in_json(document: &impl serde::Serialize) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(document)? + "\n")
}

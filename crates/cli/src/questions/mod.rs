//! What several commands ask: a job goes in, the answer is shown, an exit code comes out.
//!
//! Commands know arguments, questions do not; so no command needs another.

mod announce;
mod declining;
mod distinct_ranks;
pub mod fits;
pub mod known_answers;
pub mod largest_batch;
pub mod patch;
pub mod plan;
mod recorded;
mod relative_paths;

pub use announce::{announce, show_last_lines};

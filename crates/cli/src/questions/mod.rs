//! Questions that several commands share: each takes a job, shows the answer and returns an exit code.
//!
//! Commands know arguments, questions do not, so no command needs another.

mod announce;
mod distinct_ranks;
pub mod fits;
pub mod known_answers;
pub mod largest_batch;
pub mod patch;
pub mod plan;
mod recorded;
mod relative_paths;

pub use announce::{announce, show_last_lines};

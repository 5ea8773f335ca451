//! Makes recordings.
//!
//! [`recording_of_snapshot`] makes one of a memory snapshot alone, from any card: without owners. [`assemble`] makes
//! one of what a rehearsal's process left behind. There, two witnesses saw the same allocations in the same order. PyTorch's own history
//! ([`Snapshot`](ghostgpu_snapshot::Snapshot)) has the sizes that were asked for, the Python stacks and the
//! segments; the memory log ([`memory_log`](ghostgpu_session::memory_log)) has the operators, the modules,
//! the stages, and what memory turned out to be. `assemble` goes through both at once.
//!
//! Pure: it is given the log's bytes and the snapshot, and knows no file. All that is known about PyTorch's snapshots beyond their keys ends here.

#![forbid(unsafe_code)]

mod assemble;
mod category;
mod frame_owner;
mod log;
mod named_ranges;
mod names;
mod of_snapshot;
mod pools;
mod rounding;
mod sharding;

pub use assemble::{Outside, assemble};
pub use of_snapshot::recording_of_snapshot;

//! Makes recordings.
//!
//! [`recording_of_snapshot`] makes one, without owners, from a memory snapshot of any card. [`assemble`] makes one from
//! the files of a rehearsed process. There are two records of the same allocations in the same order. PyTorch's own
//! history ([`Snapshot`](ghostgpu_snapshot::Snapshot)) has the requested sizes, the Python stacks and the segments; the
//! memory log ([`memory_log`](ghostgpu_session::memory_log)) has the operators, the modules, the stages, and what the
//! memory was used for. `assemble` reads both side by side.
//!
//! Pure: it gets the log's bytes and the snapshot, and opens no file. No later crate needs to know PyTorch's snapshots.

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

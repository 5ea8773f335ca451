//! What a rehearsal's process left behind about its memory, put together to a recording.
//!
//! Two witnesses saw the same allocations in the same order. PyTorch's own history
//! ([`Snapshot`](ghostgpu_trace::Snapshot)) has the sizes that were asked for, the Python stacks and the
//! segments; the memory log ([`memory_log`](ghostgpu_session::memory_log)) has the operators, the modules,
//! the stages, and what memory turned out to be. [`assemble`] goes through both at once.
//!
//! Pure: it is given the log's bytes and the snapshot, and knows no file.

#![forbid(unsafe_code)]

mod assemble;
mod category;
mod log;
mod names;

pub use assemble::{Outside, assemble};

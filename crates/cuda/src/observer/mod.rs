//! Watches PyTorch's allocator from below, for the question of whose bytes they are.
//!
//! The allocator tells PyTorch's profiler about each block it hands out or takes back, through functions
//! of another library of PyTorch's. Those are found by name, so that ours are called instead
//! (`allocations`); they write the memory log and pass the call on. What else is in the log:
//!
//! - which operator was running: the profiler announces operators as ranges to tools for NVTX, and this
//!   library presents itself as such a tool (`ranges`);
//! - which module, stage and step: the agent says so (`agent_interface`, `context`);
//! - what libraries were given to work in: they are this library (`log::workspace`).
//!
//! Nothing of this changes what PyTorch does: it only looks.

mod allocations;
mod autograd_nodes;
mod context;
mod log;
mod ranges;
mod sequences;

pub use context::{ContextCell, context_cell};
pub use log::{exchanged, flush, is_on, start, stop, workspace, write};

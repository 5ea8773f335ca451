//! Observes PyTorch's allocator, to find out whose memory it is.
//!
//! The allocator reports each block it hands out or takes back to PyTorch's profiler, through functions
//! of another of PyTorch's libraries. Ours are found first under their names (`allocations`); they write
//! the memory log and pass the call on. The log also contains:
//!
//! - which operator was running: the profiler announces operators as ranges to NVTX tools, and this
//!   library presents itself as such a tool (`ranges`);
//! - which module, stage and step: from the agent (`agent_interface`, `context`);
//! - the workspaces that libraries were given, since this library stands in for them (`log::workspace`).
//!
//! None of this changes what PyTorch does.

mod allocations;
mod autograd_nodes;
mod context;
mod log;
mod ranges;
mod sequences;

pub use context::{ContextCell, context_cell};
pub use log::{exchanged, flush, is_on, start, stop, workspace, write};

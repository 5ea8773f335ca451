//! Whose bytes they are, and when.
//!
//! A [`Snapshot`](ghostgpu_trace::Snapshot) goes in; what was live at each moment, when it was most,
//! and who held it come out. Pure: it reads no file and prints nothing.
//!
//! - [`Ledger::new`] goes once through the events of a device. Allocations older than the recording are
//!   found by undoing the events from the final state: what is live at the end and was not allocated in
//!   the trace, and what was freed in it without having been allocated;
//! - [`Ledger::peak`] is the moment with most live bytes, [`Ledger::live_at`] what was live at any moment;
//! - [`Ledger::segments_at`] is the memory itself at a moment, block by block;
//! - [`Ledger::holders`] sums that up by line, function, stack, category or size.
//!
//! A block is live from `alloc` to `free_completed`: until then nobody else can have its memory. Bytes
//! are those that were asked for; a block's own size is at least that rounded up, see
//! [`Allocation::block_bytes`].
//!
//! A [`Recording`](ghostgpu_recording::Recording) of a rehearsal says more than a snapshot, and has a ledger of
//! its own in [`recording`].

#![forbid(unsafe_code)]

mod allocation;
mod annotations;
mod curve;
mod holders;
mod ledger;
pub mod recording;
mod rounding;
mod segments_at;
mod user_frames;

pub use allocation::{Allocation, Origin};
pub use curve::CurvePoint;
pub use holders::{By, Holder, Holders};
pub use ledger::{Ledger, Level, Moment};
pub use user_frames::{FrameOwner, UserFrames, owner_of};

//! What happened to the memory of a process's cards, and whose memory it was.
//!
//! A [`Recording`] connects the parts of GhostGPU that explain memory. `attribution` makes it from what the agent and
//! the stand-in library saw in a rehearsal, or from a memory snapshot that PyTorch wrote on any card; the ledger sums it
//! up, and reports export it. [`Source`] tells the two apart, and so what can be known. It holds facts and no
//! sums:
//!
//! - per card, every event in order ([`Event`]): an allocation begins or ends, the allocator reserves memory from the
//!   driver or releases it, memory runs out;
//! - every allocation once ([`Allocation`]): its bytes, where in the program it was made (stack, operator,
//!   module) and what it turned out to be ([`Category`]);
//! - what the script was doing, as intervals of events ([`Phase`]).
//!
//! A job that ran out of memory has two runs: the recording describes the one with unlimited memory, and keeps the other
//! as its [`FailedRun`].
//!
//! [`Recording::check`] checks its consistency, and [`file`](mod@file) describes the file format.
//!
//! Pure: it knows neither folders nor PyTorch's names for things.

#![forbid(unsafe_code)]

mod allocation;
mod answer;
mod check;
mod events;
mod failed_run;
pub mod file;
mod join;
#[cfg(feature = "made-up")]
pub mod made_up;
#[cfg(feature = "made-up")]
pub mod made_up_transformer;
mod names;
mod phases;
mod plan;
mod recording;
mod renumbering;
mod reserved_ranges;

pub use allocation::{Allocation, AllocationId, Category};
pub use answer::{Answer, AssumedSizes, DevicePeak, Gpu, NextCommand, RankPeak, Verdict, Versions};
pub use check::Inconsistency;
pub use events::{ChangeId, Event, Failure, FailureId, Pool, PoolId, SegmentChange};
pub use names::{Frame, FrameId, FrameOwner, Module, ModuleId, NameId, Names, OperatorId, StackId};
pub use phases::{NamedRange, Phase, Stage};
pub use plan::{CategoryBytes, Plan, PlanCandidate};
pub use recording::{About, CardMemory, FailedRun, Recording, Source};
pub use reserved_ranges::ReservedRanges;

//! What happened to the memory of a process's cards, and whose memory it was.
//!
//! A [`Recording`] is where the parts of GhostGPU meet that explain memory. `attribution` makes it, of what the
//! agent and the stand-in library saw in a rehearsal, or of a memory snapshot that PyTorch wrote on any card; the
//! ledger counts it, the reports draw it. [`Source`] says which, and so what can be known. It holds facts and no
//! sums:
//!
//! - per card, every event in its order ([`Event`]): an allocation begins or ends, the allocator gets
//!   memory from the driver or gives it back, memory runs out;
//! - every allocation once ([`Allocation`]): its bytes, where in the program it was made (stack, operator,
//!   module) and what it turned out to be ([`Category`]);
//! - what the script was doing, as intervals of events ([`Phase`]).
//!
//! A job that ran out of memory has two runs: the recording is of the one that had enough, and keeps the other as
//! its [`FailedRun`].
//!
//! [`Recording::check`] says whether it contradicts itself, and [`file`](mod@file) how it is written down.
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

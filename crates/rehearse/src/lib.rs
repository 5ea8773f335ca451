//! Runs a user's command once on virtual cards.
//!
//! [`Job::prepare`] checks a [`Job`] (command, card, steps, limits), so that problems are reported before anything
//! starts. A [`Rehearsal`] lists the changes of one run and its purpose. Two runners implement the trait [`Rehearse`]:
//! [`WholeRuns`] starts the command for each rehearsal, [`Forks`] continues a script that waits at a size point. Both
//! return a [`Run`], or a [`Stop`] that says why there is none. Callers pass a stop on with `?`, so an interrupted
//! rehearsal ends the whole question.
//!
//! This crate starts processes and writes to the run folder. It prints nothing, and knows neither terminals nor what a
//! run is for; an [`Observer`] is told what is going on.

mod architectures;
pub mod calibration;
mod change;
mod copies;
pub mod diagnosis;
mod environment;
mod failure;
mod findings;
mod forks;
mod in_place_of;
mod job;
mod judge;
mod last_lines;
mod layout;
mod observer;
mod outcome;
mod prepare;
pub mod process;
pub mod python;
mod ranks;
mod recorded_history;
mod recorded_memory;
mod rehearse;
mod run_dir;
mod started_ranks;
mod stop;
mod tables;
mod target;
mod whole;
mod words;
mod written_files;

pub use architectures::runs_on;
pub use change::{Change, Sizes};
pub use environment::prepended;
pub use failure::Failure;
pub use findings::Findings;
pub use forks::Forks;
pub use job::{Extent, Job, RankChoice};
pub use judge::{Completion, EXIT_DOES_NOT_FIT, EXIT_FAILURE, Run, user_frame};
pub use layout::{Layout, tricks_inject_dir};
pub use observer::{Dimension, Observer, Purpose};
pub use outcome::{OutOfMemory, Outcome, Peaks, Reason};
pub use prepare::{Prepared, cache_dir, hides_every_card};
pub use process::{Cause, Ending};
pub use ranks::ranks;
pub use recorded_memory::Memory;
pub use rehearse::{Held, Records, Rehearsal, Rehearse, Runner};
pub use run_dir::{NVIDIA_SMI, OwnedFolder, RunDir, temporary_folder};
pub use stop::Stop;
pub use target::Target;
pub use whole::{ScriptOutput, WholeRuns};
pub use words::{present_value, with_value};

/// The allocator's history of a run, which can be replayed with other memory.
pub use ghostgpu_whatif::History;

/// A trick with its options, for the agent to apply.
pub use ghostgpu_session::TrickRequest;
/// Where in a script a size is set, and what the agent saw there.
pub use ghostgpu_session::{SizePoint, SizePointReport, UnknownValues};

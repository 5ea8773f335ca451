//! Runs a user's command once on virtual cards.
//!
//! A [`Job`] (command, card, steps, limits) is checked by [`Job::prepare`]: what is wrong is said before
//! anything starts. A [`Rehearsal`] names the changes of one run and what it is for. Two things carry
//! rehearsals out, both through the trait [`Rehearse`]: [`WholeRuns`] starts the command anew each time,
//! [`Forks`] continues copies of a script that waits where its sizes begin to matter. Either way a [`Run`]
//! comes out, or a [`Stop`] that says why there is none. Callers pass a stop on with `?`: an interrupted
//! rehearsal ends everything that was to come after it.
//!
//! This crate starts processes and writes to the run's own folder. It prints nothing and knows neither
//! terminals nor why somebody wants a run; an [`Observer`] hears what is going on.

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

/// What the agent applies to what a script does.
pub use ghostgpu_session::TrickRequest;
/// Where in a script a size is set, and what the agent saw there.
pub use ghostgpu_session::{SizePoint, SizePointReport, UnknownValues};

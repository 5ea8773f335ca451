//! Questions that need several rehearsals.
//!
//! Each question is a function over [`Runner`](ghostgpu_rehearse::Runner) or
//! [`Rehearse`](ghostgpu_rehearse::Rehearse): it decides what to rehearse next, and draws conclusions from all
//! the runs. [`need`] finds the smallest memory with which a job completes; [`largest_batch`] and [`growth`]
//! are about sizes; [`candidates`] rehearses changes that may help against an out-of-memory error; [`fixes`]
//! measures what corrected lines save; [`memory_plan`] searches for the tricks that make a job fit; [`cards`]
//! finds the cards on which it fits.
//!
//! Nothing here starts a process, opens a file or prints. If any rehearsal stops, the question stops with it.
//! Results are data; the caller puts them into words, except for the sentence endings in `words`.
//!
//! ```
//! use ghostgpu_plan::{Need, need};
//! use ghostgpu_rehearse::{Ending, Findings, Rehearsal, Rehearse, Run, Stop};
//!
//! /// A job that uses no card.
//! struct Idle;
//!
//! impl Rehearse for Idle {
//!     fn rehearse(&mut self, _: &Rehearsal) -> Result<Run, Stop> {
//!         Ok(Run::new(Ending::Exited(0), Findings::default()))
//!     }
//! }
//!
//! # fn main() -> Result<(), Stop> {
//! let run = Idle.rehearse(&Rehearsal::as_it_is())?;
//! let measured = need(&mut Idle, &[], &run)?;
//! let Need::Found(smallest) = measured.need else { panic!("it ended") };
//! assert_eq!(smallest.device_bytes, 0);
//! # Ok(())
//! # }
//! ```

mod assumed_sizes;
pub mod candidates;
pub mod cards;
mod distinct_ranks;
pub mod fixes;
pub mod growth;
pub mod largest_batch;
pub mod memory_plan;
mod need;
mod placement;
mod sizes;
mod step_growth;
pub mod verdict;
mod words;

pub use assumed_sizes::assumed_sizes;
pub use distinct_ranks::{MOST_ROUNDS, distinct_ranks};
pub use need::{
    MeasuredNeed, Need, Smallest, UnknownNeed, need, need_of_distinct_ranks, peak_ranges,
};
pub use step_growth::{KeepingLine, StepGrowth};

#[cfg(test)]
mod fake_runner;

//! The contract between the three parts of a rehearsal: the command line that starts it, the
//! stand-in library inside the user's process, and the Python agent beside it.
//!
//! The command line writes one [`Session`] as JSON into the run's private folder and names that
//! file in the environment variable [`SESSION_VARIABLE`]. The library and the agent read it, and
//! leave what they saw in the same folder; [`ProcessReport`] and [`Note`] are what they write.

pub mod card_usage;
pub mod files;
pub mod memory_log;
mod report;
mod request;

/// A trick that the agent applies while the script runs.
pub use ghostgpu_tricks::Request as TrickRequest;
pub use report::{
    AllocatorPeaks, ChangeReport, ChildExit, Coverage, Covered, Declined, GroupFamily, MemoryLimit,
    NotReached, Note, OomReport, ProcessReport, RefusedCall, SizePointReport, StackFrame,
    StepPeaks, TrainingData, TrainingPart, TrickRefusal, WrittenFile,
};
pub use request::{
    ChosenRanks, CoverageRequest, CudnnSource, LoadError, RanksRequest, SESSION_VARIABLE, Session,
    SizePoint, SizePointRequest, UnknownValues,
};

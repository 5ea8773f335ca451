//! Replaying a recorded memory history through the allocator.
//!
//! [`exact`] repeats a recording under the settings it was made with, and says where the first
//! difference is, if there is one. [`Program`] keeps only what the program wanted (which bytes, on
//! which stream, for how long); [`what_if`] runs that under other settings, with another amount of
//! memory, with another release.
//!
//! A recording may begin late, leave pools unnamed, or not tell a flush from a retry. What is missing
//! is assumed and reported: every result has its [`Warning`]s.

mod checker;
mod environment;
mod exact;
mod groups;
mod images;
mod operations;
mod outcome;
mod private_pools;
mod program;
mod ranges;
mod scripted_driver;
mod sizes;
mod start;
mod warning;
mod what_if;

pub use environment::Environment;
pub use exact::{ExactRun, exact};
pub use operations::{Context, Operation, Operations, Recording};
pub use outcome::{Difference, ExactReplay};
pub use program::{Choices, Program};
pub use warning::Warning;
pub use what_if::{Failure, HeldEvents, WhatIf, WhatIfRun, what_if};

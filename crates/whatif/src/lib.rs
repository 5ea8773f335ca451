//! Replays a recorded history under another setting, another amount of memory or another release.
//!
//! A [`Snapshot`](ghostgpu_snapshot::Snapshot) goes in, and for each question a
//! [`WhatIf`](ghostgpu_allocator::replay::WhatIf) comes out. This crate connects snapshots and the
//! replica: [`History`] extracts one device from a snapshot, finds out by replaying it which release's
//! rules it follows, and answers questions; [`search`] runs many of them. It does not print.

#![forbid(unsafe_code)]

mod candidates;
mod card_driver;
mod card_size;
mod convert;
mod elsewhere;
mod history;
mod recorded;
mod search;
mod smallest;

pub use candidates::candidates;
pub use card_driver::CardDriver;
pub use convert::{DeviceRecording, segment};
pub use elsewhere::PeakRanges;
pub use history::{Basis, History, HistoryError, Known, OthersMemory, Question};

/// What others took, for [`OthersMemory`].
pub use ghostgpu_allocator::Outside;
pub use ghostgpu_allocator::replay::Choices;
pub use recorded::Recorded;
pub use search::{Found, search};

//! What another setting, another amount of memory or another release would have made of a recorded
//! history.
//!
//! A [`Snapshot`](ghostgpu_trace::Snapshot) goes in, and for each question a
//! [`WhatIf`](ghostgpu_allocator::replay::WhatIf) comes out. This is where files' words and the
//! replica's words meet: [`History`] takes one device out of a snapshot, finds out which release's
//! rules it follows by replaying it, and answers questions; [`search`] asks many of them. It knows
//! nothing of printing.

#![forbid(unsafe_code)]

mod candidates;
mod card_driver;
mod card_size;
mod convert;
mod history;
mod recorded;
mod search;

pub use candidates::candidates;
pub use card_driver::CardDriver;
pub use convert::{DeviceRecording, segment};
pub use history::{Basis, History, HistoryError, Known, Question};
pub use recorded::Recorded;
pub use search::{Found, search};

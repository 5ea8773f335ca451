//! What is in a memory snapshot.

mod check;
mod diff;
mod fragmentation;
mod show;
mod top;
mod what_helps;

pub use check::{Checks, Limits};
pub use diff::{Difference, Side};
pub use fragmentation::{AtFailure, Bound, Failed};
pub use show::Shown;
pub use top::Top;
pub use what_helps::WhatHelps;

//! What a training step has a card do, and how long that takes it.
//!
//! [`Work`] is what the stand-in library saw of one optimizer step; [`step_time`] turns it into seconds
//! for a card of given [`Rates`]. Pure.

mod work;

pub use work::{Direction, Operation, Pass, Precision, Repeated, Stretch, Work};

//! The work that a training step gives a card, and how long the card takes for it.
//!
//! [`Work`] is what the stand-in library saw of one optimizer step; [`step_time`] turns it into seconds
//! for a card of given [`Rates`]. Pure.

mod efficiency;
mod model;
mod rates;
mod work;

pub use efficiency::Efficiency;
pub use model::{CardTime, StepTime, step_time, step_time_at};
pub use rates::Rates;
pub use work::{Direction, HostCalls, Operation, Pass, Precision, Repeated, Stretch, Work};

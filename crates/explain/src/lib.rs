//! What a training left in its log when memory ran out.
//!
//! Bytes of a log go in, in any chunks ([`Reader`]); failures for want of memory come out
//! ([`Finding`]), each with its figures, its traceback and how far the training had come. [`explain`]
//! then says which [`Situation`] that is, with the numbers that led to it, and what helps.
//!
//! Nothing is printed, no file is opened, and a log of any size takes the same memory.

mod account;
mod advice;
mod amount;
mod circumstances;
mod clean;
mod collected;
mod explain;
mod families;
mod finding;
mod kind;
mod memory_prints;
mod needles;
mod pending;
mod progress;
mod ranks;
mod reader;
mod situation;
mod tail;
mod traceback;
mod window;

pub use account::{Account, Part, PartName};
pub use advice::{Advice, Effect, Trial, Unhelpful};
pub use amount::Amount;
pub use circumstances::Circumstances;
pub use clean::Writer;
pub use explain::{Explanation, explain, explain_on};
pub use finding::{FigureValue, Figures, Finding, NamedFigure, ProcessUse};
pub use kind::{Kind, Memory};
pub use memory_prints::{Point, Series};
pub use progress::Progress;
pub use ranks::{RankFailure, Ranks};
pub use reader::{Log, Reader};
pub use situation::{Reasoned, Situation, Stage, Suspect};
pub use traceback::{Frame, Traceback};

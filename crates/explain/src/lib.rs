//! Explains out-of-memory failures from the log of a training.
//!
//! [`Reader`] takes the bytes of a log in chunks of any size and finds out-of-memory failures
//! ([`Finding`]), each with its figures, its traceback and the progress of the training. [`explain`] then
//! decides which [`Situation`] the failure is in, gives the figures that show it, and says what helps.
//!
//! The crate prints nothing and opens no files, and its memory does not grow with the log.

mod account;
mod advice;
mod amount;
mod catalogue;
mod clean;
mod collected;
mod environment;
mod explain;
mod families;
mod finding;
mod kind;
mod memory_prints;
mod needles;
mod pending;
mod program;
mod progress;
mod ranks;
mod reader;
mod said;
mod situation;
mod tail;
mod traceback;
mod window;
mod wording;

pub use account::{Account, Part, PartName};
pub use advice::{Advice, Candidate, Effect, Unhelpful};
pub use amount::Amount;
pub use catalogue::{Catalogue, Language, Variable};
pub use clean::Writer;
pub use environment::Environment;
pub use explain::{Explanation, explain, explain_on};
pub use finding::{FigureValue, Figures, Finding, NamedFigure, ProcessUse};
pub use kind::{Kind, Memory};
pub use memory_prints::{Point, Series};
pub use program::{Purpose, Tool};
pub use progress::Progress;
pub use ranks::{RankFailure, Ranks};
pub use reader::{Log, Reader};
pub use situation::{Reasoned, Situation, Stage, Suspect};
pub use traceback::{Frame, Traceback};
pub use wording::{Last, Release, Wording, release_text};

//! Answers that NVIDIA's libraries gave on a real card: "how large must the workspace for this be?"
//!
//! Such sizes are the libraries' own decisions. The recorder (`crates/calibrator`) records them on a
//! machine with a card; the stand-in (`crates/cuda`) looks them up on a machine without one. Both must
//! phrase a question identically, so the phrasing is here:
//!
//! - [`Table`] is the file: a header about the card and its libraries, and one line per question;
//! - [`Question`] and [`Answer`] are the two halves of a line;
//! - [`fft`], [`deep`], `solver_questions!` and `sparse_questions!` list the functions that are asked, with
//!   the arguments that decide, and [`descriptions`] puts descriptors into words.
//!
//! - [`Canonical`] is what a question is about, and [`Compact`] holds many answers in little room.
//!
//! Declarations are written from NVIDIA's public documentation of cuFFT, cuSOLVER, cuSPARSE,
//! cuBLASLt and cuDNN.

mod canonical;
mod compact;
pub mod deep;
pub mod descriptions;
mod estimate;
pub mod fft;
mod question;
mod solver_questions;
mod sparse_questions;
mod table;

pub use canonical::Canonical;
pub use compact::{Compact, Series};
pub use question::{Answer, Question};
pub use table::{Header, ReadError, Table, file_beginning, file_line};

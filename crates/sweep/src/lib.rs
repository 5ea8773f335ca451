//! A script with many arguments on many cards.
//!
//! Arguments with their values become a [`Grid`] of command lines, each about several cards. What an earlier
//! sweep found is [`Known`]; the rest is handed to an [`Executor`], as calls of `ghostgpu cards`. What comes
//! back are the points of the answer. This crate knows neither arguments of ours nor terminals.

mod arguments;
mod executor;
mod grid;

pub use arguments::swept_arguments;
pub use executor::{Engine, Executor};
pub use grid::{Grid, Known};

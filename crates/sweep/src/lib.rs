//! A script with many arguments on many cards.
//!
//! Arguments with their values become a [`Grid`] of command lines, each for several cards. Results of earlier sweeps are
//! [`Known`]; the rest is passed to an [`Executor`] as calls of `ghostgpu cards`, whose results are the points of the
//! answer. This crate knows neither our own command line nor terminals.

mod arguments;
mod executor;
mod grid;

pub use arguments::swept_arguments;
pub use executor::{Engine, Executor};
pub use grid::{Grid, Known};

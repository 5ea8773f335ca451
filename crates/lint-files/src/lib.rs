//! The files that `ghostgpu lint` checks.
//!
//! Paths go in; [`find`] says what is below them, [`Configurations`] what holds for each, [`check`] reads one file, has `ghostgpu-lint` examine and
//! perhaps fix it, and writes it back whole or not at all; [`on_all_cores`] does that for all of them. This
//! crate knows files and threads. It knows neither arguments nor terminals, and nothing about rules.

mod configurations;
mod files;
mod one_file;
mod workers;

pub use configurations::Configurations;
pub use files::{Files, Found, find, normal};
pub use one_file::{Checked, Fixing, check};
pub use workers::on_all_cores;

//! The files that `ghostgpu lint` checks.
//!
//! [`find`] finds the files below paths, [`Configurations`] the settings for each. [`check`] reads one file, lets
//! `ghostgpu-lint` examine and possibly fix it, and writes it back completely or not at all; [`on_all_cores`] does that
//! for all files. This crate knows files and threads, but neither arguments nor terminals, and nothing about rules.

mod configurations;
mod files;
mod one_file;
mod workers;

pub use configurations::Configurations;
pub use files::{Files, Found, find, normal};
pub use one_file::{Checked, Fixing, check};
pub use workers::on_all_cores;

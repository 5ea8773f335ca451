//! `ghostgpu`: runs PyTorch training on a GPU that isn't there, and says whether it fits.
//!
//! Thin on purpose: arguments in, calls to the libraries, text out, an exit code.

mod commands;
mod failure;
mod output;
mod progress;
mod questions;
mod recording_file;
mod snapshot_file;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use commands::{CommandLine, with_clear_json};

fn main() -> ExitCode {
    match CommandLine::parse_from(with_clear_json(std::env::args_os())).execute() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let (text, code) = failure::ending(&error);
            eprint!("{text}");
            ExitCode::from(code)
        }
    }
}

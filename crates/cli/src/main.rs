//! `ghostgpu`: runs PyTorch training on a GPU that isn't there, and says whether it fits.
//!
//! Thin on purpose: arguments in, calls to the libraries, text out, an exit code.

mod answer;
mod architectures;
mod commands;
mod environment;
mod failure;
mod findings;
mod in_place_of;
mod judge;
mod last_lines;
mod layout;
mod output;
mod probing;
mod process;
mod progress;
mod python;
mod recorded_memory;
mod recording_file;
mod rehearsal;
mod report;
mod run_dir;
mod snapshot_file;
mod tables;
mod target;
mod terminal;
mod written_files;

use std::process::ExitCode;

use clap::Parser;

use commands::CommandLine;

fn main() -> ExitCode {
    match CommandLine::parse().execute() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprint!("{}", failure::render(&error));
            ExitCode::from(failure::EXIT_FAILURE)
        }
    }
}

//! `ghostgpu`: runs PyTorch training on a GPU that isn't there, and says whether it fits.
//!
//! Thin on purpose: arguments in, calls to the libraries, text out, an exit code. Under the name `nvidia-smi` it
//! speaks of the virtual cards to the script that is rehearsed.

mod commands;
mod failure;
mod nvidia_smi;
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
    if nvidia_smi::is_meant(std::env::args_os().next()) {
        return nvidia_smi::main();
    }
    match CommandLine::parse_from(with_clear_json(std::env::args_os())).execute() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let (text, code) = failure::ending(&error);
            eprint!("{text}");
            ExitCode::from(code)
        }
    }
}

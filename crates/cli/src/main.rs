//! `ghostgpu`: runs PyTorch training on a GPU that isn't there, and says whether it fits.
//!
//! Thin on purpose: it parses arguments, calls the libraries, prints text and returns an exit code. Under the name
//! `nvidia-smi` it describes the virtual cards to the rehearsed script.

mod commands;
mod exports;
mod failure;
mod output;
mod progress;
mod questions;
mod recording_file;
mod snapshot_file;
mod terminal;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use ghostgpu_rehearse::NVIDIA_SMI;

use commands::{CommandLine, with_clear_json};

fn main() -> ExitCode {
    if is_nvidia_smi(std::env::args_os().next()) {
        return nvidia_smi();
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

/// Whether the program was started under the name `nvidia-smi`.
fn is_nvidia_smi(program: Option<OsString>) -> bool {
    let program = program.unwrap_or_default();
    Path::new(&program).file_name() == Some(OsStr::new(NVIDIA_SMI))
}

fn nvidia_smi() -> ExitCode {
    match ghostgpu_nvidia_smi::answer(
        std::env::args_os()
            .map(|word| word.to_string_lossy().into_owned())
            .skip(1),
    ) {
        Ok(text) => match output::print_all(&text) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(complaint) => {
            eprintln!("{}", complaint.text);
            ExitCode::from(complaint.exit_code)
        }
    }
}

//! `ghostgpu launch`: a training on the real card, with tricks.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ghostgpu_rehearse::python::isolation;
use ghostgpu_rehearse::{Target, prepended, tricks_inject_dir};

use ghostgpu_tricks::Request;

use super::script_options::ScriptWords;
use super::trick_options::TrickOptions;
use crate::failure::Failure;
use crate::questions::patch;

/// Passes the tricks to the processes of the training; `launching.py` reads it.
const TRICKS_VARIABLE: &str = "GHOSTGPU_TRICKS";

/// Set by the installed command for itself; not passed on to the script.
const LAUNCHER_VARIABLE: &str = ghostgpu_rehearse::python::LAUNCHER_VARIABLE;

/// Run a script on the real card, with tricks that make it fit
///
/// The script is not modified. Tricks are applied inside its Python processes, including those of
/// `torchrun` and `accelerate launch`, by the same code that `ghostgpu run` rehearses. At the end, each
/// trick reports on standard error what it did. Without options, nothing is changed.
#[derive(Debug, clap::Args)]
#[command(override_usage = "\
ghostgpu launch [OPTIONS] <SCRIPT> [ARGUMENTS]...
       ghostgpu launch [OPTIONS] -m <MODULE> [ARGUMENTS]...
       ghostgpu launch [OPTIONS] -- <PROGRAM> [ARGUMENTS]...")]
#[command(after_help = "\
Options of ghostgpu come before the script. Everything after it belongs to the script.

Examples:
  ghostgpu launch --amp bf16 --checkpoint auto train.py --epochs 3
      mixed precision, and blocks of the model recomputed in backward
  ghostgpu launch --plan plan.toml -- torchrun --nproc-per-node 2 train.py
      the tricks in a plan file, in every rank
  ghostgpu run --gpu 3060 --amp bf16 train.py
      the same tricks rehearsed: does it fit?
  ghostgpu launch --patch fix.diff --amp bf16 train.py
      writes a diff instead of running; apply it with `patch -p0 < fix.diff`

Exit codes: 2 if tricks exclude each other, do not work with this script, or (--patch) cannot be \
written into it, otherwise the script's own, and 0 for a diff.")]
pub struct Arguments {
    #[command(flatten)]
    tricks: TrickOptions,

    /// The Python to use [default: the first that has torch: `python`, `python3`, or the one ghostgpu is
    /// installed in]
    #[arg(long, value_name = "PATH")]
    python: Option<OsString>,

    /// Write the tricks as a diff of the script to this file instead of launching it;
    /// `-` is standard output
    #[arg(long, value_name = "FILE")]
    patch: Option<PathBuf>,

    #[command(flatten)]
    script: ScriptWords,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let requests = arguments.tricks.requests()?;
    if let Some(path) = &arguments.patch {
        return write_patch(arguments, &requests, path);
    }
    let python = arguments.python.as_deref();
    let target = Target::from_words(&arguments.script.command(), python)?;
    let (program, words) = target.program_and_words(python)?;
    let mut command = Command::new(&program);
    command.env_remove(LAUNCHER_VARIABLE);
    if !requests.is_empty() {
        refuse_isolation(&words)?;
        let inject = tricks_inject_dir()?;
        let path = prepended(inject.as_os_str(), std::env::var_os("PYTHONPATH"));
        command
            .env(TRICKS_VARIABLE, serde_json::to_string(&requests)?)
            .env("PYTHONPATH", path);
    }
    // From here on this process is the script's own: its signals, its input, its exit code.
    let error = command.args(words).exec();
    Err(Failure::new(format!("cannot start `{}`: {error}", program.display())).into())
}

fn write_patch(arguments: &Arguments, requests: &[Request], path: &Path) -> anyhow::Result<u8> {
    if requests.is_empty() {
        let failure = Failure::new("--patch writes tricks into a script, and none was asked for");
        return Err(failure
            .with_hint("add some, such as --amp bf16, or --plan")
            .into());
    }
    let patched = patch::patch_command(&arguments.script.command(), requests)?;
    patch::show(&patched, path)?;
    Ok(0)
}

/// `python -I` and `-E` do not read the variables through which tricks get into the process.
fn refuse_isolation(words: &[OsString]) -> Result<(), Failure> {
    match isolation::without_isolation(words.to_vec()).ignores_environment {
        false => Ok(()),
        true => Err(Failure::new(
            "tricks cannot get into a Python that ignores its environment (-I, -E)",
        )
        .with_hint("leave out -I and -E")),
    }
}

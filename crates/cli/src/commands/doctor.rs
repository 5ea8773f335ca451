//! `ghostgpu doctor`: whether rehearsals work on this machine, and what to do if not.

use std::ffi::OsString;

use ghostgpu_answers::doctor;
use ghostgpu_rehearse::diagnosis::diagnose;
use ghostgpu_rehearse::process::hold_signals;

use super::answer_options::AnswerOptions;
use crate::failure::EXIT_FAILURE;
use crate::progress;

/// Check that rehearsals work on this machine, and what to do if not
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ghostgpu doctor
  ghostgpu doctor --python ~/venvs/train/bin/python

Exit codes: 0 rehearsals work here, 2 they do not.")]
pub struct Arguments {
    /// The Python to check [default: the first that has torch: `python`, `python3`, or the one ghostgpu
    /// is installed in]
    #[arg(long, value_name = "PATH")]
    python: Option<OsString>,

    #[command(flatten)]
    answer: AnswerOptions,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    hold_signals();
    let output = arguments.answer.prepare()?;
    let diagnosis = progress::during("checking this machine", || {
        diagnose(arguments.python.as_deref())
    })?;
    output.answer(
        |style| doctor::text(&diagnosis, style),
        || doctor::json(&diagnosis),
    )?;
    Ok(if diagnosis.is_usable { 0 } else { EXIT_FAILURE })
}

//! `ghostgpu calibrate`: runs a script on a real card and writes down the sizes its libraries answer.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::script_options::ScriptWords;
use crate::failure::Failure;
use crate::output::Output;
use crate::terminal;
use ghostgpu_rehearse::calibration::{Recorded, record, refuse_without_card, table_to_add_to};
use ghostgpu_rehearse::{Cause, Stop};
use ghostgpu_text::{parse_duration, seconds};

/// Run a script on a real card and record the workspace sizes of its libraries
///
/// The script runs normally with the real CUDA libraries. The sizes that cuFFT, cuSOLVER, cuSPARSE,
/// cuBLASLt and cuDNN report are written to a table, which `ghostgpu run --library-sizes FILE` uses on
/// machines without the card.
#[derive(Debug, clap::Args)]
#[command(override_usage = "\
ghostgpu calibrate -o <FILE> [OPTIONS] <SCRIPT> [ARGUMENTS]...
       ghostgpu calibrate -o <FILE> [OPTIONS] -- <PROGRAM> [ARGUMENTS]...")]
#[command(after_help = "\
Examples:
  ghostgpu calibrate -o a100.tsv train.py --steps 1
  ghostgpu calibrate -o a100.tsv -- python -m mypkg.train --config c.yaml

The exit code is the script's own, or 2 if nothing was recorded.")]
pub struct Arguments {
    /// The table to write; an existing one is added to
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,

    /// The Python to use [default: the first that has torch: `python`, `python3`, or the one ghostgpu is
    /// installed in]
    #[arg(long, value_name = "PATH")]
    python: Option<OsString>,

    /// Stop the script after this time: `90s`, `5m`, `1h30m`
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,

    #[command(flatten)]
    script: ScriptWords,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    refuse_without_card()?;
    let mut table = table_to_add_to(&arguments.out)?;
    let output = Output::prepare(&arguments.out)?;
    let python = arguments.python.as_deref();
    let Recorded {
        answers,
        supervised,
    } = record(&arguments.script.command(), python, arguments.timeout)?;
    let recorded = answers.len();
    if recorded > 0 {
        let before = table.len();
        table.extend(answers);
        output.write(&table.to_text())?;
        terminal::note(format_args!(
            "recorded {recorded} answers, {} of them new, to {}",
            table.len() - before,
            arguments.out.display()
        ));
    } else {
        terminal::note("nothing was recorded, and nothing written");
    }
    match supervised.cause {
        Cause::Interrupted(signal) => Err(Stop::Interrupted(signal).into()),
        Cause::TimedOut => {
            let limit = arguments.timeout.map(seconds).unwrap_or_default();
            let message = format!("the script did not end within {limit} (--timeout)");
            Err(Failure::new(message).into())
        }
        Cause::Own if supervised.ending.is_success() && recorded == 0 => {
            let message = "the script asked none of the recorded libraries on a real card";
            Err(Failure::new(message).into())
        }
        Cause::Own => Ok(supervised.ending.shell_code()),
    }
}

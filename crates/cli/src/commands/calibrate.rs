//! `ghostgpu calibrate`: runs a script on a real card and writes down the sizes its libraries answer.

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::script_options::ScriptWords;
use crate::failure::Failure;
use crate::output::Output;
use crate::terminal;
use anyhow::Context;
use ghostgpu_library_sizes::Table;
use ghostgpu_rehearse::process::{Cause, hold_signals, supervise};
use ghostgpu_rehearse::python::{Search, find_interpreter};
use ghostgpu_rehearse::{
    CALIBRATOR_NAME, Stop, Target, calibrator_library, preload_value, runnable, temporary_folder,
};
use ghostgpu_session::SESSION_VARIABLE;
use ghostgpu_text::{parse_duration, seconds};

/// The folder in which each process of the script leaves its part of the table.
const FOLDER_VARIABLE: &str = "GHOSTGPU_CALIBRATION_DIR";

/// Run a script on a real card and record how large its libraries' workspaces are
///
/// Every call goes to the real CUDA libraries and the script computes what it always does. What
/// cuFFT, cuSOLVER, cuSPARSE, cuBLASLt and cuDNN answer about sizes is written to a table that
/// `ghostgpu run --library-sizes FILE` uses on machines without the card.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "\
ghostgpu calibrate -o <FILE> [OPTIONS] <SCRIPT> [ARGUMENTS]...
       ghostgpu calibrate -o <FILE> [OPTIONS] -- <PROGRAM> [ARGUMENTS]...")]
#[command(after_help = "\
Examples:
  ghostgpu calibrate -o a100.tsv train.py --steps 1
  ghostgpu calibrate -o a100.tsv -- python -m mypkg.train --config c.yaml

The exit code is the script's own, or 2 if nothing was recorded.")]
pub struct Arguments {
    /// Where the sizes go; a file that exists is added to
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,

    /// The Python to use [default: the first with torch of `python` and `python3` on the PATH and the
    /// one that ghostgpu is installed in]
    #[arg(long, value_name = "PATH")]
    python: Option<OsString>,

    /// End the script if it runs longer than this: `90s`, `5m`, `1h30m`
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,

    #[command(flatten)]
    script: ScriptWords,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    if !has_card(Path::new("/")) && std::env::var_os(SESSION_VARIABLE).is_none() {
        return Err(no_card().into());
    }
    let target = Target::from_words(&arguments.script.command(), arguments.python.as_deref())?;
    let mut table = present_table(&arguments.out)?;
    let output = Output::prepare(&arguments.out)?;
    let calibrator = calibrator_library()?;
    let (program, words) = program_and_words(arguments, target)?;
    hold_signals();
    let folder = temporary_folder()?;
    // The loader splits its list at spaces and colons, which an installation's path may have.
    let preload = folder.path().join(CALIBRATOR_NAME);
    symlink(&calibrator, &preload).context("cannot write into the folder of the recording")?;
    let mut command = Command::new(&program);
    command
        .args(words)
        .env(FOLDER_VARIABLE, folder.path())
        .env("LD_PRELOAD", preload_value(&preload));
    let supervised = supervise(&mut command, arguments.timeout, &mut |_| {})
        .map_err(|error| Failure::new(format!("cannot start `{}`: {error}", program.display())))?;
    let before = table.len();
    let recorded = gather(folder.path(), &mut table)?;
    if recorded > 0 {
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

/// Whether NVIDIA's driver has a card here: on Linux, in WSL, or on a Jetson. The script is not started to find
/// that out.
fn has_card(root: &Path) -> bool {
    let is_card = |name: &str| {
        let number = name.strip_prefix("nvidia").unwrap_or_default();
        let is_numbered = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_numbered || matches!(name, "dxg" | "nvgpu" | "nvhost-gpu")
    };
    let devices = std::fs::read_dir(root.join("dev")).into_iter().flatten();
    devices
        .flatten()
        .any(|entry| is_card(&entry.file_name().to_string_lossy()))
}

fn no_card() -> Failure {
    Failure::new("there is no NVIDIA card in this machine, and sizes are recorded on a real one").with_hint(
        "nothing was run; run it where the card is, and give the file to `ghostgpu run --library-sizes FILE` \
         here",
    )
}

/// The table that is to be added to, or an empty one.
fn present_table(path: &Path) -> Result<Table, Failure> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) if !text.is_empty() => text,
        // Whether it can be written is found out, and said, next.
        _ => return Ok(Table::default()),
    };
    Table::read(&text).map_err(|error| {
        Failure::new(format!("{} is not a table: {error}", path.display()))
            .with_hint("name another file, or remove it")
    })
}

fn program_and_words(
    arguments: &Arguments,
    target: Target,
) -> Result<(PathBuf, Vec<OsString>), Stop> {
    let search = Search {
        named: arguments.python.as_deref(),
        ..Search::default()
    };
    let (word, words) = match target {
        Target::Script { words } => (None, runnable(words)),
        Target::Python { word, words } => (word, words),
        Target::Program { program, words, .. } => return Ok((program, words)),
    };
    let interpreter = find_interpreter(&Search {
        word: word.as_deref(),
        ..search
    })?;
    Ok((interpreter.executable, words))
}

/// Adds what every process has left; returns how many different answers that were.
fn gather(folder: &Path, table: &mut Table) -> anyhow::Result<usize> {
    let mut recorded = Table::default();
    let entries = std::fs::read_dir(folder).context("cannot read what was recorded")?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "tsv"))
        .collect();
    files.sort();
    for file in files {
        let text = std::fs::read_to_string(&file)?;
        // A process that was killed may have left half a line.
        let whole_lines = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        if let Ok(part) = Table::read(whole_lines) {
            recorded.extend(part);
        }
    }
    let count = recorded.len();
    table.extend(recorded);
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_processes_left_becomes_one_table() {
        let folder = tempfile::tempdir().expect("folder");
        let write = |name: &str, rows: &str| {
            let text = format!("# ghostgpu table 1\n# card\tNVIDIA H200\n{rows}");
            std::fs::write(folder.path().join(name), text).expect("file");
        };
        write("table-1.tsv", "f\tm=1\tx=1\nf\tm=2\tx=2\n");
        write("table-2.tsv", "f\tm=2\tx=2\nf\tm=3\tx=3\nf\tm=4\tx");
        write("other.txt", "f\tm=9\tx=9\n");
        let mut table = Table::default();
        assert_eq!(gather(folder.path(), &mut table).expect("read"), 3);
        assert_eq!(
            table.to_text(),
            "# ghostgpu table 1\n# card\tNVIDIA H200\nf\tm=1\tx=1\nf\tm=2\tx=2\nf\tm=3\tx=3\n"
        );
    }

    #[test]
    fn a_card_is_a_device_with_a_number() {
        let root = tempfile::tempdir().expect("folder");
        assert!(!has_card(root.path()));
        let dev = root.path().join("dev");
        std::fs::create_dir(&dev).expect("folder");
        for (name, expected) in [
            ("nvidiactl", false),
            ("nvidia-uvm", false),
            ("null", false),
            ("nvidia0", true),
        ] {
            std::fs::write(dev.join(name), "").expect("file");
            assert_eq!(has_card(root.path()), expected, "{name}");
        }
    }

    #[test]
    fn a_file_that_is_no_table_is_not_replaced() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("notes.txt");
        std::fs::write(&path, "my notes\n").expect("file");
        let failure = present_table(&path).expect_err("not a table");
        assert!(failure.to_string().contains("is not a table"));
    }
}

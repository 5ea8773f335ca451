//! Runs a command on a real card and collects the sizes that its libraries report.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use ghostgpu_library_sizes::Table;
use ghostgpu_session::SESSION_VARIABLE;

use crate::environment::preload_value;
use crate::failure::Failure;
use crate::layout::{CALIBRATOR_NAME, calibrator_library};
use crate::process::{Supervised, hold_signals, supervise};
use crate::{Target, temporary_folder};

/// The folder in which each process of the script leaves its part of the table.
const FOLDER_VARIABLE: &str = "GHOSTGPU_CALIBRATION_DIR";

/// What was recorded in a run, and how it ended.
#[derive(Debug)]
pub struct Recorded {
    /// Every different answer once.
    pub answers: Table,
    pub supervised: Supervised,
}

/// Runs a command as it is, with the calibrator between it and CUDA's libraries.
pub fn record(
    words: &[OsString],
    python: Option<&OsStr>,
    timeout: Option<Duration>,
) -> anyhow::Result<Recorded> {
    let target = Target::from_words(words, python)?;
    let calibrator = calibrator_library()?;
    let (program, words) = target.program_and_words(python)?;
    hold_signals();
    let folder = temporary_folder()?;
    // The loader splits `LD_PRELOAD` at spaces and colons, which the installation's path may contain.
    let preload = folder.path().join(CALIBRATOR_NAME);
    symlink(&calibrator, &preload).context("cannot write into the folder of the recording")?;
    let mut command = Command::new(&program);
    command
        .args(words)
        .env(FOLDER_VARIABLE, folder.path())
        .env("LD_PRELOAD", preload_value(&preload));
    let supervised = supervise(&mut command, timeout, &mut |_| {})
        .map_err(|error| Failure::new(format!("cannot start `{}`: {error}", program.display())))?;
    Ok(Recorded {
        answers: gather(folder.path())?,
        supervised,
    })
}

/// Fails if there is no card to record sizes on. A virtual card is accepted, so that the calibrator can be tested.
pub fn refuse_without_card() -> Result<(), Failure> {
    if has_card(Path::new("/")) || std::env::var_os(SESSION_VARIABLE).is_some() {
        return Ok(());
    }
    Err(Failure::new("there is no NVIDIA card in this machine, and sizes are recorded on a real one").with_hint(
        "nothing was run; run it where the card is, and give the file to `ghostgpu run --library-sizes FILE` \
         here",
    ))
}

/// Whether this machine has an NVIDIA card (Linux, WSL or Jetson), without starting the script.
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

/// The existing table to extend, or an empty one.
pub fn table_to_add_to(path: &Path) -> Result<Table, Failure> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) if !text.is_empty() => text,
        // An unreadable file is reported when the table is written.
        _ => return Ok(Table::default()),
    };
    Table::read(&text).map_err(|error| {
        Failure::new(format!("{} is not a table: {error}", path.display()))
            .with_hint("name another file, or remove it")
    })
}

/// Joins what all processes recorded into one table.
fn gather(folder: &Path) -> anyhow::Result<Table> {
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
    Ok(recorded)
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
        assert_eq!(
            gather(folder.path()).expect("read").to_text(),
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
        let failure = table_to_add_to(&path).expect_err("not a table");
        assert!(failure.to_string().contains("is not a table"));
    }
}

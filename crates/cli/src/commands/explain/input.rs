//! The log: a file or standard input, read in pieces.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::Path;

use ghostgpu_explain::{Log, Reader};

use crate::failure::Failure;
use crate::progress::Progress;

/// The size of a piece: large enough to be fast, small enough not to matter.
const PIECE: usize = 1 << 18;

/// The name of the log in sentences.
pub fn name_of(file: Option<&Path>) -> String {
    match file {
        Some(path) if path != Path::new("-") => format!("`{}`", path.display()),
        _ => "standard input".to_owned(),
    }
}

pub fn read_log(file: Option<&Path>) -> Result<Log, Failure> {
    match file {
        Some(path) if path != Path::new("-") => read_file(path),
        _ => read_standard_input(),
    }
}

fn read_file(path: &Path) -> Result<Log, Failure> {
    let cannot =
        |error: io::Error| Failure::new(format!("cannot read `{}`: {error}", path.display()));
    let file = File::open(path).map_err(cannot)?;
    let metadata = file.metadata().map_err(cannot)?;
    if metadata.is_dir() {
        return Err(
            Failure::new(format!("`{}` is a folder, not a log", path.display()))
                .with_hint("name the file that has the error in it"),
        );
    }
    read(file, metadata.len()).map_err(cannot)
}

fn read_standard_input() -> Result<Log, Failure> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return Err(
            Failure::new("no log was named, and none is piped in").with_hint(
                "`ghostgpu explain error.log`, or `python train.py 2>&1 | ghostgpu explain`",
            ),
        );
    }
    let cannot = |error: io::Error| Failure::new(format!("cannot read standard input: {error}"));
    read(stdin.lock(), 0).map_err(cannot)
}

/// `size` is 0 if unknown.
fn read(mut input: impl Read, size: u64) -> io::Result<Log> {
    let total_mb = usize::try_from(size >> 20).unwrap_or(0);
    let progress = match total_mb {
        0 => Progress::new("reading the log", 0),
        _ => Progress::new("reading the log, MiB", total_mb),
    };
    let mut reader = Reader::default();
    let mut piece = vec![0; PIECE];
    let mut seen: u64 = 0;
    loop {
        let count = match input.read(&mut piece) {
            Ok(0) => return Ok(reader.finish()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        reader.push(&piece[..count]);
        seen += count as u64;
        match total_mb {
            0 => progress.bytes(seen),
            _ => progress.done(usize::try_from(seen >> 20).unwrap_or(total_mb)),
        }
    }
}

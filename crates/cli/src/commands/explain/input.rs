//! The log: a file or standard input, read in pieces.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use ghostgpu_explain::{Log, Reader};

use crate::failure::Failure;
use crate::progress::Progress;
use crate::terminal::shows_progress;
use ghostgpu_text::human;

/// Large enough to be quick, small enough not to matter.
const PIECE: usize = 1 << 18;

/// What the log is called in sentences.
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

/// `size` is 0 where it is not known.
fn read(mut input: impl Read, size: u64) -> io::Result<Log> {
    let total_mb = usize::try_from(size >> 20).unwrap_or(0);
    let progress = (total_mb > 0).then(|| Progress::new("reading the log, MiB", total_mb));
    let mut counter = Counter::new(size == 0);
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
        if let Some(progress) = &progress {
            progress.done(usize::try_from(seen >> 20).unwrap_or(total_mb));
        }
        counter.show(seen);
    }
}

/// How much has come through a pipe whose end nobody knows, on a terminal.
struct Counter {
    is_shown: bool,
    last: Option<Instant>,
}

impl Counter {
    const PAUSE: Duration = Duration::from_secs(1);

    fn new(is_wanted: bool) -> Self {
        let is_watched = is_wanted && shows_progress();
        Self {
            is_shown: false,
            last: is_watched.then(Instant::now),
        }
    }

    fn show(&mut self, bytes: u64) {
        let is_due = self.last.is_some_and(|last| last.elapsed() >= Self::PAUSE);
        if is_due {
            self.last = Some(Instant::now());
            self.is_shown = true;
            let text = format!("\rghostgpu: reading standard input, {}\x1b[K", human(bytes));
            // A terminal that is gone takes no progress, and needs none.
            let _ = io::stderr().write_all(text.as_bytes());
        }
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = io::stderr().write_all(b"\r\x1b[K");
        }
    }
}

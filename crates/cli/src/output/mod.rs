//! Result files: checked before the run, and written completely or not at all.

mod partial;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::failure::Failure;
use crate::terminal::Stream;
use partial::Partial;

/// Where a result will go.
#[derive(Debug)]
pub enum Output {
    Stdout,
    /// A file that gets its name when it is complete.
    Replace(PathBuf),
    /// Something that cannot be replaced: a pipe or a device such as `/dev/null`.
    Special(PathBuf),
}

impl Output {
    /// Makes sure that `path` can be written, without writing to it; `-` is standard output.
    pub fn prepare(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::Stdout);
        }
        Self::try_prepare(path).map_err(|error| cannot_write(path, &error))
    }

    fn try_prepare(path: &Path) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        // For a link, its target is replaced and the link stays.
        let path = std::fs::canonicalize(&path).unwrap_or(path);
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(metadata) if !metadata.is_file() => return Ok(Self::Special(path)),
            Ok(_) => {
                // Renaming would bypass a write protection that the user has set.
                std::fs::OpenOptions::new().append(true).open(&path)?;
            }
            Err(_) => {}
        }
        // Dropped at once, so that nothing is left behind if this process is killed during the run.
        Partial::beside(&path)?;
        Ok(Self::Replace(path))
    }

    pub fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout)
    }

    /// Writes the whole text.
    pub fn write(self, text: &str) -> anyhow::Result<()> {
        self.write_with(|out| Ok(out.write_all(text.as_bytes())?))
    }

    /// Writes what `fill` writes. The file appears only when it is complete.
    pub fn write_with(
        self,
        fill: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        match self {
            Self::Stdout => to_standard_output(fill),
            Self::Special(path) => {
                let cannot = || format!("cannot write to {}", path.display());
                let file = std::fs::OpenOptions::new().write(true).open(&path);
                let mut out = io::BufWriter::new(file.with_context(cannot)?);
                fill(&mut out)
                    .and_then(|()| Ok(out.flush()?))
                    .with_context(cannot)
            }
            Self::Replace(path) => {
                let cannot = || format!("cannot write to {}", path.display());
                let mut out = io::BufWriter::new(Partial::beside(&path).with_context(cannot)?);
                fill(&mut out).with_context(cannot)?;
                let partial = out.into_inner().map_err(io::IntoInnerError::into_error);
                partial
                    .with_context(cannot)?
                    .persist(&path)
                    .with_context(cannot)
            }
        }
    }
}

/// Makes sure that other processes can write to this file, and returns its full path.
pub fn prepare_appendable(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .and_then(|path| {
            std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(&path)?;
            Ok(path)
        })
        .map_err(|error| cannot_write(path, &error))
}

/// Prints to standard output; a closed pipe is not an error.
pub fn print_all(text: &str) -> anyhow::Result<()> {
    to_standard_output(|out| Ok(out.write_all(text.as_bytes())?))
}

/// Prints text to standard output, or to standard error if JSON goes to standard output.
pub fn print_beside(json: Option<&Output>, text: &str) -> anyhow::Result<()> {
    match stream_beside(json) {
        Stream::Output => print_all(text),
        Stream::Error => {
            // A closed pipe is not an error here either.
            let _ = io::stderr().write_all(text.as_bytes());
            Ok(())
        }
    }
}

/// Where text goes if this JSON is written.
pub fn stream_beside(json: Option<&Output>) -> Stream {
    match json.is_some_and(Output::is_stdout) {
        true => Stream::Error,
        false => Stream::Output,
    }
}

fn to_standard_output(
    fill: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let result = fill(&mut out).and_then(|()| Ok(out.flush()?));
    match result {
        Err(error) if !is_closed_pipe(&error) => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>();
        io.is_some_and(|io| io.kind() == io::ErrorKind::BrokenPipe)
    })
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot write to `{}`: {error}", path.display()))
        .with_hint("nothing was run; name a file in a folder that exists and can be written")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .expect("folder")
            .map(|entry| {
                entry
                    .expect("entry")
                    .file_name()
                    .into_string()
                    .expect("text")
            })
            .collect();
        names.sort();
        names
    }

    #[test]
    fn an_abandoned_output_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("out.json");
        std::fs::write(&path, "old").expect("file");
        let prepared = Output::prepare(&path).expect("writable");
        assert_eq!(names(folder.path()), ["out.json"], "while the script runs");
        drop(prepared);
        assert_eq!(std::fs::read_to_string(&path).expect("file"), "old");
        assert_eq!(names(folder.path()), ["out.json"]);
    }

    #[test]
    fn a_written_output_replaces_the_file_whole() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("out.json");
        std::fs::write(&path, "a longer old text").expect("file");
        let output = Output::prepare(&path).expect("writable");
        output.write("new").expect("written");
        assert_eq!(std::fs::read_to_string(&path).expect("file"), "new");
        assert_eq!(names(folder.path()), ["out.json"]);
    }

    #[test]
    fn a_link_is_written_through() {
        let folder = tempfile::tempdir().expect("folder");
        let target = folder.path().join("target.json");
        let link = folder.path().join("link.json");
        std::fs::write(&target, "").expect("file");
        std::os::unix::fs::symlink(&target, &link).expect("link");
        Output::prepare(&link)
            .expect("writable")
            .write("new")
            .expect("written");
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&target).expect("file"), "new");
    }

    #[test]
    fn what_cannot_be_written_is_refused_before_anything_happens() {
        let folder = tempfile::tempdir().expect("folder");
        assert!(Output::prepare(folder.path()).is_err());
        assert!(Output::prepare(&folder.path().join("missing/out.json")).is_err());
        assert!(prepare_appendable(&folder.path().join("missing/trace")).is_err());
        assert!(matches!(
            Output::prepare(Path::new("/dev/null")),
            Ok(Output::Special(_))
        ));
    }
}

//! A recording of a rehearsal, from a file.

use std::fs::File;
use std::path::Path;

use ghostgpu_recording::Recording;
use ghostgpu_recording::file::{FileError, Limits, read};

use crate::failure::Failure;

/// Opens a recording; what is none is refused in one sentence.
pub fn open(path: &Path) -> Result<Recording, Failure> {
    let cannot_open = |error: &FileError| {
        let failure = Failure::new(format!("cannot read `{}`: {error}", path.display()));
        match error {
            FileError::Io(_) => failure,
            FileError::OtherVersion { .. } => failure.with_hint(
                "another version of GhostGPU wrote it: open it with that one, or record again",
            ),
            _ => failure.with_hint("a recording is what `ghostgpu run --record FILE` writes"),
        }
    };
    let file = File::open(path).map_err(|error| cannot_open(&error.into()))?;
    read(file, Limits::default()).map_err(|error| cannot_open(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ghostgpu_recording::made_up::{MadeUp, recording};

    #[test]
    fn what_was_written_is_opened() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("a.ghost");
        let training = recording(MadeUp {
            layers: 3,
            steps: 2,
        });
        let file = File::create(&path).expect("writable");
        ghostgpu_recording::file::write(&training, file).expect("written");
        assert_eq!(open(&path), Ok(training));
    }
}

//! Opens a recording.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use ghostgpu_recording::Recording;
use ghostgpu_recording::file::{FileError, Limits, is_recording, read};

use crate::failure::Failure;
use crate::progress;
use crate::snapshot_file;

/// Opens a recording of a rehearsal, or a memory snapshot as one; any other file is refused with one sentence.
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
    let mut file = File::open(path).map_err(|error| cannot_open(&error.into()))?;
    // A folder can be opened but not read; the snapshot reader reports that.
    let mut first = Vec::new();
    let is_recording = match file.by_ref().take(8).read_to_end(&mut first) {
        Ok(_) => is_recording(&first),
        Err(_) => false,
    };
    if !is_recording {
        let mut snapshot = snapshot_file::open(path).map_err(|failure| {
            failure.with_hint(
                "a report is made of what `ghostgpu run --record FILE` or \
                 torch.cuda.memory._dump_snapshot(\"file.pickle\") writes",
            )
        })?;
        return Ok(snapshot_file::recording_of(&mut snapshot, path));
    }
    let recording = progress::during("reading the recording", || {
        read(first.as_slice().chain(file), Limits::default())
    });
    recording.map_err(|error| cannot_open(&error))
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

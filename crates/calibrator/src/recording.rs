//! The table of this process: each answer once, appended to a file as soon as it is known.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use ghostgpu_library_sizes::{Answer, Question, file_beginning, file_line};

use crate::card;

/// The folder in which each process leaves its table; without it nothing is recorded.
const FOLDER_VARIABLE: &str = "GHOSTGPU_CALIBRATION_DIR";

/// Stands for a descriptor whose creation was not seen.
const UNKNOWN: &str = "=unknown";

struct Recording {
    /// A forked child has its parent's memory, but needs a file of its own.
    process: u32,
    file: File,
    known: HashMap<Question, Answer>,
}

static RECORDING: Mutex<Option<Recording>> = Mutex::new(None);

/// Writes down an answer, unless it is known already.
///
/// A question can be answered in parts: PyTorch asks for the workspace and the reserve of a recurrent
/// network one at a time. The line is then written again with all that is known; the reader keeps the last.
///
/// A question about a descriptor that the recorder did not see created is not recorded.
pub fn record(question: Question, answer: Answer) {
    if question.arguments.contains(UNKNOWN) {
        return;
    }
    let mut recording = RECORDING.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if recording.as_ref().is_none_or(|one| one.process != process) {
        *recording = start(process);
    }
    let Some(recording) = recording.as_mut() else {
        return;
    };
    let before = recording.known.get(&question);
    let answer = before.map_or(answer.clone(), |before| before.updated_with(&answer));
    if before == Some(&answer) {
        return;
    }
    // A line that cannot be written is lost, since the program itself must not be disturbed.
    let _ = recording
        .file
        .write_all(file_line(&question, &answer).as_bytes());
    recording.known.insert(question, answer);
}

fn start(process: u32) -> Option<Recording> {
    let folder = PathBuf::from(std::env::var_os(FOLDER_VARIABLE)?);
    let path = folder.join(format!("table-{process}.tsv"));
    let file = OpenOptions::new().create(true).append(true).open(&path);
    let mut file = match file {
        Ok(file) => file,
        Err(error) => {
            eprintln!("ghostgpu: cannot record to {}: {error}", path.display());
            return None;
        }
    };
    let _ = file.write_all(file_beginning(&card::header()).as_bytes());
    Some(Recording {
        process,
        file,
        known: HashMap::new(),
    })
}

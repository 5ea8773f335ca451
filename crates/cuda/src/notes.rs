//! What the library has to tell the user, written to the run's folder as it happens.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::Mutex;

use ghostgpu_session::Note;

use crate::state;

static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Records a sentence on which the answer rests, once per process.
pub fn assume(text: &str) {
    write_once(&Note::Assumption {
        text: text.to_owned(),
    });
}

/// Records that a function was called which is not simulated, once per process.
pub fn refused(library: &str, function: &str) {
    write_once(&Note::Refused {
        function: function.to_owned(),
        library: library.to_owned(),
    });
}

fn write_once(note: &Note) {
    let Some(session) = state::session() else {
        return;
    };
    let Ok(mut line) = serde_json::to_string(note) else {
        return;
    };
    let Ok(mut said) = SAID.lock() else { return };
    if !said.insert(line.clone()) {
        return;
    }
    line.push('\n');
    let path = session
        .run_dir
        .join(format!("notes-{}.jsonl", std::process::id()));
    // A note that cannot be written is lost; the script's own run must not suffer for it.
    if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path) {
        let _ = file.write_all(line.as_bytes());
    }
}

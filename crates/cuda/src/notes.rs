//! Notes for the user, written to the run folder as things happen.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::Mutex;

use ghostgpu_session::Note;

use crate::state;

static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Records an assumption on which the answer rests, once per process.
pub fn assume(text: &str) {
    write_once(&Note::Assumption {
        text: text.to_owned(),
    });
}

/// Records that the ranks cannot continue together; `is_consequence` if that is only because another rank ended.
pub fn ranks_cannot_go_on(text: &str, is_consequence: bool) {
    write_once(&Note::Ranks {
        text: text.to_owned(),
        is_consequence,
    });
}

/// Records which rank of its job this process is.
pub fn is_rank(rank: u32) {
    write_once(&Note::Rank {
        rank,
        process: std::process::id(),
    });
}

/// Records a call of a function that is not simulated, once per process.
pub fn refused(library: &str, function: &str) {
    write_once(&Note::Refused {
        function: function.to_owned(),
        library: library.to_owned(),
    });
}

fn write_once(note: &Note) {
    if state::session().is_none() {
        return;
    }
    let Ok(line) = serde_json::to_string(note) else {
        return;
    };
    let Ok(mut said) = SAID.lock() else { return };
    if !said.insert(line.clone()) {
        return;
    }
    append(&(line + "\n"));
}

/// Writes all notes so far again, into the folder of the run that this process has moved to.
pub fn say_again() {
    let Ok(said) = SAID.lock() else { return };
    let lines: String = said.iter().map(|line| format!("{line}\n")).collect();
    if !lines.is_empty() {
        append(&lines);
    }
}

/// A note that cannot be written is lost: it must not disturb the script.
fn append(lines: &str) {
    let Some(run_dir) = state::run_dir() else {
        return;
    };
    let path = run_dir.join(format!("notes-{}.jsonl", std::process::id()));
    if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path) {
        let _ = file.write_all(lines.as_bytes());
    }
}

//! The end of what a script printed, for the reader of a failure.

use std::path::Path;

/// Enough for a traceback's end.
const SHOWN: usize = 15;

/// Shows the last lines of a file on standard error; a file that is not there has none.
pub fn show_last_lines(log: &Path) {
    let bytes = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    for line in &lines[lines.len().saturating_sub(SHOWN)..] {
        eprintln!("    {line}");
    }
}

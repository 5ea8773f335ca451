//! The end of a script's output, shown when it fails.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// How many lines are kept: enough for the end of a traceback.
const KEPT: usize = 15;

/// How much of the end of the output is read: more than that many lines usually have.
const LOOKED_AT_BYTES: u64 = 1 << 16;

/// The last lines of a file; empty if it does not exist.
pub fn last_lines(log: &Path) -> Vec<String> {
    let text = end_of(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(KEPT)..];
    last.iter().map(|line| (*line).to_owned()).collect()
}

fn end_of(log: &Path) -> std::io::Result<String> {
    let mut file = File::open(log)?;
    let start = file.metadata()?.len().saturating_sub(LOOKED_AT_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_output_is_kept_and_a_missing_one_is_empty() {
        let folder = tempfile::tempdir().expect("folder");
        let log = folder.path().join("output.txt");
        let text: String = (0..50_000).map(|line| format!("line {line}\n")).collect();
        std::fs::write(&log, text).expect("file");
        let kept = last_lines(&log);
        assert_eq!(kept.len(), KEPT);
        assert_eq!(kept.last().map(String::as_str), Some("line 49999"));
        assert!(last_lines(Path::new("/no/such/file")).is_empty());
    }
}

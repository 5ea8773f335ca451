//! Runs another text in place of the user's script, which stays as it is.

use std::ffi::OsString;
use std::path::Path;

/// Runs a text in place of a script.
const IN_PLACE_OF: &str = include_str!("in_place_of.py");

/// A python's arguments with the text in `file` in place of the script, which is the first of them.
pub fn in_place_of_the_script(words: &[OsString], file: &Path) -> Vec<OsString> {
    let mut changed: Vec<OsString> = vec!["-c".into(), IN_PLACE_OF.into(), file.into()];
    changed.extend_from_slice(words);
    changed
}

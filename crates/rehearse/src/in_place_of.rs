//! Runs another text in place of the user's script, whose file stays unchanged; and notebooks, which python cannot run.

use std::ffi::OsString;
use std::path::Path;

/// Runs a text in place of a script.
const IN_PLACE_OF: &str = include_str!("in_place_of.py");

/// Runs the code cells of a notebook.
const IN_PLACE_OF_NOTEBOOK: &str = include_str!("in_place_of_notebook.py");

/// Python's arguments with the text in `file` in place of the script, which is the first of them.
pub fn in_place_of_the_script(words: &[OsString], file: &Path) -> Vec<OsString> {
    let is_notebook = words
        .first()
        .is_some_and(|word| is_notebook(Path::new(word)));
    let program = match is_notebook {
        true => IN_PLACE_OF_NOTEBOOK,
        false => IN_PLACE_OF,
    };
    let mut changed: Vec<OsString> = vec!["-c".into(), program.into(), file.into()];
    changed.extend_from_slice(words);
    changed
}

/// Python's arguments, rewritten if the script, which is the first of them, is a notebook.
pub fn runnable(words: Vec<OsString>) -> Vec<OsString> {
    match words.first().cloned() {
        Some(script) if is_notebook(Path::new(&script)) => {
            in_place_of_the_script(&words, Path::new(&script))
        }
        _ => words,
    }
}

pub fn is_notebook(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("ipynb"))
}

//! Chooses the interpreter: the one that was named, or the first with torch in it.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::inspect::{Interpreter, inspect};
use crate::environment::USUAL_PATH;
use crate::failure::Failure;
use crate::stop::Stop;

/// The Python that started us, set by the installed `ghostgpu` command.
pub const LAUNCHER_VARIABLE: &str = "GHOSTGPU_LAUNCHER_PYTHON";

/// What the search for an interpreter starts from.
#[derive(Clone, Debug, Default)]
pub struct Search<'a> {
    /// The user's `--python`.
    pub named: Option<&'a OsStr>,
    /// The word the user began the command with, if it is a python.
    pub word: Option<&'a OsStr>,
    /// The library to load while asking, to see whether that works here.
    pub preload: Option<&'a Path>,
}

/// Finds an interpreter, preferring one that has torch.
///
/// The result may have no torch; the caller decides what that means. An interpreter that the user named is never
/// replaced by another.
pub fn find_interpreter(search: &Search) -> Result<Interpreter, Stop> {
    if let Some(named) = search.named.or(search.word) {
        if let Some(program) = find_program(named) {
            return inspect(&program, search.preload);
        }
        // There may be a `python3` but no `python`. Any other name must exist.
        if search.named.is_some() || named != "python" {
            return Err(Failure::new(format!(
                "there is no python at `{}`",
                named.to_string_lossy()
            ))
            .with_hint("name one with `--python PATH`")
            .into());
        }
    }
    let mut candidates: Vec<PathBuf> = ["python", "python3"]
        .iter()
        .filter_map(|name| find_program(OsStr::new(name)))
        .collect();
    if let Some(launcher) = std::env::var_os(LAUNCHER_VARIABLE) {
        candidates.push(PathBuf::from(launcher));
    }
    let mut without_torch = None;
    let mut failure = None;
    for candidate in candidates {
        match inspect(&candidate, search.preload) {
            Ok(interpreter) if interpreter.torch_dir.is_some() => return Ok(interpreter),
            Ok(interpreter) => without_torch = without_torch.or(Some(interpreter)),
            Err(Stop::Interrupted(signal)) => return Err(Stop::Interrupted(signal)),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    match (without_torch, failure) {
        (Some(interpreter), _) => Ok(interpreter),
        (None, Some(failure)) => Err(failure),
        (None, None) => Err(Failure::new("no python was found on the PATH")
            .with_hint("name one with `--python PATH`")
            .into()),
    }
}

/// The file that a shell would run for this word.
pub fn find_program(word: &OsStr) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from(USUAL_PATH));
    find_program_on(word, &path)
}

/// The file that a shell would run for this word if the folder of `python` came first on the `PATH`, as in an activated
/// environment, and the folder of the python that started us came last.
pub fn find_program_beside(word: &OsStr, python: Option<&OsStr>) -> Option<PathBuf> {
    let beside = |python: PathBuf| find_program_on(word, python.parent()?.as_os_str());
    let named = python.and_then(find_program).and_then(beside);
    named.or_else(|| find_program(word)).or_else(|| {
        let launcher = std::env::var_os(LAUNCHER_VARIABLE)?;
        beside(PathBuf::from(launcher))
    })
}

fn find_program_on(word: &OsStr, path: &OsStr) -> Option<PathBuf> {
    if word.is_empty() {
        return None;
    }
    if word.to_string_lossy().contains('/') {
        let program = PathBuf::from(word);
        return is_executable(&program).then_some(program);
    }
    std::env::split_paths(path)
        .map(|folder| folder.join(word))
        .find(|program| is_executable(program))
}

/// A file with a permission to execute it.
pub fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_looked_up_as_a_shell_does() {
        let folder = tempfile::tempdir().expect("folder");
        let program = folder.path().join("tool");
        let plain = folder.path().join("notes");
        std::fs::write(&program, "").expect("file");
        std::fs::write(&plain, "").expect("file");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("mode");
        let path = std::env::join_paths([Path::new("/nowhere"), folder.path()]).expect("path");
        let find = |word: &OsStr| find_program_on(word, &path);
        assert_eq!(find(OsStr::new("tool")), Some(program.clone()));
        assert_eq!(find(OsStr::new("notes")), None);
        assert_eq!(find(program.as_os_str()), Some(program));
        assert_eq!(find(OsStr::new("")), None);
    }
}

//! What the user asked to run: a script, a python with arguments, or another program.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::in_place_of::{is_notebook, runnable};
use crate::python::{Search, find_interpreter, find_program, find_program_beside};
use crate::stop::Stop;

/// The parsed command line to rehearse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A script for the chosen python; its path and arguments.
    Script { words: Vec<OsString> },
    /// `python -m package …`: the word for python (none if it was left out) and the rest.
    Python {
        word: Option<OsString>,
        words: Vec<OsString>,
    },
    /// A program that is run as it is, such as `torchrun`.
    Program {
        program: PathBuf,
        words: Vec<OsString>,
        /// The python that its first line names, if it is a Python program.
        interpreter: Option<PathBuf>,
    },
}

impl Target {
    /// The program to start and its arguments, for a command that is run as it is and not rehearsed.
    pub fn program_and_words(
        self,
        python: Option<&OsStr>,
    ) -> Result<(PathBuf, Vec<OsString>), Stop> {
        let (word, words) = match self {
            Self::Script { words } => (None, runnable(words)),
            Self::Python { word, words } => (word, words),
            Self::Program { program, words, .. } => return Ok((program, words)),
        };
        let interpreter = find_interpreter(&Search {
            named: python,
            word: word.as_deref(),
            ..Search::default()
        })?;
        Ok((interpreter.executable, words))
    }

    /// Decides by the first word. If a python was named, programs are searched for in its folder first.
    pub fn from_words(words: &[OsString], python: Option<&OsStr>) -> Result<Self, Failure> {
        let Some((first, rest)) = words.split_first() else {
            return Err(Failure::new("no script was named"));
        };
        if is_python_name(first) {
            return Ok(Self::Python {
                word: Some(first.clone()),
                words: rest.to_vec(),
            });
        }
        if first.to_string_lossy().starts_with('-') {
            // `-m package` or `-c code` with the python left out.
            return Ok(Self::Python {
                word: None,
                words: words.to_vec(),
            });
        }
        let script = || {
            Ok(Self::Script {
                words: words.to_vec(),
            })
        };
        let path = Path::new(first);
        let name = path.display();
        if path.is_dir() {
            // Python runs a folder that has a `__main__.py`.
            return match path.join("__main__.py").is_file() {
                true => script(),
                false => Err(Failure::new(format!(
                    "`{name}` is a folder, not a script (it has no __main__.py)"
                ))),
            };
        }
        let is_python_script = path.extension().is_some_and(|extension| extension == "py");
        if is_python_script || is_notebook(path) {
            return match path.exists() {
                true => script(),
                false => Err(missing_script(path)),
            };
        }
        if let Some(program) = find_program_beside(first, python) {
            return Ok(Self::Program {
                interpreter: python_of(&program),
                program,
                words: rest.to_vec(),
            });
        }
        if !path.is_file() {
            return Err(match is_shell_script(path) {
                true => missing_script(path),
                false => unknown_word(&name),
            });
        }
        // A file that is not executable, or that a shell would not find in the current folder.
        match interpreter_of_file(path) {
            Some(interpreter) if is_python_name(&interpreter[0]) => script(),
            Some(interpreter) => Ok(Self::Program {
                program: find_program(&interpreter[0])
                    .ok_or_else(|| unknown_word(&interpreter[0].display()))?,
                words: [&interpreter[1..], words].concat(),
                interpreter: None,
            }),
            None => script(),
        }
    }
}

fn unknown_word(name: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!(
        "`{name}` is neither a script nor a program on the PATH"
    ))
    .with_hint("`--python PATH` also finds programs installed next to that python")
}

fn is_shell_script(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "sh" || extension == "bash")
}

/// What runs a file that is not executable: the interpreter of its first line, or a shell if its name says so.
fn interpreter_of_file(path: &Path) -> Option<Vec<OsString>> {
    let from_first_line = shebang(path).map(|words| words.iter().map(OsString::from).collect());
    from_first_line.or_else(|| is_shell_script(path).then(|| vec!["bash".into()]))
}

/// `python`, `python3`, `python3.11`, with or without a folder.
fn is_python_name(word: &OsStr) -> bool {
    let Some(name) = Path::new(word).file_name().and_then(OsStr::to_str) else {
        return false;
    };
    name.strip_prefix("python").is_some_and(|version| {
        version
            .chars()
            .all(|character| character.is_ascii_digit() || character == '.')
    })
}

/// The words of a first line such as `#!/venv/bin/python3`, without `env` and its options.
fn shebang(program: &Path) -> Option<Vec<String>> {
    use std::io::{BufRead, BufReader, Read};
    let file = std::fs::File::open(program).ok()?;
    let mut line = Vec::new();
    // The kernel itself reads no more than this much of the line.
    BufReader::new(file.take(256))
        .read_until(b'\n', &mut line)
        .ok()?;
    let line = String::from_utf8(line).ok()?;
    let words: Vec<&str> = line.strip_prefix("#!")?.split_whitespace().collect();
    let is_env = Path::new(words.first()?).file_name()? == "env";
    let start = match is_env {
        true => {
            words
                .iter()
                .skip(1)
                .position(|word| !word.starts_with('-'))?
                + 1
        }
        false => 0,
    };
    Some(words[start..].iter().map(|&word| word.to_owned()).collect())
}

/// The python in the first line of a program, if it is a Python program.
fn python_of(program: &Path) -> Option<PathBuf> {
    let words = shebang(program)?;
    let interpreter = OsStr::new(words.first()?);
    is_python_name(interpreter)
        .then(|| find_program(interpreter))
        .flatten()
}

fn missing_script(path: &Path) -> Failure {
    let failure = Failure::new(format!("the script `{}` does not exist", path.display()));
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut neighbours: Vec<String> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| {
            let name = Path::new(name);
            name.extension().is_some_and(|extension| extension == "py")
                || is_notebook(name)
                || is_shell_script(name)
        })
        .collect();
    neighbours.sort();
    neighbours.truncate(5);
    match neighbours.as_slice() {
        [] => failure,
        names => failure.with_hint(format!(
            "the folder `{}` has {}",
            folder.display(),
            names.join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    fn file(folder: &Path, name: &str, text: &str, mode: u32) -> String {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("mode");
        path.to_str().expect("text").to_owned()
    }

    #[test]
    fn a_python_word_keeps_its_arguments() {
        assert_eq!(
            Target::from_words(&words("python3.11 -m pkg.train --lr 1"), None),
            Ok(Target::Python {
                word: Some("python3.11".into()),
                words: words("-m pkg.train --lr 1"),
            })
        );
        assert_eq!(
            Target::from_words(&words("-m pkg.train"), None),
            Ok(Target::Python {
                word: None,
                words: words("-m pkg.train"),
            })
        );
    }

    #[test]
    fn scripts_are_distinguished_from_programs() {
        let folder = tempfile::tempdir().expect("folder");
        let script = file(folder.path(), "train.py", "", 0o644);
        let executable_script = file(folder.path(), "tool.py", "", 0o755);
        let without_ending = file(folder.path(), "train", "", 0o644);
        let notebook = file(folder.path(), "train.ipynb", "", 0o644);
        let by_first_line = file(folder.path(), "go", "#!/usr/bin/env -S python3 -u\n", 0o644);
        for path in [
            &script,
            &executable_script,
            &without_ending,
            &notebook,
            &by_first_line,
        ] {
            assert_eq!(
                Target::from_words(&words(&format!("{path} --a 1")), None),
                Ok(Target::Script {
                    words: words(&format!("{path} --a 1"))
                })
            );
        }
        let shell = file(folder.path(), "go.sh", "#!/bin/sh\n", 0o755);
        assert_eq!(
            Target::from_words(&words(&format!("{shell} x")), None),
            Ok(Target::Program {
                program: shell.into(),
                words: words("x"),
                interpreter: None,
            })
        );
    }

    #[test]
    fn a_file_that_is_not_executable_is_run_by_what_its_first_line_names_or_by_a_shell() {
        let folder = tempfile::tempdir().expect("folder");
        let named = file(folder.path(), "go.sh", "#!/usr/bin/env sh\n", 0o644);
        let unnamed = file(folder.path(), "train.sh", "python train.py\n", 0o644);
        let strict = file(folder.path(), "strict", "#!/bin/sh -eu\n", 0o644);
        for (path, shell, options) in [
            (&named, "sh", ""),
            (&unnamed, "bash", ""),
            (&strict, "/bin/sh", "-eu "),
        ] {
            assert_eq!(
                Target::from_words(&words(&format!("{path} x")), None),
                Ok(Target::Program {
                    program: find_program(OsStr::new(shell)).expect("a shell"),
                    words: words(&format!("{options}{path} x")),
                    interpreter: None,
                }),
                "{path}"
            );
        }
    }

    #[test]
    fn a_program_is_found_beside_the_python_that_was_named() {
        let folder = tempfile::tempdir().expect("folder");
        let python = file(folder.path(), "python3", "", 0o755);
        let launcher = file(
            folder.path(),
            "launch-here",
            &format!("#!{python}\n"),
            0o755,
        );
        assert_eq!(
            Target::from_words(&words("launch-here train.py"), Some(OsStr::new(&python))),
            Ok(Target::Program {
                program: launcher.into(),
                words: words("train.py"),
                interpreter: Some(python.into()),
            })
        );
        let failure = Target::from_words(&words("launch-here"), None).expect_err("not on the PATH");
        assert!(failure.hint().expect("a hint").contains("--python PATH"));
    }

    #[test]
    fn a_python_program_tells_its_interpreter() {
        let folder = tempfile::tempdir().expect("folder");
        let python = file(folder.path(), "python3", "", 0o755);
        let launcher = file(
            folder.path(),
            "torchrun",
            &format!("#!{python}\nimport sys\n"),
            0o755,
        );
        let Ok(Target::Program { interpreter, .. }) = Target::from_words(&words(&launcher), None)
        else {
            panic!("a launcher is a program");
        };
        assert_eq!(interpreter, Some(python.into()));
    }

    #[test]
    fn a_missing_script_is_named_with_its_neighbours() {
        let folder = tempfile::tempdir().expect("folder");
        file(folder.path(), "train.py", "", 0o644);
        let wrong = folder.path().join("trian.py");
        let failure = Target::from_words(&[wrong.into_os_string()], None).expect_err("not there");
        assert!(failure.to_string().ends_with("trian.py` does not exist"));
        assert!(failure.hint().expect("a hint").ends_with("has train.py"));
    }

    #[test]
    fn an_unknown_word_is_neither() {
        let failure =
            Target::from_words(&words("no-such-program-here"), None).expect_err("unknown");
        assert!(
            failure
                .to_string()
                .contains("neither a script nor a program")
        );
    }
}

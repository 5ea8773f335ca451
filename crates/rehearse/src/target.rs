//! What the user asked to run: a script, a python with arguments, or another program.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::python::find_program;

/// The command line to rehearse, understood.
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
    /// Decides by the first word.
    pub fn from_words(words: &[OsString]) -> Result<Self, Failure> {
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
        let path = Path::new(first);
        let name = path.display();
        let is_named_script = path.extension().is_some_and(|extension| extension == "py");
        if path.is_dir() {
            // Python runs a folder that has a `__main__.py`.
            return match path.join("__main__.py").is_file() {
                true => Ok(Self::Script {
                    words: words.to_vec(),
                }),
                false => Err(Failure::new(format!(
                    "`{name}` is a folder, not a script (it has no __main__.py)"
                ))),
            };
        }
        if is_named_script && !path.exists() {
            return Err(missing_script(path));
        }
        let program = find_program(first);
        if is_named_script || (program.is_none() && path.is_file()) {
            return Ok(Self::Script {
                words: words.to_vec(),
            });
        }
        let Some(program) = program else {
            return Err(Failure::new(format!(
                "`{name}` is neither a script nor a program on the PATH"
            )));
        };
        Ok(Self::Program {
            interpreter: shebang_python(&program),
            program,
            words: rest.to_vec(),
        })
    }
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

/// The python in the first line of a program such as `#!/venv/bin/python3`.
fn shebang_python(program: &Path) -> Option<PathBuf> {
    use std::io::{BufRead, BufReader, Read};
    let file = std::fs::File::open(program).ok()?;
    let mut line = Vec::new();
    // The kernel itself reads no more than this much of the line.
    BufReader::new(file.take(256))
        .read_until(b'\n', &mut line)
        .ok()?;
    let line = String::from_utf8(line).ok()?;
    let mut words = line.strip_prefix("#!")?.split_whitespace();
    let mut interpreter = words.next()?;
    if Path::new(interpreter).file_name()? == "env" {
        interpreter = words.find(|word| !word.starts_with('-'))?;
    }
    let interpreter = OsStr::new(interpreter);
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
        .filter(|name| name.ends_with(".py"))
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
            Target::from_words(&words("python3.11 -m pkg.train --lr 1")),
            Ok(Target::Python {
                word: Some("python3.11".into()),
                words: words("-m pkg.train --lr 1"),
            })
        );
        assert_eq!(
            Target::from_words(&words("-m pkg.train")),
            Ok(Target::Python {
                word: None,
                words: words("-m pkg.train"),
            })
        );
    }

    #[test]
    fn scripts_are_told_from_programs() {
        let folder = tempfile::tempdir().expect("folder");
        let script = file(folder.path(), "train.py", "", 0o644);
        let executable_script = file(folder.path(), "tool.py", "", 0o755);
        let without_ending = file(folder.path(), "train", "", 0o644);
        for path in [&script, &executable_script, &without_ending] {
            assert_eq!(
                Target::from_words(&words(&format!("{path} --a 1"))),
                Ok(Target::Script {
                    words: words(&format!("{path} --a 1"))
                })
            );
        }
        let shell = file(folder.path(), "go.sh", "#!/bin/sh\n", 0o755);
        assert_eq!(
            Target::from_words(&words(&format!("{shell} x"))),
            Ok(Target::Program {
                program: shell.into(),
                words: words("x"),
                interpreter: None,
            })
        );
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
        let Ok(Target::Program { interpreter, .. }) = Target::from_words(&words(&launcher)) else {
            panic!("a launcher is a program");
        };
        assert_eq!(interpreter, Some(python.into()));
    }

    #[test]
    fn a_missing_script_is_named_with_its_neighbours() {
        let folder = tempfile::tempdir().expect("folder");
        file(folder.path(), "train.py", "", 0o644);
        let wrong = folder.path().join("trian.py");
        let failure = Target::from_words(&[wrong.into_os_string()]).expect_err("not there");
        assert!(failure.to_string().ends_with("trian.py` does not exist"));
        assert!(failure.hint().expect("a hint").ends_with("has train.py"));
    }

    #[test]
    fn an_unknown_word_is_neither() {
        let failure = Target::from_words(&words("no-such-program-here")).expect_err("unknown");
        assert!(
            failure
                .to_string()
                .contains("neither a script nor a program")
        );
    }
}

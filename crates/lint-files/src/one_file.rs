//! One file: read, checked, perhaps fixed.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use ghostgpu_lint::fixing::{Fixed, Wanted, fix};
use ghostgpu_lint::source::LARGEST;
use ghostgpu_lint::{FileReport, Settings, Source, Unreadable, diff, examine};

use crate::files::{Found, unreadable};

/// What to do with fixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fixing {
    Nothing,
    Write(Wanted),
    Show(Wanted),
}

/// The result of checking a file.
#[derive(Default)]
pub struct Checked {
    pub report: FileReport,
    /// What fixes would change, if that is to be shown.
    pub diff: String,
}

impl Checked {
    /// The result for a file that could not be checked.
    pub fn problem(found: &Found, problem: String) -> Self {
        Self {
            report: FileReport {
                path: found.shown.clone(),
                problem: Some(problem),
                ..FileReport::default()
            },
            diff: String::new(),
        }
    }
}

/// Checks one file, and applies or shows fixes as requested.
pub fn check(found: &Found, settings: &Settings, fixing: Fixing) -> Checked {
    if let Some(problem) = &found.problem {
        return Checked::problem(found, problem.clone());
    }
    let contents = match read(&found.path) {
        Ok(contents) => contents,
        Err(error) => return Checked::problem(found, unreadable(&found.path, &error)),
    };
    let source = match source(&found.path, &contents) {
        Ok(source) => source,
        // A folder may contain notebooks of other languages.
        Err(Unreadable::NotPython) if !found.was_named => {
            let mut checked = Checked::problem(found, String::new());
            checked.report.problem = None;
            return checked;
        }
        Err(error) => return Checked::problem(found, error.to_string()),
    };
    let mut checked = Checked::default();
    let report = &mut checked.report;
    report.path = found.shown.clone();
    let source = match fixing {
        Fixing::Nothing => {
            report.diagnostics = examine(&source, settings);
            source
        }
        Fixing::Write(wanted) | Fixing::Show(wanted) => {
            let before = source.contents();
            let fixed = match fix(source, settings, wanted) {
                Ok(fixed) => fixed,
                Err(error) => return Checked::problem(found, format!("cannot be fixed: {error}")),
            };
            let after = fixed.source.contents();
            report.problem = problem_of(&fixed);
            match fixing {
                Fixing::Show(_) => checked.diff = diff::unified(&found.shown, &before, &after),
                _ if after == before => {}
                _ => {
                    let written = match fixed.source.encoded(&after) {
                        Some(bytes) => replace(&found.path, &contents, &bytes),
                        None => Err(std::io::Error::other("its encoding lacks a character")),
                    };
                    if let Err(error) = written {
                        // Nothing was fixed, so all findings are reported.
                        let source = source_again(&found.path, &contents);
                        report.diagnostics =
                            source.iter().flat_map(|it| examine(it, settings)).collect();
                        report.source = source;
                        report.problem = Some(format!("cannot be written: {error}"));
                        return checked;
                    }
                }
            }
            report.fixed = fixed.count;
            report.diagnostics = fixed.diagnostics;
            fixed.source
        }
    };
    // The source is only needed to show findings.
    report.source = Some(source).filter(|_| !report.diagnostics.is_empty());
    checked
}

/// A message about fixes that were left out because of a fault of ours, so that the user knows they are still open.
fn problem_of(fixed: &Fixed) -> Option<String> {
    (!fixed.left_out.is_empty()).then(|| format!("{}: left out", fixed.left_out.join("; ")))
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    // One byte more than allowed, so that an endless file (`/dev/zero`) is recognised as too long.
    let most = LARGEST as u64 + 1;
    let mut contents = Vec::new();
    match path == Path::new("-") {
        true => std::io::stdin()
            .lock()
            .take(most)
            .read_to_end(&mut contents)?,
        false => File::open(path)?.take(most).read_to_end(&mut contents)?,
    };
    Ok(contents)
}

fn source(path: &Path, contents: &[u8]) -> Result<Source, Unreadable> {
    let is_notebook = path
        .extension()
        .is_some_and(|extension| extension == "ipynb");
    match is_notebook {
        true => Source::notebook(contents),
        false => Source::script(contents),
    }
}

fn source_again(path: &Path, contents: &[u8]) -> Option<Source> {
    source(path, contents).ok()
}

/// Replaces the contents, completely or not at all. The file keeps its permissions, and a link stays a link.
fn replace(path: &Path, old: &[u8], new: &[u8]) -> std::io::Result<()> {
    if path == Path::new("-") {
        return Err(std::io::Error::other("standard input is no file"));
    }
    let path = std::fs::canonicalize(path)?;
    let metadata = std::fs::metadata(&path)?;
    if !metadata.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    // Renaming would bypass a write protection that the user has set.
    std::fs::OpenOptions::new().append(true).open(&path)?;
    let mut temporary = tempfile::Builder::new()
        .prefix(".ghostgpu-")
        .suffix(".partial")
        .tempfile_in(path.parent().unwrap_or(Path::new("/")))?;
    temporary.write_all(new)?;
    temporary
        .as_file()
        .set_permissions(metadata.permissions())?;
    if std::fs::read(&path)? != old {
        return Err(std::io::Error::other(
            "it was changed by somebody else meanwhile",
        ));
    }
    temporary.persist(&path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_replaced_with_its_permissions_and_through_its_link() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("train.py");
        let link = folder.path().join("link.py");
        std::fs::write(&path, "old").expect("file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).expect("mode");
        std::os::unix::fs::symlink("train.py", &link).expect("link");
        replace(&link, b"old", b"new").expect("written");
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&path).expect("file"), "new");
        let mode = std::fs::metadata(&path).expect("file").permissions().mode();
        assert_eq!(mode & 0o777, 0o750);
        assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 2);
    }

    #[test]
    fn a_file_that_somebody_changed_is_kept() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("train.py");
        std::fs::write(&path, "newer").expect("file");
        assert!(replace(&path, b"old", b"new").is_err());
        assert_eq!(std::fs::read_to_string(&path).expect("file"), "newer");
        assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 1);
    }

    #[test]
    fn a_script_in_gbk_is_fixed_in_gbk() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("train.py");
        // `# 训练` in GBK.
        let script = [
            b"# \xd1\xb5\xc1\xb7\nfor x, y in loader:\n    loss = criterion(model(x), y)\n"
                .as_slice(),
            b"    loss.backward()\n    optimizer.step()\n    total += loss\n",
        ]
        .concat();
        std::fs::write(&path, &script).expect("file");
        let found = Found {
            path: path.clone(),
            shown: "train.py".to_owned(),
            was_named: true,
            problem: None,
        };
        let checked = check(&found, &Settings::default(), Fixing::Write(Wanted::Safe));
        assert_eq!((checked.report.problem, checked.report.fixed), (None, 1));
        let mut expected = script;
        expected.truncate(expected.len() - 1);
        expected.extend_from_slice(b".detach()\n");
        assert_eq!(std::fs::read(&path).expect("file"), expected);
    }
}

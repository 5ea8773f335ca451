//! Which files are checked: those that were named, and those in named folders.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use ignore::WalkBuilder;

/// Folders with other people's code, which are skipped whatever git says about them.
const FOREIGN: [&str; 4] = ["node_modules", "site-packages", "__pypackages__", "venv"];

/// A file to check, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    pub path: PathBuf,
    /// The path for people and programs, without a leading `./`.
    pub shown: String,
    pub problem: Option<String>,
    /// Whether the user named the file itself, and not a folder that contains it.
    pub was_named: bool,
}

/// What was found below the user's paths.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// In order of the paths, each once.
    pub found: Vec<Found>,
    /// Folders without files to check.
    pub empty: Vec<String>,
}

/// Finds all files.
pub fn find(paths: &[PathBuf]) -> Files {
    let mut files = Files::default();
    for path in paths {
        if path.is_dir() {
            let before = files.found.len();
            walk(path, &mut files.found);
            if files.found.len() == before {
                files.empty.push(shown(path));
            }
        } else {
            let problem = match std::fs::metadata(path) {
                Ok(_) => None,
                Err(_) if path == Path::new("-") => None,
                Err(error) => Some(unreadable(path, &error)),
            };
            files.found.push(Found {
                path: path.clone(),
                shown: shown(path),
                problem,
                was_named: true,
            });
        }
    }
    // A file that was named counts as named even if a folder around it was named too.
    files.found.sort_by_key(|found| !found.was_named);
    let mut seen = BTreeSet::new();
    files.found.retain(|found| {
        let path = std::path::absolute(&found.path).unwrap_or_else(|_| found.path.clone());
        seen.insert(normal(&path))
    });
    files.found.sort();
    files
}

fn walk(folder: &Path, found: &mut Vec<Found>) {
    let walk = WalkBuilder::new(folder)
        // `.gitignore` files count even outside a repository.
        .require_git(false)
        .follow_links(false)
        .filter_entry(|entry| entry.depth() == 0 || !is_foreign(entry.path()))
        .build();
    let mut problem = |path: &Path, problem: String| {
        found.push(Found {
            path: path.to_owned(),
            shown: shown(path),
            problem: Some(problem),
            was_named: false,
        });
    };
    let mut files = Vec::new();
    for entry in walk {
        match entry {
            Ok(entry) => {
                let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
                if !is_folder && is_python(entry.path()) {
                    files.push(entry.into_path());
                }
            }
            Err(error) => {
                if let Some(io) = error.io_error() {
                    let path = path_of(&error).unwrap_or(folder);
                    problem(path, unreadable(path, io));
                }
            }
        }
    }
    for path in files {
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => found.push(Found {
                shown: shown(&path),
                path,
                problem: None,
                was_named: false,
            }),
            // A link to a folder, a pipe, a socket: nothing to read here.
            Ok(_) => {}
            Err(error) => found.push(Found {
                shown: shown(&path),
                problem: Some(unreadable(&path, &error)),
                path,
                was_named: false,
            }),
        }
    }
}

/// The system's error message and, for a link, its target.
pub fn unreadable(path: &Path, error: &std::io::Error) -> String {
    match std::fs::read_link(path) {
        Ok(target) if error.kind() == std::io::ErrorKind::NotFound => {
            format!(
                "cannot be read: a link to `{}`, which does not exist",
                target.display()
            )
        }
        _ if error.kind() == std::io::ErrorKind::NotFound => "does not exist".to_owned(),
        _ => format!("cannot be read: {error}"),
    }
}

fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => {
            path_of(err)
        }
        _ => None,
    }
}

fn is_python(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "py" || extension == "ipynb")
}

/// Whether a folder has installed packages: by its name, or because it is a virtual environment.
fn is_foreign(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    if !path.is_dir() {
        return false;
    }
    FOREIGN.iter().any(|foreign| name == *foreign) || path.join("pyvenv.cfg").is_file()
}

/// The path without `.` components, as people write it.
fn shown(path: &Path) -> String {
    let parts: PathBuf = path
        .components()
        .filter(|part| *part != Component::CurDir)
        .collect();
    match parts.as_os_str().is_empty() {
        true => ".".to_owned(),
        false => parts.to_string_lossy().into_owned(),
    }
}

/// The path without `..`, as far as that follows from the text alone.
pub fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                parts.pop();
            }
            Component::CurDir => {}
            part => parts.push(part),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("folder");
        for name in names {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("folder");
            std::fs::write(path, "").expect("file");
        }
        folder
    }

    fn names(folder: &Path, files: &Files) -> Vec<String> {
        let root = shown(folder) + "/";
        files
            .found
            .iter()
            .map(|found| found.shown.replacen(&root, "", 1))
            .collect()
    }

    #[test]
    fn a_folder_holds_its_scripts_and_notebooks_and_nobody_elses() {
        let folder = tree(&[
            "train.py",
            "a/model.py",
            "a/stubs.pyi",
            "a/look.ipynb",
            "a/notes.txt",
            ".hidden/x.py",
            ".venv/lib/x.py",
            "venv/lib/x.py",
            "own/pyvenv.cfg",
            "own/lib/x.py",
            "node_modules/x.py",
            "lib/site-packages/x.py",
            "built/x.py",
            "deep/x.py/inner.py",
        ]);
        std::fs::write(folder.path().join(".gitignore"), "built/\n").expect("file");
        let files = find(&[folder.path().to_owned()]);
        assert_eq!(
            names(folder.path(), &files),
            [
                "a/look.ipynb",
                "a/model.py",
                "deep/x.py/inner.py",
                "train.py"
            ]
        );
    }

    #[test]
    fn what_is_named_is_checked_whatever_it_is_called_and_once() {
        let folder = tree(&["venv/x.py", "script"]);
        let root = folder.path();
        let named = [
            root.join("venv/x.py"),
            root.join("script"),
            root.join("venv/../script"),
            root.to_owned(),
        ];
        let files = find(&named);
        assert_eq!(names(root, &files), ["script", "venv/x.py"]);
        assert!(files.found.iter().all(|found| found.was_named));
        assert_eq!(files.empty.len(), 1);
    }

    #[test]
    fn what_leads_nowhere_is_named_and_the_rest_is_found() {
        let folder = tree(&["good.py"]);
        let root = folder.path();
        std::os::unix::fs::symlink("nowhere", root.join("broken.py")).expect("link");
        std::os::unix::fs::symlink(root, root.join("loop.py")).expect("link");
        let files = find(&[root.to_owned(), root.join("missing.py")]);
        let problems: Vec<Option<&str>> = files
            .found
            .iter()
            .map(|found| found.problem.as_deref())
            .collect();
        assert_eq!(names(root, &files), ["broken.py", "good.py", "missing.py"]);
        assert_eq!(
            problems,
            [
                Some("cannot be read: a link to `nowhere`, which does not exist"),
                None,
                Some("does not exist")
            ]
        );
    }
}

//! The code that a command runs, as far as it is in the script's folder.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::key::size_and_time;

/// A folder with more files, or deeper ones, is not searched, and its answers are not cached.
const MOST_FILES: usize = 2_000;
const MOST_DEPTH: usize = 8;

/// Larger files are identified only by size and time.
const LONGEST_READ_BYTES: u64 = 4 << 20;

/// Extensions of files that belong to a program. Answers, logs and plans that programs write do not.
const CODE: [&str; 5] = ["py", "ipynb", "sh", "yaml", "yml"];

/// Folders without code of the script itself.
const SKIPPED: [&str; 5] = [
    "__pycache__",
    "node_modules",
    "site-packages",
    "target",
    "wandb",
];

type Files = BTreeMap<PathBuf, String>;

/// The files that a command line names and the code around them; `None` if there are too many.
pub fn code_of_command(words: &[OsString], folder: &Path) -> Option<Files> {
    let mut files = Files::new();
    for word in words {
        let path = folder.join(word);
        if path.is_file() {
            add_file(&path, &mut files)?;
            if let Some(around) = path.parent().filter(|_| is_code(&path)) {
                add_folder(around, MOST_DEPTH, &mut files)?;
            }
        }
    }
    // For a module or a program, the code is somewhere below the current folder.
    if !files.keys().any(|path| is_code(path)) {
        add_folder(folder, MOST_DEPTH, &mut files)?;
    }
    Some(files)
}

fn is_code(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| CODE.contains(&extension))
}

fn add_folder(folder: &Path, depth: usize, files: &mut Files) -> Option<()> {
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || SKIPPED.contains(&name.as_str()) {
            continue;
        }
        if entry.file_type().ok()?.is_dir() {
            // An environment has installed packages, whose versions are part of the key.
            if !path.join("pyvenv.cfg").exists() {
                add_folder(&path, depth.checked_sub(1)?, files)?;
            }
        } else if is_code(&path) {
            add_file(&path, files)?;
        }
    }
    Some(())
}

fn add_file(path: &Path, files: &mut Files) -> Option<()> {
    if files.contains_key(path) {
        return Some(());
    }
    let is_read = is_code(path) && fs::metadata(path).ok()?.len() <= LONGEST_READ_BYTES;
    let contents = match is_read {
        true => {
            let bytes = fs::read(path).ok()?;
            let mut hasher = DefaultHasher::new();
            bytes.hash(&mut hasher);
            format!("{} bytes, {:016x}", bytes.len(), hasher.finish())
        }
        false => size_and_time(path)?,
    };
    files.insert(path.to_owned(), contents);
    (files.len() <= MOST_FILES).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_around_a_script_counts_and_what_is_installed_does_not() {
        let folder = tempfile::tempdir().expect("folder");
        let put = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        put("train.py", "a");
        put("model/net.py", "b");
        put("data.bin", "c");
        put(".git/config.toml", "d");
        put("env/pyvenv.cfg", "");
        put("env/lib/torch.py", "e");
        let files = || code_of_command(&["train.py".into()], folder.path()).expect("few files");
        let before = files();
        assert_eq!(before.len(), 2);
        put("data.bin", "other data");
        assert_eq!(files(), before);
        put("model/net.py", "B");
        assert_ne!(files(), before);
    }

    #[test]
    fn a_module_counts_with_the_code_below_the_current_folder() {
        let folder = tempfile::tempdir().expect("folder");
        fs::create_dir(folder.path().join("pkg")).expect("made");
        fs::write(folder.path().join("pkg/train.py"), "a").expect("written");
        let words = ["-m".into(), "pkg.train".into()];
        let files = code_of_command(&words, folder.path()).expect("few files");
        assert_eq!(files.len(), 1);
    }

    #[test]
    fn a_folder_full_of_files_is_too_much() {
        let folder = tempfile::tempdir().expect("folder");
        for number in 0..=MOST_FILES {
            fs::write(folder.path().join(format!("{number}.py")), "").expect("written");
        }
        assert_eq!(code_of_command(&[], folder.path()), None);
    }
}

//! Answers that were given before.
//!
//! An answer holds for what it was made of: the script and the files around it, its arguments and environment, the
//! card, the question, and the versions of torch and of our own parts. All of that is in the key, which is kept beside
//! the answer and compared whole. What a script reads from elsewhere (data, packages that are installed) is not in it.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use ghostgpu_answers::plan::{PlanAnswer, StoppedBecause};
use ghostgpu_rehearse::{Layout, Prepared, cache_dir};
use serde::{Deserialize, Serialize};

use super::WhichTricks;

/// Beyond this many files, or this deep, a folder is no longer looked through, and nothing is kept.
const MOST_FILES: usize = 2_000;
const MOST_DEPTH: usize = 8;

/// Larger files are known by size and time alone.
const LONGEST_READ_BYTES: u64 = 4 << 20;

/// Files whose names end so are part of a program. Answers, logs and plans that programs write are none.
const CODE: [&str; 5] = ["py", "ipynb", "sh", "yaml", "yml"];

/// Folders that hold no code of a script's own.
const SKIPPED: [&str; 4] = ["__pycache__", "node_modules", "site-packages", "wandb"];

/// Variables that reach the script and change what torch does.
const VARIABLES: [&str; 4] = ["PYTORCH_", "TORCH_", "CUDA_", "GHOSTGPU_"];

/// What an answer was made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    question: String,
    program: String,
    words: Vec<String>,
    folder: PathBuf,
    card: String,
    torch: String,
    own_parts: Vec<String>,
    variables: BTreeMap<String, String>,
    files: BTreeMap<PathBuf, String>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    key: Key,
    answer: PlanAnswer,
}

impl Key {
    /// None where it cannot be told what the answer depends on, or there is no place to keep it.
    pub fn of(question: &WhichTricks, prepared: &Prepared) -> Option<Self> {
        cache_dir()?;
        let folder = std::env::current_dir().ok()?;
        let mut files = BTreeMap::new();
        for word in &prepared.words {
            let path = folder.join(word);
            if path.is_file() {
                add_file(&path, &mut files)?;
                if let Some(around) = path.parent().filter(|_| is_code(&path)) {
                    add_folder(around, MOST_DEPTH, &mut files)?;
                }
            }
        }
        // A module or a program: its code is somewhere below.
        if !files.keys().any(|path| is_code(path)) {
            add_folder(&folder, MOST_DEPTH, &mut files)?;
        }
        let layout = Layout::find().ok()?;
        let own_parts = [&layout.program, &layout.library, &layout.inject_dir];
        Some(Self {
            question: format!(
                "{:?} {:?} {} {:?} {:?}",
                question.allowed,
                question.margin,
                question.most_rehearsals,
                question.largest_batch,
                question.job
            ),
            program: prepared.program().display().to_string(),
            words: prepared
                .words
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            card: serde_json::to_string(prepared.card()).ok()?,
            torch: format!("{:?}", prepared.torch),
            own_parts: own_parts
                .into_iter()
                .map(|path| size_and_time(path))
                .collect::<Option<_>>()?,
            variables: std::env::vars_os()
                .filter_map(|(name, value)| {
                    let name = name.into_string().ok()?;
                    let counts = VARIABLES
                        .iter()
                        .any(|beginning| name.starts_with(beginning));
                    counts.then(|| (name, value.to_string_lossy().into_owned()))
                })
                .collect(),
            folder,
            files,
        })
    }

    fn file(&self) -> Option<PathBuf> {
        let mut hasher = DefaultHasher::new();
        serde_json::to_string(self).ok()?.hash(&mut hasher);
        let name = format!("{:016x}.json", hasher.finish());
        Some(cache_dir()?.join("plans").join(name))
    }
}

/// The answer to the same question, if there was one.
pub fn read(key: &Key) -> Option<PlanAnswer> {
    let text = fs::read(key.file()?).ok()?;
    let entry: Entry = serde_json::from_slice(&text).ok()?;
    (entry.key == *key).then_some(entry.answer)
}

/// Keeps an answer, unless it is not whole. What cannot be written is asked again the next time.
pub fn write(key: &Key, answer: &PlanAnswer) {
    if answer.stopped == StoppedBecause::Interrupted {
        return;
    }
    let entry = Entry {
        key: key.clone(),
        answer: answer.clone(),
    };
    let written = || -> Option<()> {
        let file = key.file()?;
        let folder = file.parent()?;
        fs::create_dir_all(folder).ok()?;
        let partial = tempfile::NamedTempFile::new_in(folder).ok()?;
        serde_json::to_writer(&partial, &entry).ok()?;
        partial.persist(file).ok()?;
        Some(())
    };
    let _ = written();
}

fn is_code(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| CODE.contains(&extension))
}

/// None where there are too many.
fn add_folder(folder: &Path, depth: usize, files: &mut BTreeMap<PathBuf, String>) -> Option<()> {
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || SKIPPED.contains(&name.as_str()) {
            continue;
        }
        let kind = entry.file_type().ok()?;
        if kind.is_dir() {
            // An environment holds what is installed, which has versions.
            if !path.join("pyvenv.cfg").exists() {
                add_folder(&path, depth.checked_sub(1)?, files)?;
            }
        } else if is_code(&path) {
            add_file(&path, files)?;
        }
    }
    Some(())
}

fn add_file(path: &Path, files: &mut BTreeMap<PathBuf, String>) -> Option<()> {
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

fn size_and_time(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    let modified = metadata.modified().ok()?;
    let since = modified.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(format!(
        "{} {} {}",
        path.display(),
        metadata.len(),
        since.as_nanos()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files_of(folder: &Path) -> Option<BTreeMap<PathBuf, String>> {
        let mut files = BTreeMap::new();
        add_folder(folder, MOST_DEPTH, &mut files)?;
        Some(files)
    }

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
        let before = files_of(folder.path()).expect("few files");
        assert_eq!(before.len(), 2);
        put("data.bin", "other data");
        assert_eq!(files_of(folder.path()).as_ref(), Some(&before));
        put("model/net.py", "B");
        assert_ne!(files_of(folder.path()).as_ref(), Some(&before));
    }

    #[test]
    fn a_folder_full_of_files_has_no_key() {
        let folder = tempfile::tempdir().expect("folder");
        for number in 0..=MOST_FILES {
            fs::write(folder.path().join(format!("{number}.py")), "").expect("written");
        }
        assert_eq!(files_of(folder.path()), None);
    }
}

//! What an answer depends on.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::code_files::code_of_command;

/// Prefixes of environment variables that change what torch does in the script.
const STEERING: [&str; 7] = [
    "PYTORCH_",
    "TORCH",
    "CUDA_",
    "CUBLAS",
    "CUDNN",
    "NVIDIA_",
    "GHOSTGPU_",
];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    parts: BTreeMap<String, String>,
    variables: BTreeMap<String, String>,
    files: BTreeMap<PathBuf, String>,
}

impl Key {
    /// The key of everything that a command started in `folder` visibly depends on; `None` if there are too many files.
    pub fn of_command(
        words: &[OsString],
        folder: &Path,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Option<Self> {
        let steers = |name: &str| STEERING.iter().any(|start| name.starts_with(start));
        let variables = environment
            .into_iter()
            .filter_map(|(name, value)| {
                let name = name.into_string().ok().filter(|name| steers(name))?;
                Some((name, value.to_string_lossy().into_owned()))
            })
            .collect();
        let key = Self {
            parts: BTreeMap::new(),
            variables,
            files: code_of_command(words, folder)?,
        };
        Some(key.with("folder", format!("{folder:?}")).with_words(words))
    }

    /// The key of another command line with the same code.
    pub fn with_words(self, words: &[OsString]) -> Self {
        self.with("words", format!("{words:?}"))
    }

    /// Adds something else that the answer depends on.
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.parts.insert(name.to_owned(), value.into());
        self
    }

    /// The name of its file. Another version of Rust may compute another one, which costs a rehearsal.
    pub(crate) fn name(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.parts.hash(&mut hasher);
        self.variables.hash(&mut hasher);
        self.files.hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }
}

/// Identifies a version of a large or compiled file without reading it.
pub fn size_and_time(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    let modified = metadata.modified().ok()?;
    let since = modified.duration_since(std::time::UNIX_EPOCH).ok()?;
    let (place, size) = (path.display(), metadata.len());
    Some(format!("{place} {size} {}", since.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(batch: &str) -> Vec<OsString> {
        vec!["train.py".into(), "--batch-size".into(), batch.into()]
    }

    #[test]
    fn a_key_changes_with_everything_that_matters_and_with_nothing_else() {
        let folder = tempfile::tempdir().expect("folder");
        fs::write(folder.path().join("train.py"), "import model").expect("file");
        fs::write(folder.path().join("model.py"), "width = 1").expect("file");
        let made = |batch: &str, variable: (&str, &str)| {
            let variable = (OsString::from(variable.0), OsString::from(variable.1));
            Key::of_command(&words(batch), folder.path(), [variable]).expect("a key")
        };
        let first = made("8", ("CUDA_VISIBLE_DEVICES", "0"));
        assert_eq!(made("8", ("CUDA_VISIBLE_DEVICES", "0")), first);
        assert_ne!(made("16", ("CUDA_VISIBLE_DEVICES", "0")), first);
        assert_ne!(made("8", ("CUDA_VISIBLE_DEVICES", "1")), first);
        assert_ne!(first.clone().with("card", "t4"), first);
        let unrelated = made("8", ("EDITOR", "vi"));
        assert_eq!(made("8", ("EDITOR", "nano")), unrelated);
        assert_eq!(first.clone().with_words(&words("8")), first);
        fs::write(folder.path().join("model.py"), "width = 2").expect("file");
        assert_ne!(made("8", ("CUDA_VISIBLE_DEVICES", "0")), first, "a module");
    }
}

//! What earlier sweeps found, so that it is not rehearsed again.
//!
//! One small file for each point and card. Its name is a hash of everything that can be seen to matter: the script
//! and the Python files around it, the command line, the options, the card, the versions, the environment's variables
//! for torch and CUDA. What a script reads beside these is not known: `--fresh` is for that.

use std::ffi::OsString;
use std::hash::Hasher;
use std::path::{Path, PathBuf};

use ghostgpu_answers::sweep::OnCard;

/// Of more files than this a project does not consist; what is a folder of other people's code ends sooner.
const MOST_FILES: usize = 2000;

/// Variables with these beginnings decide what torch does.
const STEERING: [&str; 6] = ["PYTORCH_", "CUDA_", "CUBLAS", "CUDNN", "TORCH", "NVIDIA_"];

#[derive(Debug)]
pub struct Store {
    /// None where there is nowhere to keep anything.
    folder: Option<PathBuf>,
    is_read: bool,
    /// Of what all points have in common.
    common: Vec<u8>,
}

impl Store {
    /// Points of a job; `words` are the command without its swept arguments, `common` what else they share.
    pub fn new(
        folder: Option<PathBuf>,
        is_read: bool,
        words: &[OsString],
        common: &[String],
    ) -> Self {
        let mut all = Vec::new();
        for text in common {
            add(&mut all, text.as_bytes());
        }
        let mut variables: Vec<(String, String)> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| STEERING.iter().any(|start| name.starts_with(start)))
            .collect();
        variables.sort();
        for (name, value) in variables {
            add(&mut all, format!("{name}={value}").as_bytes());
        }
        for file in project_files(words) {
            add(&mut all, file.to_string_lossy().as_bytes());
            add(&mut all, &std::fs::read(&file).unwrap_or_default());
        }
        Self {
            folder,
            is_read,
            common: all,
        }
    }

    /// What is known of a command line on a card.
    pub fn known(&self, words: &[OsString], gpu: &str) -> Option<OnCard> {
        let path = self.path(words, gpu).filter(|_| self.is_read)?;
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }

    /// Keeps what was found; a store that cannot be written costs time later, and nothing else.
    pub fn keep(&self, words: &[OsString], gpu: &str, found: &OnCard) {
        let Some(path) = self.path(words, gpu) else {
            return;
        };
        let Some(folder) = path.parent() else {
            return;
        };
        let text = serde_json::to_vec(found).unwrap_or_default();
        let write = || -> std::io::Result<()> {
            std::fs::create_dir_all(folder)?;
            let file = tempfile::NamedTempFile::new_in(folder)?;
            std::fs::write(file.path(), &text)?;
            file.persist(&path).map_err(|error| error.error)?;
            Ok(())
        };
        let _ = write();
    }

    fn path(&self, words: &[OsString], gpu: &str) -> Option<PathBuf> {
        let mut all = self.common.clone();
        for word in words {
            add(&mut all, word.as_encoded_bytes());
        }
        add(&mut all, gpu.as_bytes());
        let name = format!("{:016x}{:016x}", hash(&all, 0), hash(&all, 1));
        Some(self.folder.as_ref()?.join(format!("{name}.json")))
    }
}

/// With its length, so that parts cannot run together.
fn add(all: &mut Vec<u8>, part: &[u8]) {
    all.extend(part.len().to_le_bytes());
    all.extend(part);
}

/// FNV-1a, the same in every version of Rust.
fn hash(bytes: &[u8], seed: u64) -> u64 {
    struct Fnv(u64);
    impl Hasher for Fnv {
        fn finish(&self) -> u64 {
            self.0
        }
        fn write(&mut self, bytes: &[u8]) {
            for &byte in bytes {
                self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
    }
    let mut hasher = Fnv(0xcbf2_9ce4_8422_2325 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    hasher.write(bytes);
    hasher.finish()
}

/// The files that a command line names, and the Python files around the script, in order.
fn project_files(words: &[OsString]) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = words
        .iter()
        .map(PathBuf::from)
        .filter(|path| path.is_file())
        .collect();
    let is_script = |path: &&PathBuf| path.extension().is_some_and(|end| end == "py");
    let script = files.iter().find(is_script);
    let around = match script {
        Some(script) => script.parent().map(Path::to_owned).unwrap_or_default(),
        // A module is found from the current folder on.
        None => PathBuf::new(),
    };
    let around = match around.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => around,
    };
    let mut open = vec![around];
    let mut count = 0;
    while let Some(folder) = open.pop() {
        let mut entries: Vec<PathBuf> = std::fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        entries.sort();
        for path in entries {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() && !path.is_symlink() {
                let is_other = name.starts_with('.') || name == "site-packages" || name == "target";
                if !is_other && !path.join("pyvenv.cfg").exists() {
                    open.push(path);
                }
            } else if name.ends_with(".py") {
                count += 1;
                if count > MOST_FILES {
                    return files;
                }
                files.push(path);
            }
        }
    }
    files.sort();
    files.dedup();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(script: &Path, batch: &str) -> Vec<OsString> {
        vec![script.into(), "--batch-size".into(), batch.into()]
    }

    #[test]
    fn what_was_found_is_known_until_something_that_matters_changes() {
        let folder = tempfile::tempdir().expect("folder");
        let kept = folder.path().join("kept");
        let project = folder.path().join("project");
        std::fs::create_dir(&project).expect("folder");
        let script = project.join("train.py");
        std::fs::write(&script, "import model").expect("file");
        std::fs::write(project.join("model.py"), "width = 1").expect("file");
        let store = |is_read, common: &str| {
            let own = [OsString::from(&script)];
            Store::new(Some(kept.clone()), is_read, &own, &[common.to_owned()])
        };
        let found = OnCard {
            name: "T4".to_owned(),
            needed_device_bytes: Some(5),
            ..OnCard::default()
        };
        let eight = words(&script, "8");
        assert_eq!(store(true, "1.0").known(&eight, "t4"), None);
        store(true, "1.0").keep(&eight, "t4", &found);
        assert_eq!(store(true, "1.0").known(&eight, "t4"), Some(found));
        for (is_read, common, batch, gpu) in [
            (false, "1.0", "8", "t4"),
            (true, "1.1", "8", "t4"),
            (true, "1.0", "16", "t4"),
            (true, "1.0", "8", "a10"),
        ] {
            let known = store(is_read, common).known(&words(&script, batch), gpu);
            assert_eq!(known, None, "{is_read} {common} {batch} {gpu}");
        }
        std::fs::write(project.join("model.py"), "width = 2").expect("file");
        assert_eq!(store(true, "1.0").known(&eight, "t4"), None, "a module");
    }

    #[test]
    fn a_damaged_file_is_as_good_as_none() {
        let folder = tempfile::tempdir().expect("folder");
        let store = Store::new(Some(folder.path().to_owned()), true, &[], &[]);
        store.keep(&[], "t4", &OnCard::default());
        for entry in std::fs::read_dir(folder.path()).expect("folder").flatten() {
            std::fs::write(entry.path(), "{").expect("file");
        }
        assert_eq!(store.known(&[], "t4"), None);
        let nowhere = Store::new(None, true, &[], &[]);
        nowhere.keep(&[], "t4", &OnCard::default());
        assert_eq!(nowhere.known(&[], "t4"), None);
    }
}

//! A cache of answers.
//!
//! An answer is valid for what it was made from: the command and the code around it, the variables that affect torch, and
//! what the caller adds (the question, the card, versions). All of that is the [`Key`]. It is stored with the answer and
//! compared as a whole, so a collision of file names costs a rehearsal but never gives a wrong answer. What a script
//! reads from elsewhere (data, installed packages) is not part of it; `--fresh` ignores the cache in such cases.

mod code_files;
mod key;

use std::fs;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use key::{Key, size_and_time};

/// A folder with one file per answer.
#[derive(Clone, Debug)]
pub struct AnswerCache {
    /// `None` if there is no folder for a cache.
    folder: Option<PathBuf>,
    is_read: bool,
}

#[derive(Serialize)]
struct Written<'a, T> {
    key: &'a Key,
    answer: &'a T,
}

#[derive(Deserialize)]
struct Read<T> {
    key: Key,
    answer: T,
}

impl AnswerCache {
    /// A cache that is not read still stores new answers for the next time.
    pub fn new(folder: Option<PathBuf>, is_read: bool) -> Self {
        Self { folder, is_read }
    }

    pub fn known<T: DeserializeOwned>(&self, key: &Key) -> Option<T> {
        let path = self.path(key).filter(|_| self.is_read)?;
        let entry: Read<T> = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        (entry.key == *key).then_some(entry.answer)
    }

    /// Stores an answer. If that fails, the question is simply answered again the next time.
    pub fn keep<T: Serialize>(&self, key: &Key, answer: &T) {
        let written = || -> Option<()> {
            let path = self.path(key)?;
            let folder = path.parent()?;
            fs::create_dir_all(folder).ok()?;
            let partial = tempfile::NamedTempFile::new_in(folder).ok()?;
            serde_json::to_writer(&partial, &Written { key, answer }).ok()?;
            partial.persist(path).ok()?;
            Some(())
        };
        let _ = written();
    }

    fn path(&self, key: &Key) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(format!("{}.json", key.name())))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// A key of a folder without code.
    fn key(card: &str) -> Key {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let key = Key::of_command(&[], &folder, []).expect("a key");
        key.with("card", card)
    }

    #[test]
    fn an_answer_is_known_under_its_own_key_alone() {
        let folder = tempfile::tempdir().expect("folder");
        let cache = AnswerCache::new(Some(folder.path().join("kept")), true);
        assert_eq!(cache.known::<u64>(&key("t4")), None);
        cache.keep(&key("t4"), &5_u64);
        assert_eq!(cache.known(&key("t4")), Some(5_u64));
        assert_eq!(cache.known::<u64>(&key("a10")), None);
        let fresh = AnswerCache::new(Some(folder.path().join("kept")), false);
        assert_eq!(fresh.known::<u64>(&key("t4")), None, "not read");
    }

    #[test]
    fn an_entry_of_another_key_under_the_same_name_is_not_taken() {
        let folder = tempfile::tempdir().expect("folder");
        let cache = AnswerCache::new(Some(folder.path().to_owned()), true);
        cache.keep(&key("t4"), &5_u64);
        let moved = cache.path(&key("t4")).zip(cache.path(&key("a10")));
        let (from, to) = moved.expect("a folder");
        fs::rename(from, to).expect("renamed");
        assert_eq!(cache.known::<u64>(&key("a10")), None);
    }

    #[test]
    fn a_damaged_file_is_as_good_as_none() {
        let folder = tempfile::tempdir().expect("folder");
        let cache = AnswerCache::new(Some(folder.path().to_owned()), true);
        cache.keep(&key("t4"), &5_u64);
        let path = cache.path(&key("t4")).expect("a path");
        fs::write(path, "{").expect("written");
        assert_eq!(cache.known::<u64>(&key("t4")), None);
        let nowhere = AnswerCache::new(None, true);
        nowhere.keep(&key("t4"), &5_u64);
        assert_eq!(nowhere.known::<u64>(&key("t4")), None);
    }
}

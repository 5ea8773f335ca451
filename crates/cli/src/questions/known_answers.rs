//! The cache of answers: where they are kept, and what they depend on.

use std::path::PathBuf;

use ghostgpu_answer_cache::{AnswerCache, Key, size_and_time};
use ghostgpu_rehearse::{Layout, Prepared, cache_dir};

/// The answers of one kind.
pub fn cache(kind: &str, is_read: bool) -> AnswerCache {
    AnswerCache::new(cache_dir().map(|folder| folder.join(kind)), is_read)
}

/// What every answer about a job depends on: its command and code, its card, tables of library sizes, Python, torch
/// and our own parts. `None` if that cannot be determined.
pub fn key(prepared: &Prepared, library_sizes: &[PathBuf]) -> Option<Key> {
    let folder = std::env::current_dir().ok()?;
    let layout = Layout::find().ok()?;
    let own_parts = [&layout.program, &layout.library, &layout.inject_dir];
    let other_files: Vec<String> = own_parts
        .into_iter()
        .chain(library_sizes)
        .map(|path| size_and_time(path))
        .collect::<Option<_>>()?;
    let key = Key::of_command(&prepared.words, &folder, std::env::vars_os())?;
    Some(
        key.with("program", prepared.program().display().to_string())
            .with("card", serde_json::to_string(prepared.card()).ok()?)
            .with("torch", format!("{:?}", prepared.torch))
            .with("other files", format!("{other_files:?}")),
    )
}

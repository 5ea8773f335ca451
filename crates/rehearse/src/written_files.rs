//! Removes what the script wrote during a rehearsal: checkpoints full of zeros.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ghostgpu_session::WrittenFile;
use ghostgpu_session::files::WRITTEN_FILES;

/// Removes the files that the agent listed in a run's folder; returns those that were there.
///
/// The agent removes its files itself when its process ends; these are those of processes that
/// ended too hard for that. Nothing older than the run's start is touched, whatever the list says.
pub fn remove_written_files(run_dir: &Path, started: SystemTime) -> Vec<PathBuf> {
    let text = std::fs::read(run_dir.join(WRITTEN_FILES)).unwrap_or_default();
    let listed: BTreeMap<PathBuf, bool> = String::from_utf8_lossy(&text)
        .lines()
        .filter_map(|line| serde_json::from_str::<WrittenFile>(line).ok())
        .map(|file| (file.path, file.is_folder))
        .filter(|(path, _)| path.is_absolute())
        .collect();
    let mut removed = Vec::new();
    // Longer paths come later in the order: backwards, a folder's contents go before the folder.
    for (path, is_folder) in listed.into_iter().rev() {
        remove(&path, is_folder, started, &mut removed);
    }
    removed.reverse();
    removed
}

/// Removes one file or, with what the run put into it, one folder.
fn remove(path: &Path, is_folder: bool, started: SystemTime, removed: &mut Vec<PathBuf>) {
    let Ok(metadata) = std::fs::symlink_metadata(path) else {
        return;
    };
    let is_gone = if metadata.is_dir() {
        if is_folder {
            for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
                remove(&entry.path(), true, started, removed);
            }
        }
        // Fails, as it should, for a folder that still holds something.
        std::fs::remove_dir(path).is_ok()
    } else {
        let is_new = metadata.modified().is_ok_and(|time| time >= started);
        is_new && std::fs::remove_file(path).is_ok()
    };
    if is_gone {
        removed.push(path.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A file that was there long before the run.
    fn old_file(path: &Path) {
        std::fs::write(path, "mine").expect("file");
        let file = std::fs::File::options()
            .append(true)
            .open(path)
            .expect("file");
        file.set_modified(SystemTime::now() - Duration::from_secs(3_600))
            .expect("time");
    }

    #[test]
    fn listed_files_and_emptied_folders_go_and_others_stay() {
        let folder = tempfile::tempdir().expect("folder");
        let root = folder.path();
        let started = SystemTime::now() - Duration::from_secs(60);
        for path in ["run", "checkpoint", "checkpoint/shards", "output"] {
            std::fs::create_dir(root.join(path)).expect("folder");
        }
        for path in [
            "checkpoint/shards/0.pt",
            "output/unlisted.pt",
            "output/zeros.pt",
        ] {
            std::fs::write(root.join(path), "x").expect("file");
        }
        old_file(&root.join("output/mine.txt"));
        let mut lines = String::new();
        for (path, is_folder) in [
            ("checkpoint", true),
            ("output", false),
            ("output/zeros.pt", false),
            ("output/mine.txt", false),
            ("gone.pt", false),
        ] {
            let line = serde_json::json!({ "path": root.join(path), "is_folder": is_folder });
            lines.push_str(&format!("{line}\n"));
        }
        lines.push_str("{\"path\": \"relative.pt\"}\n{ half a li");
        std::fs::write(root.join("run").join(WRITTEN_FILES), lines).expect("file");
        let removed = remove_written_files(&root.join("run"), started);
        let expected: Vec<PathBuf> = [
            "checkpoint",
            "checkpoint/shards",
            "checkpoint/shards/0.pt",
            "output/zeros.pt",
        ]
        .iter()
        .map(|path| root.join(path))
        .collect();
        assert_eq!(removed, expected);
        assert!(root.join("output/mine.txt").exists());
        assert!(root.join("output/unlisted.pt").exists());
    }

    #[test]
    fn a_listed_folder_keeps_what_was_in_it_before() {
        let folder = tempfile::tempdir().expect("folder");
        let output = folder.path().join("output");
        std::fs::create_dir(&output).expect("folder");
        let started = SystemTime::now() - Duration::from_secs(60);
        old_file(&output.join("real.pt"));
        std::fs::write(output.join("zeros.pt"), "x").expect("file");
        let line = serde_json::json!({ "path": output, "is_folder": true, "pid": 1 });
        std::fs::write(folder.path().join(WRITTEN_FILES), format!("{line}\n")).expect("file");
        let removed = remove_written_files(folder.path(), started);
        assert_eq!(removed, [output.join("zeros.pt")]);
        assert!(output.join("real.pt").exists());
    }

    #[test]
    fn a_run_that_wrote_nothing_has_nothing_removed() {
        let folder = tempfile::tempdir().expect("folder");
        assert!(remove_written_files(folder.path(), SystemTime::now()).is_empty());
    }
}

//! Removes what the script wrote during a rehearsal: checkpoints full of zeros.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ghostgpu_session::WrittenFile;
use ghostgpu_session::files::{RUN_FOLDER_PREFIX, WRITTEN_FILES};

use crate::run_dir::is_own;

/// Creates the list of a run whose script runs in `workplace`, so that other rehearsals see that it may write there.
pub fn open_list(run_dir: &Path, workplace: &Path) -> std::io::Result<()> {
    let line = serde_json::json!({ "path": workplace, "is_workplace": true });
    std::fs::write(run_dir.join(WRITTEN_FILES), format!("{line}\n"))
}

/// Removes the files that the agent listed in a run folder; returns those that existed.
///
/// A fork removes its own files when it ends. Everything else is left to this: other ranks, or the next line of a shell
/// script, may want to read what a process wrote. Nothing older than the run is touched, whatever the list says, and
/// nothing that another rehearsal works with.
pub fn remove_written_files(run_dir: &Path, started: SystemTime) -> Vec<PathBuf> {
    // The order matters: of two rehearsals that end at the same time, the later one finds the other's list closed, and
    // removes what both worked with.
    let own = close_list(run_dir);
    let lists = lists_of_others(run_dir);
    let others: BTreeSet<PathBuf> = lists.iter().flat_map(|list| list.files.clone()).collect();
    let mut listed: BTreeMap<PathBuf, (bool, SystemTime)> = BTreeMap::new();
    for file in own {
        if file.is_redirected || file.is_workplace || !file.path.is_absolute() {
            continue;
        }
        if file.is_deleted {
            listed.retain(|path, _| !path.starts_with(&file.path));
            continue;
        }
        // A folder that another rehearsal left to this one may contain older files of that rehearsal.
        let since = file
            .since
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let since = since.map_or(started, |since| started.min(UNIX_EPOCH + since));
        let entry = listed.entry(file.path).or_insert((file.is_folder, since));
        *entry = (entry.0 || file.is_folder, entry.1.min(since));
    }
    let nobodys = BTreeSet::new();
    let mut removed = Vec::new();
    // In reverse order, the contents of a folder come before the folder.
    for (path, (is_folder, since)) in listed.into_iter().rev() {
        let workers: Vec<&OthersList> = lists
            .iter()
            .filter(|list| is_folder && path.is_dir() && list.may_work_in(&path))
            .collect();
        // A rehearsal that still works in a folder removes it later. This fails if it has just ended.
        if workers
            .iter()
            .any(|list| hand_over(&list.path, &path, since).is_ok())
        {
            continue;
        }
        let others = if workers.is_empty() {
            &others
        } else {
            &nobodys
        };
        remove(&path, is_folder, since, others, &mut removed);
    }
    removed.reverse();
    removed
}

fn read_list(run_dir: &Path) -> Vec<WrittenFile> {
    parse_list(&std::fs::read(run_dir.join(WRITTEN_FILES)).unwrap_or_default())
}

/// Reads the list for the last time and removes it, so that no other rehearsal adds a folder that this run would never
/// see.
fn close_list(run_dir: &Path) -> Vec<WrittenFile> {
    let path = run_dir.join(WRITTEN_FILES);
    let mut text = Vec::new();
    if let Ok(mut file) = std::fs::File::open(&path) {
        // Without the lock the list is read anyway; only what another rehearsal adds right now is missed.
        let _ = file.lock();
        let _ = file.read_to_end(&mut text);
        let _ = std::fs::remove_file(&path);
    }
    parse_list(&text)
}

fn parse_list(text: &[u8]) -> Vec<WrittenFile> {
    String::from_utf8_lossy(text)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// Leaves a folder to another rehearsal. Fails if that one has already read its list for the last time.
fn hand_over(list: &Path, folder: &Path, since: SystemTime) -> std::io::Result<()> {
    let mut file = std::fs::File::options().append(true).open(list)?;
    file.lock()?;
    if file.metadata()?.nlink() == 0 {
        return Err(std::io::ErrorKind::NotFound.into());
    }
    let since = since.duration_since(UNIX_EPOCH).unwrap_or_default();
    let line = serde_json::json!({
        "path": folder,
        "is_folder": true,
        "since": since.as_secs_f64(),
    });
    writeln!(file, "{line}")
}

/// The list of a rehearsal that has not ended.
struct OthersList {
    path: PathBuf,
    /// What it works with.
    files: BTreeSet<PathBuf>,
    workplace: Option<PathBuf>,
}

impl OthersList {
    /// Whether it has written there, or may: a script checks for a folder before it writes into it, and only the write
    /// is visible here.
    fn may_work_in(&self, folder: &Path) -> bool {
        self.files.iter().any(|file| file.starts_with(folder))
            || (self.workplace.as_deref())
                .is_some_and(|place| folder.starts_with(place) || place.starts_with(folder))
    }
}

/// The lists of rehearsals whose run folders are next to this one.
fn lists_of_others(run_dir: &Path) -> Vec<OthersList> {
    let siblings = run_dir.parent().map(std::fs::read_dir);
    let siblings = siblings.into_iter().flatten().flatten().flatten();
    siblings
        .filter(|entry| {
            let name = entry.file_name();
            let is_run = name.to_string_lossy().starts_with(RUN_FOLDER_PREFIX);
            is_run && entry.path() != run_dir && is_own(&entry.path())
        })
        .map(|entry| {
            let (workplaces, written): (Vec<_>, Vec<_>) = read_list(&entry.path())
                .into_iter()
                .partition(|line| line.is_workplace);
            OthersList {
                path: entry.path().join(WRITTEN_FILES),
                files: written.into_iter().map(|file| file.path).collect(),
                workplace: workplaces.into_iter().map(|line| line.path).next(),
            }
        })
        .collect()
}

/// Removes one file, or one folder with what the run put into it.
fn remove(
    path: &Path,
    is_folder: bool,
    since: SystemTime,
    others: &BTreeSet<PathBuf>,
    removed: &mut Vec<PathBuf>,
) {
    let Ok(metadata) = std::fs::symlink_metadata(path) else {
        return;
    };
    if others.iter().any(|other| other.starts_with(path)) {
        return;
    }
    let is_gone = if metadata.is_dir() {
        if is_folder {
            for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
                remove(&entry.path(), true, since, others, removed);
            }
        }
        // Fails, as intended, for a folder that is not empty.
        std::fs::remove_dir(path).is_ok()
    } else {
        let is_new = metadata.modified().is_ok_and(|time| time >= since);
        is_new && std::fs::remove_file(path).is_ok()
    };
    if is_gone {
        removed.push(path.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that existed long before the run.
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
            ("output/unlisted.pt", false),
        ] {
            let line = serde_json::json!({ "path": root.join(path), "is_folder": is_folder });
            lines.push_str(&format!("{line}\n"));
        }
        let unlisted = root.join("output/unlisted.pt");
        let line = serde_json::json!({ "path": unlisted, "is_deleted": true });
        lines.push_str(&format!("{line}\n"));
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
    fn what_another_rehearsal_works_with_stays_and_what_it_left_goes() {
        let folder = tempfile::tempdir().expect("folder");
        let root = folder.path();
        let own = root.join(format!("{RUN_FOLDER_PREFIX}own"));
        let other = root.join(format!("{RUN_FOLDER_PREFIX}other"));
        for path in [&own, &other, &root.join("shared"), &root.join("left")] {
            std::fs::create_dir(path).expect("folder");
        }
        for path in ["shared/mine.pt", "shared/theirs.pt", "theirs.pt"] {
            std::fs::write(root.join(path), "x").expect("file");
        }
        old_file(&root.join("left/state.json"));
        let list = |run: &Path, lines: &[serde_json::Value]| {
            let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
            std::fs::write(run.join(WRITTEN_FILES), lines).expect("file");
        };
        let long_ago = SystemTime::now() - Duration::from_secs(7_200);
        let long_ago = long_ago.duration_since(UNIX_EPOCH).expect("after 1970");
        list(
            &own,
            &[
                serde_json::json!({ "path": root.join("shared"), "is_folder": true }),
                serde_json::json!({ "path": root.join("shared/mine.pt") }),
                serde_json::json!({ "path": root.join("theirs.pt"), "is_redirected": true }),
                serde_json::json!({
                    "path": root.join("left"), "is_folder": true, "since": long_ago.as_secs_f64(),
                }),
            ],
        );
        list(
            &other,
            &[serde_json::json!({ "path": root.join("shared/theirs.pt") })],
        );
        let removed = remove_written_files(&own, SystemTime::now() - Duration::from_secs(60));
        let expected = ["left", "left/state.json", "shared/mine.pt"].map(|path| root.join(path));
        assert_eq!(removed, expected);
        assert!(root.join("shared/theirs.pt").exists());
        assert!(root.join("theirs.pt").exists());
    }

    #[test]
    fn a_folder_is_left_to_a_rehearsal_that_runs_around_it_until_that_one_ends() {
        let folder = tempfile::tempdir().expect("folder");
        let root = folder.path();
        let runs = ["first", "second"].map(|name| root.join(format!("{RUN_FOLDER_PREFIX}{name}")));
        let output = root.join("output");
        for path in [&runs[0], &runs[1], &output] {
            std::fs::create_dir(path).expect("folder");
        }
        let started = SystemTime::now() - Duration::from_secs(60);
        for run in &runs {
            open_list(run, root).expect("list");
        }
        std::fs::write(output.join("state.json"), "x").expect("file");
        let line = serde_json::json!({ "path": output, "is_folder": true });
        let mut list = std::fs::File::options()
            .append(true)
            .open(runs[0].join(WRITTEN_FILES))
            .expect("list");
        writeln!(list, "{line}").expect("line");
        drop(list);
        assert!(remove_written_files(&runs[0], started).is_empty());
        assert!(output.exists(), "the second may be about to write there");
        let removed = remove_written_files(&runs[1], SystemTime::now());
        assert_eq!(removed, [output.clone(), output.join("state.json")]);
        assert!(root.exists());
    }

    #[test]
    fn a_run_that_wrote_nothing_has_nothing_removed() {
        let folder = tempfile::tempdir().expect("folder");
        assert!(remove_written_files(folder.path(), SystemTime::now()).is_empty());
    }
}

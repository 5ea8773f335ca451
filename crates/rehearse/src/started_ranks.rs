//! Which ranks the launchers of a run have started, and which of them died of a signal: what the agent writes into the
//! ranks' folder before anything else can happen to them.

use std::collections::BTreeMap;
use std::path::Path;

use ghostgpu_session::files::{
    RANK_BLOCKED_PREFIX, RANK_FAULT_PREFIX, RANK_SPAWNED_PREFIX, RANK_STARTED_PREFIX,
    RANK_WAITING_PREFIX, RANKS_FOLDER,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The ranks of a run's jobs, as they were started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartedRanks {
    /// Those whose variables said so, each with its newest process. Spawned ones learn their number later.
    pub by_variables: BTreeMap<u32, u32>,
    /// How many of a job's ranks were to be started on this machine; `None` if nothing says so.
    pub here: Option<u32>,
    /// By process id: what `faulthandler` wrote when the process died.
    pub faults: BTreeMap<u32, String>,
    /// By process id: the call of other ranks in which it was when it was ended.
    pub waiting: BTreeMap<u32, String>,
    /// Some ranks met over NCCL.
    pub has_communicators: bool,
}

/// What is read of a file `waiting-<pid>` or `blocked-<pid>`.
#[derive(Deserialize)]
struct Waiting {
    waits_in: String,
}

/// The contents of a file `started-<pid>`.
#[derive(Deserialize)]
struct Started {
    pid: u32,
    rank: u32,
    parent: u32,
    began: u64,
    here: Option<u32>,
}

impl StartedRanks {
    /// Reads the ranks' folder of a run. What cannot be read is left out: it only explains.
    pub fn gather(run_dir: &Path) -> Self {
        let mut found = Self::default();
        let mut started: Vec<Started> = Vec::new();
        let entries = std::fs::read_dir(run_dir.join(RANKS_FOLDER));
        for entry in entries.into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if path.is_dir() {
                found.has_communicators = true;
            } else if name.contains('.') {
                // It was being written.
            } else if name.starts_with(RANK_STARTED_PREFIX) {
                started.extend(read::<Started>(&path));
            } else if name.starts_with(RANK_SPAWNED_PREFIX) {
                let spawned = read::<Vec<serde_json::Value>>(&path).unwrap_or_default();
                found.here = found.here.max(u32::try_from(spawned.len()).ok());
            } else if let Some(pid) = name
                .strip_prefix(RANK_WAITING_PREFIX)
                .or(name.strip_prefix(RANK_BLOCKED_PREFIX))
            {
                if let (Ok(pid), Some(waiting)) = (pid.parse(), read::<Waiting>(&path)) {
                    found.waiting.insert(pid, waiting.waits_in);
                }
            } else if let Some(pid) = name.strip_prefix(RANK_FAULT_PREFIX) {
                let text = std::fs::read(&path).unwrap_or_default();
                if let (Ok(pid), false) = (pid.parse(), text.is_empty()) {
                    let text = String::from_utf8_lossy(&text).into_owned();
                    found.faults.insert(pid, text);
                }
            }
        }
        // What a rank starts itself has its variables too.
        let of_rank: BTreeMap<u32, u32> = started.iter().map(|it| (it.pid, it.rank)).collect();
        started.retain(|it| of_rank.get(&it.parent) != Some(&it.rank));
        started.sort_by_key(|it| it.began);
        found.by_variables = started.iter().map(|it| (it.rank, it.pid)).collect();
        found.here = started.iter().filter_map(|it| it.here).max().or(found.here);
        found
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// What a process died of and where, from what `faulthandler` wrote: `a segmentation fault (SIGSEGV) at train.py:9`.
pub fn fatal_signal(fault: &str) -> Option<String> {
    const NAMES: [(&str, &str); 5] = [
        ("Segmentation fault", "a segmentation fault (SIGSEGV)"),
        ("Aborted", "SIGABRT"),
        ("Bus error", "a bus error (SIGBUS)"),
        ("Floating", "a division by zero (SIGFPE)"),
        ("Illegal instruction", "an illegal instruction (SIGILL)"),
    ];
    let said = fault
        .lines()
        .find_map(|line| line.strip_prefix("Fatal Python error: "))?;
    let name = NAMES.iter().find(|(begins, _)| said.starts_with(begins));
    let name = name.map_or(said.trim(), |(_, name)| *name);
    // The innermost frame comes first.
    let frames = || fault.lines().filter_map(frame);
    let is_users = |(file, _): &(&str, &str)| {
        ![
            "site-packages/",
            "dist-packages/",
            "/lib/python3",
            "<frozen",
        ]
        .iter()
        .any(|part| file.contains(part))
    };
    let place = frames().find(is_users).or_else(|| frames().next());
    Some(match place {
        Some((file, line)) => format!("{name} at {}:{line}", file.rsplit('/').next()?),
        None => name.to_owned(),
    })
}

/// `  File "/home/me/train.py", line 9 in main`.
fn frame(line: &str) -> Option<(&str, &str)> {
    let (file, rest) = line
        .trim()
        .strip_prefix("File \"")?
        .split_once("\", line ")?;
    Some((file, rest.split(' ').next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAULT: &str = "Fatal Python error: Segmentation fault\n\n\
        Current thread 0x00007f0d (most recent call first):\n  \
        File \"/usr/lib/python3.11/ctypes/__init__.py\", line 519 in string_at\n  \
        File \"/home/me/train.py\", line 9 in <module>\n\n\
        Extension modules: numpy.core._multiarray_umath\n";

    #[test]
    fn a_fault_is_told_with_its_signal_and_the_users_line() {
        let told = fatal_signal(FAULT);
        assert_eq!(
            told.as_deref(),
            Some("a segmentation fault (SIGSEGV) at train.py:9")
        );
        assert_eq!(
            fatal_signal("Fatal Python error: Aborted\n").as_deref(),
            Some("SIGABRT")
        );
        assert_eq!(fatal_signal(""), None);
    }

    #[test]
    fn ranks_are_those_that_were_started_and_not_what_they_start_themselves() {
        let folder = tempfile::tempdir().expect("folder");
        let ranks = folder.path().join(RANKS_FOLDER);
        std::fs::create_dir(&ranks).expect("folder");
        assert_eq!(StartedRanks::gather(folder.path()), StartedRanks::default());
        let write = |name: &str, text: &str| std::fs::write(ranks.join(name), text).expect("file");
        write(
            "started-7",
            r#"{"pid": 7, "began": 1, "rank": 0, "parent": 1, "here": 2}"#,
        );
        write(
            "started-8",
            r#"{"pid": 8, "began": 1, "rank": 1, "parent": 1, "here": 2}"#,
        );
        write(
            "started-9",
            r#"{"pid": 9, "began": 2, "rank": 1, "parent": 8, "here": 2}"#,
        );
        write("started-10.unfinished", "{");
        write("fault-8", FAULT);
        write("fault-7", "");
        write(
            "waiting-7",
            r#"{"rank": 0, "waits_in": "all_reduce", "awaits": [8]}"#,
        );
        let found = StartedRanks::gather(folder.path());
        assert_eq!(found.by_variables, BTreeMap::from([(0, 7), (1, 8)]));
        assert_eq!(found.here, Some(2));
        assert_eq!(found.faults.keys().collect::<Vec<_>>(), [&8]);
        assert_eq!(
            found.waiting,
            BTreeMap::from([(7, "all_reduce".to_owned())])
        );
        assert!(!found.has_communicators);
    }
}

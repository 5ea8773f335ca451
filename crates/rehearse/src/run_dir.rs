//! The folder of one run: private, and removed when the run is over.
//!
//! A process that is killed cannot remove its folder. So the owner of each folder holds a lock, and the next start
//! removes every folder whose lock is free.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, SystemTime};

use ghostgpu_session::Session;
use ghostgpu_session::card_usage::{create_usage_file, hold_for_others};
use ghostgpu_session::files::{RUN_FOLDER_PREFIX, SESSION_FILE};

use crate::environment::{Places, cache_folders};
use crate::failure::Failure;
use crate::layout::{LIBRARY_NAME, Layout};
use crate::written_files::{open_list, remove_written_files};

/// The names under which programs look for the driver and for NVML.
///
/// `LIBRARY_NAME` itself is among the links because the loader splits `LD_PRELOAD` at spaces and
/// colons: an installation may lie in a folder that has them, this one does not.
const LINKS: [&str; 5] = [
    LIBRARY_NAME,
    "libcuda.so.1",
    "libcuda.so",
    "libnvidia-ml.so.1",
    "libnvidia-ml.so",
];

/// The name under which our own program describes the virtual cards like NVIDIA's tool.
pub const NVIDIA_SMI: &str = "nvidia-smi";

/// The file whose lock the owner of a folder holds.
const LOCK_FILE: &str = "owner.lock";

/// Tolerance for file times: the kernel uses the time of its last tick, which is a few milliseconds old.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// A folder that is removed when dropped, or by the next start if its owner is killed.
#[derive(Debug)]
pub struct OwnedFolder {
    // Fields are dropped in this order, so the folder is removed before the lock is released.
    folder: tempfile::TempDir,
    _lock: File,
}

impl OwnedFolder {
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    fn create_in(root: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix(RUN_FOLDER_PREFIX)
            .tempdir_in(root)?;
        // Locked before it gets its name, so that no other process finds it unlocked.
        let unlocked = folder.path().join("unlocked");
        let lock = File::create_new(&unlocked)?;
        // On a file system without locks the folder has no lock file, so only its owner ever removes it.
        if lock.lock().is_ok() {
            std::fs::rename(unlocked, folder.path().join(LOCK_FILE))?;
        }
        Ok(Self {
            folder,
            _lock: lock,
        })
    }
}

/// A run's folder. Dropping it removes it with everything in it.
#[derive(Debug)]
pub struct RunDir {
    folder: OwnedFolder,
}

impl RunDir {
    /// Makes the folder with the links and the cache folders in it.
    pub fn create(layout: &Layout) -> Result<Self, Failure> {
        Self::try_create(layout).map_err(|error| no_folder(&error))
    }

    fn try_create(layout: &Layout) -> io::Result<Self> {
        let run = Self {
            folder: make_folder()?,
        };
        std::fs::create_dir(run.library_dir())?;
        for name in LINKS {
            symlink(&layout.library, run.library_dir().join(name))?;
        }
        std::fs::create_dir(run.program_dir())?;
        symlink(&layout.program, run.program_dir().join(NVIDIA_SMI))?;
        for name in cache_folders() {
            std::fs::create_dir_all(run.cache_dir().join(name))?;
        }
        Ok(run)
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn library_dir(&self) -> PathBuf {
        self.path().join("lib")
    }

    /// The first folder on the script's `PATH`.
    pub fn program_dir(&self) -> PathBuf {
        self.path().join("bin")
    }

    pub fn cache_dir(&self) -> PathBuf {
        self.path().join("cache")
    }

    /// The library under a path that is safe in `LD_PRELOAD`.
    pub fn preload(&self) -> PathBuf {
        self.library_dir().join(LIBRARY_NAME)
    }

    /// Writes the session, the list of written files, and a usage file in which others use `reserve_bytes` of every card.
    pub fn write_session(&self, session: &Session, reserve_bytes: u64) -> anyhow::Result<()> {
        create_usage_file(self.path(), session.devices.len())?;
        hold_for_others(self.path(), reserve_bytes)?;
        let text = serde_json::to_vec_pretty(session)?;
        std::fs::write(self.path().join(SESSION_FILE), text)?;
        if !session.keep_checkpoints
            && let Ok(workplace) = std::env::current_dir()
        {
            open_list(self.path(), &workplace)?;
        }
        Ok(())
    }

    /// Calls `use_places` with the folders that the environment names.
    pub fn with_places<T>(&self, inject_dir: &Path, use_places: impl FnOnce(Places) -> T) -> T {
        use_places(Places {
            run_dir: self.path(),
            library_dir: &self.library_dir(),
            program_dir: &self.program_dir(),
            cache_dir: &self.cache_dir(),
            inject_dir,
        })
    }
}

/// A folder whose path is safe in `LD_PRELOAD`, removed when dropped.
pub fn temporary_folder() -> Result<OwnedFolder, Failure> {
    make_folder().map_err(|error| no_folder(&error))
}

fn make_folder() -> io::Result<OwnedFolder> {
    static REMOVED_ABANDONED: Once = Once::new();
    let root = temporary_root(std::env::temp_dir());
    REMOVED_ABANDONED.call_once(|| remove_abandoned(&root));
    OwnedFolder::create_in(&root)
}

/// Removes the folders of runs that were killed, with what their scripts wrote elsewhere.
fn remove_abandoned(root: &Path) {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        if !name.to_string_lossy().starts_with(RUN_FOLDER_PREFIX) {
            continue;
        }
        let folder = entry.path();
        // A folder made by another user must not decide which files we remove.
        if !is_own(&folder) {
            continue;
        }
        // A folder that is being created has no lock file yet.
        let Ok(lock) = File::open(folder.join(LOCK_FILE)) else {
            continue;
        };
        if lock.try_lock().is_err() {
            continue;
        }
        if let Some(session) = session_in(&folder)
            && !session.keep_checkpoints
        {
            remove_written_files(&folder, started(&folder));
        }
        // If this fails, a later start tries again.
        let _ = std::fs::remove_dir_all(&folder);
    }
}

/// Whether this is a folder, not a link to one, and belongs to the user who runs us.
pub(crate) fn is_own(folder: &Path) -> bool {
    let (Ok(folder), Ok(own)) = (
        folder.symlink_metadata(),
        Path::new("/proc/self").metadata(),
    ) else {
        return false;
    };
    folder.is_dir() && folder.uid() == own.uid()
}

fn session_in(folder: &Path) -> Option<Session> {
    Session::load(&folder.join(SESSION_FILE)).ok()
}

/// When the run of a folder began. Files that its script wrote are newer.
fn started(folder: &Path) -> SystemTime {
    let written = std::fs::metadata(folder.join(SESSION_FILE));
    let written = written.and_then(|metadata| metadata.modified());
    written.map_or_else(|_| SystemTime::now(), |time| time - TICK)
}

fn no_folder(error: &io::Error) -> Failure {
    Failure::new(format!("cannot make a folder for the run: {error}"))
        .with_hint("set TMPDIR to a folder that can be written")
}

/// The system's folder for temporary files, unless its name would break `LD_PRELOAD`.
fn temporary_root(preferred: PathBuf) -> PathBuf {
    let is_safe = |path: &Path| {
        path.is_absolute() && !path.to_string_lossy().contains([' ', ':', ';', '\t', '\n'])
    };
    // The script may change its working folder, so a relative TMPDIR must be resolved now.
    match std::path::absolute(&preferred) {
        Ok(absolute) if is_safe(&absolute) => absolute,
        _ => PathBuf::from("/tmp"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_run_leaves_nothing() {
        let layout = Layout {
            program: "/nowhere/ghostgpu".into(),
            library: "/nowhere/libghostgpu.so".into(),
            cudnn_program: None,
            inject_dir: "/nowhere/inject".into(),
        };
        let run = RunDir::create(&layout).expect("folder");
        let path = run.path().to_owned();
        assert!(run.preload().is_symlink());
        assert!(run.library_dir().join("libcuda.so.1").is_symlink());
        assert!(run.program_dir().join("nvidia-smi").is_symlink());
        drop(run);
        assert!(!path.exists());
    }

    #[test]
    fn the_folder_of_a_run_that_was_killed_is_removed_and_that_of_one_that_lives_is_not() {
        let root = tempfile::tempdir().expect("folder");
        let living = OwnedFolder::create_in(root.path()).expect("folder");
        let killed = OwnedFolder::create_in(root.path()).expect("folder");
        let killed_path = killed.path().to_owned();
        // As after a kill: the lock is free, and the folder still exists.
        let OwnedFolder { folder, _lock } = killed;
        std::fs::write(folder.path().join("output.txt"), "x").expect("file");
        let _ = folder.keep();
        drop(_lock);
        let linked = root.path().join(format!("{RUN_FOLDER_PREFIX}link"));
        let elsewhere = tempfile::tempdir().expect("folder");
        std::fs::write(elsewhere.path().join(LOCK_FILE), "").expect("file");
        symlink(elsewhere.path(), &linked).expect("link");
        let being_made = root.path().join(format!("{RUN_FOLDER_PREFIX}new"));
        let not_ours = root.path().join("ghostgpu-notes");
        for folder in [&being_made, &not_ours] {
            std::fs::create_dir(folder).expect("folder");
        }
        remove_abandoned(root.path());
        assert!(!killed_path.exists());
        assert!(living.path().exists());
        assert!(being_made.exists() && not_ours.exists());
        assert!(
            elsewhere.path().join(LOCK_FILE).exists(),
            "a link leads out"
        );
    }

    #[test]
    fn a_temporary_folder_that_the_loader_would_split_is_avoided() {
        assert_eq!(temporary_root("/var/tmp".into()), Path::new("/var/tmp"));
        assert_eq!(temporary_root("/my files".into()), Path::new("/tmp"));
        assert_eq!(temporary_root("/a:b".into()), Path::new("/tmp"));
    }
}

//! The folder of one run: private, short-lived, and gone when the run is.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use ghostgpu_session::Session;
use ghostgpu_session::card_usage::{create_usage_file, hold_for_others};
use ghostgpu_session::files::SESSION_FILE;

use crate::environment::{Places, cache_folders};
use crate::failure::Failure;
use crate::layout::LIBRARY_NAME;

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

/// A run's folder. Dropping it removes it with everything in it.
#[derive(Debug)]
pub struct RunDir {
    folder: tempfile::TempDir,
}

impl RunDir {
    /// Makes the folder with the links and the cache folders in it.
    pub fn create(library: &Path) -> Result<Self, Failure> {
        Self::try_create(library).map_err(|error| no_folder(&error))
    }

    fn try_create(library: &Path) -> io::Result<Self> {
        let run = Self {
            folder: make_folder()?,
        };
        std::fs::create_dir(run.library_dir())?;
        for name in LINKS {
            symlink(library, run.library_dir().join(name))?;
        }
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

    pub fn cache_dir(&self) -> PathBuf {
        self.path().join("cache")
    }

    /// The library under a path that the loader can be given.
    pub fn preload(&self) -> PathBuf {
        self.library_dir().join(LIBRARY_NAME)
    }

    /// Writes the session, and a usage file for it in which others hold `reserve_bytes` of every card.
    pub fn write_session(&self, session: &Session, reserve_bytes: u64) -> anyhow::Result<()> {
        create_usage_file(self.path(), session.devices.len())?;
        hold_for_others(self.path(), reserve_bytes)?;
        let text = serde_json::to_vec_pretty(session)?;
        std::fs::write(self.path().join(SESSION_FILE), text)?;
        Ok(())
    }

    /// Calls `use_places` with the folders that the environment names.
    pub fn with_places<T>(&self, inject_dir: &Path, use_places: impl FnOnce(Places) -> T) -> T {
        use_places(Places {
            run_dir: self.path(),
            library_dir: &self.library_dir(),
            cache_dir: &self.cache_dir(),
            inject_dir,
        })
    }
}

/// An empty folder whose path the loader can be given, gone when dropped.
pub fn temporary_folder() -> Result<tempfile::TempDir, Failure> {
    make_folder().map_err(|error| no_folder(&error))
}

fn make_folder() -> io::Result<tempfile::TempDir> {
    tempfile::Builder::new()
        .prefix("ghostgpu-")
        .tempdir_in(temporary_root(std::env::temp_dir()))
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
    // The script may change its folder: a relative TMPDIR must not follow it.
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
        let run = RunDir::create(Path::new("/nowhere/libghostgpu.so")).expect("folder");
        let path = run.path().to_owned();
        assert!(run.preload().is_symlink());
        assert!(run.library_dir().join("libcuda.so.1").is_symlink());
        drop(run);
        assert!(!path.exists());
    }

    #[test]
    fn a_temporary_folder_that_the_loader_would_split_is_avoided() {
        assert_eq!(temporary_root("/var/tmp".into()), Path::new("/var/tmp"));
        assert_eq!(temporary_root("/my files".into()), Path::new("/tmp"));
        assert_eq!(temporary_root("/a:b".into()), Path::new("/tmp"));
    }
}

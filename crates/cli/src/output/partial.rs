//! A file that has no name until it is complete, so that nothing is left behind if this process is killed.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, OFlags, linkat};
use tempfile::NamedTempFile;

/// The permissions that `open` would use; the user's umask still applies.
const MODE: u32 = 0o666;

/// A file that will replace another one.
#[derive(Debug)]
pub enum Partial {
    Unnamed(File),
    /// Not every file system has files without names. This one is removed when it is dropped.
    Named(NamedTempFile),
}

impl Partial {
    /// An empty file in the folder of `path`.
    pub fn beside(path: &Path) -> io::Result<Self> {
        let folder = folder_of(path);
        let unnamed = OpenOptions::new()
            .write(true)
            .mode(MODE)
            .custom_flags(OFlags::TMPFILE.bits() as i32)
            .open(folder);
        match unnamed {
            Ok(file) => Ok(Self::Unnamed(file)),
            Err(error) => match named_in(folder) {
                Ok(file) => Ok(Self::Named(file)),
                // The second error would name a file that the user has never seen.
                Err(second) if second.kind() == error.kind() => Err(error),
                Err(second) => Err(second.kind().into()),
            },
        }
    }

    /// Gives the file its name; an older file of that name is replaced.
    pub fn persist(self, path: &Path) -> io::Result<()> {
        match self {
            Self::Named(file) => Ok(file.persist(path).map(drop)?),
            Self::Unnamed(file) => {
                // A link cannot replace a file, but renaming can.
                let between = free_name_in(folder_of(path));
                let descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
                linkat(CWD, descriptor, CWD, &between, AtFlags::SYMLINK_FOLLOW)?;
                std::fs::rename(&between, path).inspect_err(|_| {
                    let _ = std::fs::remove_file(&between);
                })
            }
        }
    }
}

impl io::Write for Partial {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unnamed(file) => file.write(bytes),
            Self::Named(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Unnamed(file) => file.flush(),
            Self::Named(file) => file.flush(),
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

fn free_name_in(folder: &Path) -> PathBuf {
    let own = std::process::id();
    let mut names = (0..).map(|number| folder.join(format!(".ghostgpu-{own}-{number}.partial")));
    let free = names.find(|name| !name.exists());
    free.unwrap_or_else(|| folder.join(format!(".ghostgpu-{own}.partial")))
}

fn named_in(folder: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".ghostgpu-")
        .suffix(".partial")
        .permissions(std::fs::Permissions::from_mode(MODE))
        .tempfile_in(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn an_unfinished_file_is_not_in_its_folder() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("out.json");
        std::fs::write(&path, "old").expect("file");
        let mut partial = Partial::beside(&path).expect("writable");
        partial.write_all(b"new").expect("written");
        // Another file system than this test's may have no files without names.
        if matches!(partial, Partial::Unnamed(_)) {
            assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 1);
        }
        partial.persist(&path).expect("complete");
        assert_eq!(std::fs::read_to_string(&path).expect("file"), "new");
        assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 1);
    }

    #[test]
    fn a_file_with_a_name_is_replaced_too() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("out.json");
        let partial = Partial::Named(named_in(folder.path()).expect("writable"));
        partial.persist(&path).expect("complete");
        assert!(path.exists());
    }

    #[test]
    fn an_error_names_no_file_that_the_user_did_not_name() {
        let error = Partial::beside(Path::new("/nowhere/out.json")).expect_err("no folder");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(!error.to_string().contains("partial"), "{error}");
    }
}

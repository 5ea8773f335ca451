//! Libraries of the user's installation that cuDNN opens by their bare names.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// cuDNN's own folder and, as in NVIDIA's wheels, its siblings: `nvidia/*/lib`.
pub fn folders_beside(cudnn: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    if let Some(own) = cudnn.parent() {
        folders.push(own.to_owned());
        if let Some(vendor) = own.parent().and_then(Path::parent) {
            let packages = std::fs::read_dir(vendor).into_iter().flatten().flatten();
            folders.extend(packages.map(|package| package.path().join("lib")));
        }
    }
    folders.sort();
    folders
}

/// The files in `folders` whose names begin with `stem`, such as `libnvrtc.so.`; in each folder the
/// one with the smallest version first.
pub fn libraries(folders: &[PathBuf], stem: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in folders {
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut fitting: Vec<PathBuf> = files
            .map(|file| file.path())
            .filter(|path| {
                path.file_name()
                    .is_some_and(|name: &OsStr| name.as_bytes().starts_with(stem.as_bytes()))
            })
            .collect();
        fitting.sort();
        found.append(&mut fitting);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_in_the_wheels_beside_cudnn() {
        let root = tempfile::tempdir().unwrap();
        let vendor = root.path().join("nvidia");
        for file in [
            "cudnn/lib/libcudnn.so.9",
            "cu13/lib/libnvrtc.so.13",
            "cu13/lib/libnvrtc.alt.so.13",
            "cu13/lib/libnvrtc-builtins.so.13.0",
        ] {
            let path = vendor.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let folders = folders_beside(&vendor.join("cudnn/lib/libcudnn.so.9"));
        assert_eq!(
            libraries(&folders, "libnvrtc.so."),
            [vendor.join("cu13/lib/libnvrtc.so.13")]
        );
    }
}

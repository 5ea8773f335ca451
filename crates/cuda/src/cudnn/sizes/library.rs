//! Where the script's own cuDNN lies, and the libraries it needs beside it.

use std::collections::BTreeSet;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::cudnn::handle::LIBRARY_NAMES;
use crate::real_library;

/// The file of the cuDNN that the process has loaded.
pub fn path() -> Option<PathBuf> {
    let function = real_library::find_loaded(&LIBRARY_NAMES, c"cudnnGetVersion")?;
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: `dladdr` fills `info` when it returns non-zero; the name lives as long as the library.
    let file = unsafe {
        if libc::dladdr(function, info.as_mut_ptr()) == 0 {
            return None;
        }
        CStr::from_ptr(info.assume_init().dli_fname)
    };
    // The function may come from one of cuDNN's parts; they all lie in one folder.
    let folder = Path::new(OsStr::from_bytes(file.to_bytes())).parent()?;
    let main = folder.join("libcudnn.so.9");
    main.exists().then_some(main)
}

/// The folders of libraries that cuDNN opens by bare name, where the process has them loaded.
pub fn folders_of_companions() -> Vec<PathBuf> {
    const STEMS: [&str; 3] = ["libcublasLt.so", "libcublas.so", "libnvrtc.so"];
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else {
        return Vec::new();
    };
    let folders: BTreeSet<PathBuf> = maps
        .lines()
        .filter_map(|line| line.find('/').map(|start| Path::new(&line[start..])))
        .filter(|file| {
            let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
            STEMS.iter().any(|stem| name.starts_with(stem))
        })
        .filter_map(|file| file.parent().map(Path::to_owned))
        .collect();
    folders.into_iter().collect()
}

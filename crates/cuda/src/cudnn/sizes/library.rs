//! Where the script's own cuDNN and the libraries that it needs are installed.

use std::collections::BTreeSet;
use std::ffi::{CStr, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::cudnn::handle::LIBRARY_NAMES;
use crate::real_library;

/// The file of the cuDNN that the process has loaded.
pub fn path() -> Option<PathBuf> {
    let function = real_library::find_loaded(&LIBRARY_NAMES, c"cudnnGetVersion")?;
    // The function may come from one of cuDNN's parts; they are all in one folder.
    let main = file_of(function)?.parent()?.join("libcudnn.so.9");
    main.exists().then_some(main)
}

/// The library that replaces cuBLASLt and the driver for cuDNN; it is beside this one.
pub fn companions() -> Option<PathBuf> {
    // The command line preloads a link to this library from the run's folder.
    let own = std::fs::canonicalize(file_of(companions as *const c_void)?).ok()?;
    let library = own.parent()?.join("libghostgpu_oracle_companions.so");
    library.exists().then_some(library)
}

/// The file that the library with this function was loaded from.
fn file_of(function: *const c_void) -> Option<PathBuf> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: `dladdr` fills `info` when it returns non-zero; the name lives as long as the library.
    let file = unsafe {
        if libc::dladdr(function, info.as_mut_ptr()) == 0 {
            return None;
        }
        CStr::from_ptr(info.assume_init().dli_fname)
    };
    let file = Path::new(OsStr::from_bytes(file.to_bytes()));
    // A relative path refers to the folder the process started in, which it may have left.
    file.is_absolute().then(|| file.to_owned())
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

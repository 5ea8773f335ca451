//! The environment of the rehearsed script: the stand-in comes first, and every cache is private.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use ghostgpu_session::SESSION_VARIABLE;
use ghostgpu_session::files::SESSION_FILE;

/// The caches of compilers and autotuners, and their folders in the run folder.
///
/// Timings taken on a virtual card must never steer a real run, and a real run must not find code compiled for one.
/// Downloads (models, datasets) are not redirected: they are the same with and without a card.
const PRIVATE_CACHES: [(&str, &str); 14] = [
    ("TORCHINDUCTOR_CACHE_DIR", "inductor"),
    // Triton keeps its cache, dumps and overrides below `$TRITON_HOME/.triton` unless told where.
    ("TRITON_HOME", "triton-home"),
    ("TRITON_CACHE_DIR", "triton"),
    ("TRITON_DUMP_DIR", "triton-dump"),
    ("TRITON_OVERRIDE_DIR", "triton-override"),
    ("TORCH_EXTENSIONS_DIR", "extensions"),
    // PyTorch's own run-time compiled kernels (jiterator).
    ("PYTORCH_KERNEL_CACHE_PATH", "kernels"),
    // The driver's cache of code compiled from PTX.
    ("CUDA_CACHE_PATH", "driver"),
    ("HELION_CACHE_DIR", "helion"),
    ("TILELANG_CACHE_DIR", "tilelang"),
    ("FLASHINFER_WORKSPACE_BASE", "flashinfer"),
    ("DG_JIT_CACHE_DIR", "deepgemm"),
    ("CUPY_CACHE_DIR", "cupy"),
    ("NUMBA_CACHE_DIR", "numba"),
];

/// Switches that keep results of this run from leaving it in other ways.
const SWITCHES: [(&str, &str); 6] = [
    ("TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE", "0"),
    ("TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE", "0"),
    ("TORCHINDUCTOR_BUNDLED_AUTOTUNE_REMOTE_CACHE", "0"),
    ("TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE", "0"),
    ("TORCH_DYNAMO_AUTOMATIC_DYNAMIC_REMOTE_PGO", "0"),
    // A run whose every loss is 0 has no place in the user's experiment tracker.
    ("WANDB_MODE", "disabled"),
];

/// User settings that would re-enable a shared cache.
const REMOVED: [&str; 3] = [
    "TRITON_CACHE_MANAGER",
    "TRITON_REMOTE_CACHE_BACKEND",
    "TORCH_COMPILE_STICKY_PGO_KEY",
];

/// The default of `torchrun --log-dir`. Without it, each start leaves a folder behind in the system's temporary folder.
const LAUNCHER_LOGS: &str = "PET_LOG_DIR";

/// Where programs are searched for without a `PATH`.
pub const USUAL_PATH: &str = "/usr/bin:/bin";

/// How the script's environment differs from our own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub set: BTreeMap<&'static str, OsString>,
    pub removed: Vec<&'static str>,
}

/// The parts of a run folder that the environment refers to.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    pub run_dir: &'a Path,
    /// Holds links to the library under the names of NVIDIA's driver libraries.
    pub library_dir: &'a Path,
    /// Holds programs that stand in for others.
    pub program_dir: &'a Path,
    pub cache_dir: &'a Path,
    pub inject_dir: &'a Path,
}

/// The changes for one run; `present` reads the current environment.
pub fn changes(places: Places, present: impl Fn(&str) -> Option<OsString>) -> Changes {
    let mut set = BTreeMap::new();
    set.insert(
        SESSION_VARIABLE,
        places.run_dir.join(SESSION_FILE).into_os_string(),
    );
    let preload = places.library_dir.join(crate::layout::LIBRARY_NAME);
    set.insert(
        "LD_PRELOAD",
        prepended(preload.as_os_str(), present("LD_PRELOAD")),
    );
    set.insert(
        "LD_LIBRARY_PATH",
        prepended(places.library_dir.as_os_str(), present("LD_LIBRARY_PATH")),
    );
    let path = present("PATH").unwrap_or_else(|| USUAL_PATH.into());
    set.insert(
        "PATH",
        prepended(places.program_dir.as_os_str(), Some(path)),
    );
    set.insert(
        "TRITON_LIBCUDA_PATH",
        places.library_dir.as_os_str().to_owned(),
    );
    // PyTorch's profiler announces operators to the library under this name: see `observer` there.
    set.insert("NVTX_INJECTION64_PATH", preload.into_os_string());
    set.insert(
        "PYTHONPATH",
        prepended(places.inject_dir.as_os_str(), present("PYTHONPATH")),
    );
    for (variable, folder) in PRIVATE_CACHES {
        set.insert(variable, places.cache_dir.join(folder).into_os_string());
    }
    set.insert(
        "PYTORCH_TUNABLEOP_FILENAME",
        places.cache_dir.join("tunableop.csv").into_os_string(),
    );
    for (variable, value) in SWITCHES {
        set.insert(variable, OsString::from(value));
    }
    if present(LAUNCHER_LOGS).is_none() {
        let logs = places.cache_dir.join("launcher-logs");
        set.insert(LAUNCHER_LOGS, logs.into_os_string());
    }
    Changes {
        set,
        removed: REMOVED.to_vec(),
    }
}

/// The folders that [`changes`] names and that must exist before the script starts.
pub fn cache_folders() -> impl Iterator<Item = &'static str> {
    PRIVATE_CACHES.iter().map(|&(_, folder)| folder)
}

/// Our own `LD_PRELOAD` with `library` in front.
pub fn preload_value(library: &Path) -> OsString {
    prepended(library.as_os_str(), std::env::var_os("LD_PRELOAD"))
}

/// `first:rest`, without a trailing colon, which would mean the current folder.
pub fn prepended(first: &OsStr, rest: Option<OsString>) -> OsString {
    let mut value = first.to_owned();
    if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
        value.push(":");
        value.push(rest);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places<'static> {
        Places {
            run_dir: Path::new("/run"),
            library_dir: Path::new("/run/lib"),
            program_dir: Path::new("/run/bin"),
            cache_dir: Path::new("/run/cache"),
            inject_dir: Path::new("/agent/inject"),
        }
    }

    #[test]
    fn the_stand_in_comes_before_what_the_user_had() {
        let changes = changes(places(), |variable| match variable {
            "LD_PRELOAD" => Some("/usr/lib/libjemalloc.so".into()),
            "PYTHONPATH" => Some("/project".into()),
            "LD_LIBRARY_PATH" => Some("".into()),
            _ => None,
        });
        assert_eq!(
            changes.set["LD_PRELOAD"],
            "/run/lib/libghostgpu.so:/usr/lib/libjemalloc.so"
        );
        assert_eq!(changes.set["PYTHONPATH"], "/agent/inject:/project");
        assert_eq!(changes.set["LD_LIBRARY_PATH"], "/run/lib");
        assert_eq!(changes.set["GHOSTGPU_SESSION"], "/run/session.json");
        assert_eq!(changes.set["PATH"], "/run/bin:/usr/bin:/bin");
    }

    #[test]
    fn every_cache_of_the_users_is_replaced_by_a_private_one() {
        let changes = changes(places(), |_| Some("/home/user/.cache/shared".into()));
        for (variable, _) in PRIVATE_CACHES {
            let value = changes.set[variable].to_string_lossy();
            assert!(value.starts_with("/run/cache/"), "{variable}={value}");
        }
        assert!(changes.removed.contains(&"TRITON_CACHE_MANAGER"));
    }

    #[test]
    fn logs_of_a_launcher_stay_in_the_run_unless_the_user_has_a_place_for_them() {
        let logs = |present: Option<&str>| {
            let mut changes = changes(places(), |_| present.map(OsString::from));
            changes.set.remove(LAUNCHER_LOGS)
        };
        assert_eq!(logs(None), Some("/run/cache/launcher-logs".into()));
        assert_eq!(logs(Some("/home/user/logs")), None);
    }

    #[test]
    fn private_caches_do_not_share_a_folder() {
        let folders: std::collections::BTreeSet<_> = cache_folders().collect();
        assert_eq!(folders.len(), PRIVATE_CACHES.len());
    }
}

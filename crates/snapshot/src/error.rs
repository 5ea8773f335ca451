//! Why a file is not a snapshot: one sentence each.

use std::path::PathBuf;

use thiserror::Error;

/// Which kind of file `torch.save` made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckpointKind {
    /// A zip archive: torch 1.6 and newer.
    Zip,
    /// Several pickles in a row: before torch 1.6, or `_use_new_zipfile_serialization=False`.
    Legacy,
}

/// Why a file could not be opened as a snapshot.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    #[error("`{}` is a folder, not a snapshot", path.display())]
    Directory { path: PathBuf },
    #[error("cannot open `{}`: {source}", path.display())]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("`{}` is empty", path.display())]
    Empty { path: PathBuf },
    #[error("`{}` is not a pickle (byte {offset}: {found})", path.display())]
    NotAPickle {
        path: PathBuf,
        offset: u64,
        found: String,
    },
    #[error("`{}` is a checkpoint made by torch.save, not a memory snapshot", path.display())]
    Checkpoint { path: PathBuf, kind: CheckpointKind },
    #[error("`{}` is {what}, not a memory snapshot", path.display())]
    OtherFormat { path: PathBuf, what: &'static str },
    #[error("`{}` is a pickle of something else than a memory snapshot: {found}", path.display())]
    SomethingElse { path: PathBuf, found: String },
    #[error(
        "`{}` is a pickle of something else than a memory snapshot: at byte {offset} it names the Python object `{module}.{name}`",
        path.display()
    )]
    NamesAnObject {
        path: PathBuf,
        offset: u64,
        module: String,
        name: String,
    },
    #[error("`{}` is cut off after {offset} bytes", path.display())]
    Truncated { path: PathBuf, offset: u64 },
    #[error("`{}` is damaged: {source}", path.display())]
    Damaged {
        path: PathBuf,
        source: ghostgpu_pickle::Error,
    },
    #[error("`{}` needs more than {limit_bytes} bytes of memory to be read (at byte {offset})", path.display())]
    TooLarge {
        path: PathBuf,
        limit_bytes: u64,
        offset: u64,
    },
    #[error("`{}` is a snapshot of no device at all: the process saw no GPU", path.display())]
    NoDevices { path: PathBuf },
    #[error("`{}` cannot be decompressed: {source}", path.display())]
    Compression {
        path: PathBuf,
        source: std::io::Error,
    },
}

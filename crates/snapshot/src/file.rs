//! Opening a snapshot's file: what it is packed in, and what it is instead.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use ghostgpu_pickle::Limits;

use crate::error::{CheckpointKind, OpenError};
use crate::read::read_from;
use crate::snapshot::Snapshot;
use crate::zstd::ZstdReader;

/// Opens a snapshot: a pickle, also packed with gzip or zstd, whatever the file is called.
pub fn open(path: &Path) -> Result<Snapshot, OpenError> {
    open_with(path, Limits::default())
}

/// Opens a snapshot that may need another amount of memory.
pub fn open_with(path: &Path, limits: Limits) -> Result<Snapshot, OpenError> {
    let io_error = |source| OpenError::Io {
        path: path.to_path_buf(),
        source,
    };
    if std::fs::metadata(path).map_err(io_error)?.is_dir() {
        return Err(OpenError::Directory {
            path: path.to_path_buf(),
        });
    }
    let packing = packing_of(&beginning_of(File::open(path).map_err(io_error)?).map_err(io_error)?);
    let first = beginning_of(unpack(path, packing).map_err(|source| compression(path, source))?)
        .map_err(|source| match packing {
            Packing::None => io_error(source),
            _ => compression(path, source),
        })?;
    refuse_other_formats(path, &first)?;
    let result = read_from(path, limits, &mut || unpack(path, packing));
    match result {
        // Decompressors report what is wrong with their input as failing reads.
        Err(OpenError::Io { source, .. }) if packing != Packing::None => {
            Err(compression(path, source))
        }
        other => other,
    }
}

fn compression(path: &Path, source: io::Error) -> OpenError {
    OpenError::Compression {
        path: path.to_path_buf(),
        source,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    None,
    Gzip,
    Zstd,
}

fn packing_of(first: &[u8]) -> Packing {
    match first {
        [0x1f, 0x8b, ..] => Packing::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Packing::Zstd,
        _ => Packing::None,
    }
}

fn unpack(path: &Path, packing: Packing) -> io::Result<Box<dyn Read>> {
    let file = File::open(path)?;
    Ok(match packing {
        Packing::None => Box::new(file),
        Packing::Gzip => Box::new(MultiGzDecoder::new(BufReader::with_capacity(1 << 17, file))),
        Packing::Zstd => Box::new(ZstdReader::new(BufReader::with_capacity(1 << 17, file))),
    })
}

fn beginning_of(mut source: impl Read) -> io::Result<Vec<u8>> {
    let mut first = Vec::new();
    source.by_ref().take(512).read_to_end(&mut first)?;
    Ok(first)
}

/// What people open by mistake.
fn refuse_other_formats(path: &Path, first: &[u8]) -> Result<(), OpenError> {
    let path = path.to_path_buf();
    // The first value of a checkpoint before torch 1.6 is this number (torch/serialization.py,
    // MAGIC_NUMBER), as a pickle of its own.
    const LEGACY_MAGIC: &[u8] = &[
        0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19,
    ];
    let what = match first {
        [b'P', b'K', 3, 4, ..] => {
            return Err(OpenError::Checkpoint {
                path,
                kind: CheckpointKind::Zip,
            });
        }
        [0x80, _, rest @ ..] if rest.starts_with(LEGACY_MAGIC) => {
            return Err(OpenError::Checkpoint {
                path,
                kind: CheckpointKind::Legacy,
            });
        }
        [b'<', b'!' | b'h' | b'H', ..] => "an HTML page",
        [0x89, b'H', b'D', b'F', ..] => "an HDF5 file",
        [b'{', b'"' | b'\n' | b'\r' | b' ', ..] | [b'[', b'{' | b'\n', ..] => "a JSON file",
        [_, _, _, _, _, _, _, 0, b'{', b'"', ..] => "a safetensors file",
        _ if first.get(257..262) == Some(b"ustar") => "a tar archive",
        _ => return Ok(()),
    };
    Err(OpenError::OtherFormat { path, what })
}

//! From a pickle to a [`Snapshot`].
//!
//! Most of a file is trace entries. They are taken out of the pickle's machine one by one as the file
//! streams by ([`collector`]), so a file of any size needs the room of its columns. The rest (segments,
//! settings) is read from the values that remain. A file that uses a taken entry again, or keeps its
//! entries where they were not expected, is read a second time, as a whole.

mod builder;
mod checks;
mod collector;
mod entry;
mod interner;
mod keys;
mod notes;
mod plain;
mod state;

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ghostgpu_pickle::{Error as PickleError, KeepAll, Limits, read_with};
use thiserror::Error;

use builder::Builder;
use collector::Collector;
use interner::Interner;

use crate::error::OpenError;
use crate::snapshot::Snapshot;

/// Reads a snapshot from bytes in memory.
pub fn read_bytes(bytes: &[u8], limits: Limits) -> Result<Snapshot, OpenError> {
    read_from(in_memory(), limits, &mut || Ok(Box::new(bytes)))
}

/// Reads a snapshot from bytes in memory without taking its entries as they go by: slower, in more
/// memory, and with the same result. For tests, which compare the two.
pub fn read_bytes_as_a_whole(bytes: &[u8], limits: Limits) -> Result<Snapshot, OpenError> {
    read_whole(&mut || Ok(Box::new(bytes)), limits)
        .map_err(|error| error.at(in_memory().to_path_buf()))
}

fn in_memory() -> &'static Path {
    Path::new("<bytes>")
}

/// Reads a snapshot from whatever `open` opens. It is opened a second time only for files that have to
/// be read as a whole. `name` is what errors call the file.
pub fn read_from<'a>(
    name: &Path,
    limits: Limits,
    open: &mut dyn FnMut() -> io::Result<Box<dyn Read + 'a>>,
) -> Result<Snapshot, OpenError> {
    let result = match stream(open, limits) {
        Err(ReadError::NotAsExpected | ReadError::Pickle(PickleError::TakenObjectUsed { .. })) => {
            read_whole(open, limits)
        }
        other => other,
    };
    result.map_err(|error| error.at(name.to_path_buf()))
}

/// Why reading did not end in a snapshot, before it is known which file it was.
#[derive(Debug, Error)]
enum ReadError {
    #[error(transparent)]
    Pickle(#[from] PickleError),
    #[error("{0}")]
    SomethingElse(String),
    #[error("no device")]
    NoDevices,
    #[error("more than {limit_bytes} bytes")]
    TooLarge { limit_bytes: u64 },
    /// Entries were taken from lists that turned out to be elsewhere.
    #[error("the entries are not where they were expected")]
    NotAsExpected,
}

impl ReadError {
    fn at(self, path: PathBuf) -> OpenError {
        match self {
            Self::SomethingElse(found) => OpenError::SomethingElse { path, found },
            Self::NoDevices => OpenError::NoDevices { path },
            Self::TooLarge { limit_bytes } => OpenError::TooLarge {
                path,
                limit_bytes,
                offset: 0,
            },
            Self::NotAsExpected => OpenError::SomethingElse {
                path,
                found: "its entries refer to each other".to_string(),
            },
            Self::Pickle(error) => match error {
                PickleError::Empty => OpenError::Empty { path },
                PickleError::Io(source) => OpenError::Io { path, source },
                PickleError::Truncated {
                    offset,
                    instruction_offset: 2..,
                } => OpenError::Truncated { path, offset },
                // Text that begins with the letter of an instruction: `import torch`, a log.
                PickleError::Global {
                    offset: offset @ 0,
                    module,
                    name,
                } if !(is_dotted_name(&module) && is_dotted_name(&name)) => OpenError::NotAPickle {
                    path,
                    offset,
                    found: "it is text".to_string(),
                },
                PickleError::Global {
                    offset,
                    module,
                    name,
                } => OpenError::NamesAnObject {
                    path,
                    offset,
                    module,
                    name,
                },
                PickleError::TooMuchMemory {
                    offset,
                    limit_bytes,
                } => OpenError::TooLarge {
                    path,
                    limit_bytes,
                    offset,
                },
                // What goes wrong in the first bytes was never a pickle.
                ref early if is_early(early) => OpenError::NotAPickle {
                    path,
                    offset: early.offset().unwrap_or(0),
                    found: early_reason(early),
                },
                source => OpenError::Damaged { path, source },
            },
        }
    }
}

/// Whether Python could have this name for a module, or for an object in one.
fn is_dotted_name(name: &str) -> bool {
    // A function in a function is `outer.<locals>.inner`.
    let is_allowed = |letter: char| letter.is_alphanumeric() || "._<>".contains(letter);
    name.chars().all(is_allowed)
}

/// Whether the very first instruction could not be followed.
fn is_early(error: &PickleError) -> bool {
    match error {
        PickleError::Truncated {
            instruction_offset, ..
        } => *instruction_offset < 2,
        other => other.offset().is_some_and(|offset| offset < 2),
    }
}

fn early_reason(error: &PickleError) -> String {
    match error {
        PickleError::UnknownInstruction { byte, .. } => {
            format!("0x{byte:02x} is no instruction of one")
        }
        PickleError::UnknownProtocol { protocol, .. } => {
            format!("protocol {protocol} does not exist")
        }
        _ => "it does not begin with a value".to_string(),
    }
}

/// Room for what is built from values: a short file can refer to one long list many times.
#[derive(Debug)]
struct Budget {
    left_bytes: u64,
    limit_bytes: u64,
}

impl Budget {
    fn spend(&mut self, bytes: usize) -> Result<(), ReadError> {
        match self.left_bytes.checked_sub(bytes as u64) {
            Some(left_bytes) => {
                self.left_bytes = left_bytes;
                Ok(())
            }
            None => Err(ReadError::TooLarge {
                limit_bytes: self.limit_bytes,
            }),
        }
    }
}

type Open<'a, 'b> = &'b mut dyn FnMut() -> io::Result<Box<dyn Read + 'a>>;

fn stream(open: Open<'_, '_>, limits: Limits) -> Result<Snapshot, ReadError> {
    let mut collector = Collector::new(limits.memory_bytes);
    let source = open().map_err(PickleError::Io)?;
    let pickle = match read_with(source, limits, keys::heap_with_keys(), &mut collector) {
        Err(PickleError::Stopped { .. }) => {
            return Err(ReadError::TooLarge {
                limit_bytes: limits.memory_bytes,
            });
        }
        other => other?,
    };
    let Collector {
        interner, targets, ..
    } = collector;
    Builder::new(pickle, interner, targets, limits).build()
}

fn read_whole(open: Open<'_, '_>, limits: Limits) -> Result<Snapshot, ReadError> {
    let source = open().map_err(PickleError::Io)?;
    let pickle = read_with(source, limits, keys::heap_with_keys(), &mut KeepAll)?;
    Builder::new(pickle, Interner::default(), Vec::new(), limits).build()
}

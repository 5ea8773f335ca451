//! Why a file could not be read or written, in one sentence each, with the position.

use std::io;

use thiserror::Error;

use crate::check::Inconsistency;

/// What is wrong with a file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("this is no recording of GhostGPU's (at byte 0)")]
    NotARecording,
    #[error(
        "this recording has format {version}, and this GhostGPU reads formats {} to {} (at byte 8)",
        super::VERSION,
        super::VERSION_WITH_RANKS
    )]
    OtherVersion { version: u32 },
    #[error("the recording ends too early, at byte {offset}")]
    Truncated { offset: u64 },
    #[error("at byte {offset}: {what}")]
    Section { offset: u64, what: String },
    #[error("in the section at byte {offset}, {inside} bytes into what is packed there: {what}")]
    Damaged {
        offset: u64,
        inside: u64,
        what: String,
    },
    #[error("in the section at byte {offset}: {what}")]
    Inconsistent { offset: u64, what: Inconsistency },
    #[error(
        "in the section at byte {offset}: the recording needs more than {limit_bytes} bytes of memory"
    )]
    TooLarge { offset: u64, limit_bytes: u64 },
    #[error("the recording contradicts itself: {0}")]
    NotWritten(Inconsistency),
}

impl FileError {
    /// Where in the file it was found, in bytes from its beginning.
    pub fn offset(&self) -> Option<u64> {
        match self {
            Self::Io(_) | Self::NotWritten(_) => None,
            Self::NotARecording => Some(0),
            Self::OtherVersion { .. } => Some(super::MAGIC.len() as u64),
            Self::Truncated { offset }
            | Self::Section { offset, .. }
            | Self::Damaged { offset, .. }
            | Self::Inconsistent { offset, .. }
            | Self::TooLarge { offset, .. } => Some(*offset),
        }
    }
}

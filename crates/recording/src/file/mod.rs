//! The file format of a recording, `.ghost`: small, fast, and safe to open even from untrusted sources.
//!
//! ```text
//! 89 "ghost" 0d 0a      eight bytes that no other format begins with, and that a text mode would change
//! version               4 bytes, little endian: 2, 3 where there is a section 5, 4 where there are sections 6 or
//!                       categories that came with them
//! sections              kind (1 byte), packed length (8 bytes, little endian), data packed with zlib
//!   1 about             what was rehearsed
//!   2 names             texts, operators, modules, frames, stacks
//!   3 card              one for each card
//!   5 failed run        steps and cards of the run that ran out of memory, if `card` is of a later one
//!   6 ranks             for each card, those of section 5 last: its rank plus 1 (0 for none), and what NCCL holds of it
//!   4 end               nothing; and nothing follows
//! ```
//!
//! Inside a section, numbers have a variable length, seven bits per byte; those that may decrease are zigzag-encoded
//! differences from the previous one. Tables are stored as columns (first all addresses, then all sizes, and so on),
//! which keeps ten million events small. When an allocation began and ended is not stored, because its events say so.
//!
//! Lengths in the file are not trusted: memory is allocated as data arrives, up to [`Limits`]. What was read is checked
//! with [`Recording::check`](crate::Recording::check) before it is returned. An error names its position in the file.

mod card;
mod error;
mod names;
mod packed;
mod read;
mod unpacked;
mod write;

pub use error::FileError;
pub use read::{Limits, read};
pub use write::write;

/// What a file begins with.
const MAGIC: [u8; 8] = *b"\x89ghost\r\n";

/// Whether a file that begins with these bytes claims to be a recording.
pub fn is_recording(first: &[u8]) -> bool {
    first.starts_with(&MAGIC)
}

/// The version that is written if possible, so that older readers accept files that they understand.
pub const VERSION: u32 = 2;

/// The version of a file with a failed run.
pub const VERSION_WITH_FAILED_RUN: u32 = 3;

/// The version of a file with ranks, or with memory for communication between them; the latest that is read.
pub const VERSION_WITH_RANKS: u32 = 4;

/// The kinds of sections.
mod kind {
    pub(super) const ABOUT: u8 = 1;
    pub(super) const NAMES: u8 = 2;
    pub(super) const CARD: u8 = 3;
    pub(super) const END: u8 = 4;
    pub(super) const FAILED_RUN: u8 = 5;
    pub(super) const RANKS: u8 = 6;
}

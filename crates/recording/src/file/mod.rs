//! The file of a recording, `.ghost`: small, quick, and safe to open whoever wrote it.
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
//! Inside a section, numbers are variable in length, seven bits to a byte; those that may fall are differences to the
//! one before, zigzag. Tables are columns: first all addresses, then all sizes, and so on, which is what makes ten
//! million events small. When an allocation began and ended is not written: its events say so.
//!
//! A length in the file is a promise: room is made as data arrives, up to [`Limits`]. What was read is checked with
//! [`Recording::check`](crate::Recording::check) before anybody sees it. An error says where in the file it is.

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

/// Whether a file that begins with these bytes says that it is a recording.
pub fn is_recording(first: &[u8]) -> bool {
    first.starts_with(&MAGIC)
}

/// The version that is written: readers of old need not refuse a file that they understand.
pub const VERSION: u32 = 2;

/// The version of a file with a failed run.
pub const VERSION_WITH_FAILED_RUN: u32 = 3;

/// The version of a file with ranks, or with memory in which ranks exchange something; the latest that is read.
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

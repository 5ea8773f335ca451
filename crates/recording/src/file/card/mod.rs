//! The section of one card, column by column.

mod read;
mod write;

pub(super) use read::read_card;
pub(super) use write::write_card;

const ALLOCATE: u8 = 0;
const FREE: u8 = 1;
const RESERVE: u8 = 2;
const RELEASE: u8 = 3;
const OUT_OF_MEMORY: u8 = 4;
const FREE_REQUESTED: u8 = 5;
const OTHER: u8 = 6;

/// The flags of a segment.
const IS_SMALL: u8 = 1;
const IS_EXPANDABLE: u8 = 2;

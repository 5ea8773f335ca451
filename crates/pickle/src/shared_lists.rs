//! Lists that are written as a row of memo references, recognised by their bytes.
//!
//! PyTorch writes a list of frames for every allocation: `] ( j…. j…. j…. e`, some thirty references
//! to frames that were written before. The same stack is the same row of bytes, so a lookup of the
//! row replaces executing it.

use std::collections::HashMap;

use crate::hash::SeededState;
use crate::opcode::*;
use crate::value::NodeId;

/// How many bytes of rows are remembered; further rows are executed.
const MAX_REMEMBERED_BYTES: usize = 64 << 20;

/// The rows of references seen so far, each with the list that it builds.
#[derive(Debug, Default)]
pub(crate) struct SharedLists {
    known: HashMap<Box<[u8]>, NodeId, SeededState>,
    remembered_bytes: usize,
}

/// How a list is memoized between its instruction and its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memoized {
    No,
    /// By MEMOIZE, under the next free number.
    Next,
    As(u32),
}

/// A list that is written as a row of references.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    pub(crate) memoized: Memoized,
    /// The instructions that push the references.
    pub(crate) references: &'a [u8],
    /// Where the references start, after EMPTY_LIST.
    pub(crate) start: usize,
}

impl Row<'_> {
    /// Bytes from after EMPTY_LIST to after APPENDS.
    pub(crate) fn length(&self) -> usize {
        self.start + self.references.len() + 1
    }
}

/// The row of references that these bytes, which follow an EMPTY_LIST, begin with, if any.
#[inline]
pub(crate) fn row_in(bytes: &[u8]) -> Option<Row<'_>> {
    let (memoized, mark) = match bytes {
        [MARK, ..] => (Memoized::No, 0),
        [MEMOIZE, ..] => (Memoized::Next, 1),
        [BINPUT, number, ..] => (Memoized::As(u32::from(*number)), 2),
        [LONG_BINPUT, a, b, c, d, ..] => (Memoized::As(u32::from_le_bytes([*a, *b, *c, *d])), 5),
        _ => return None,
    };
    if bytes.get(mark) != Some(&MARK) {
        return None;
    }
    let start = mark + 1;
    let mut end = start;
    loop {
        match *bytes.get(end)? {
            LONG_BINGET => end += 5,
            BINGET => end += 2,
            APPENDS => break,
            _ => return None,
        }
    }
    Some(Row {
        memoized,
        references: &bytes[start..end],
        start,
    })
}

/// The memo slots that a row refers to.
pub(crate) fn references(mut row: &[u8]) -> impl Iterator<Item = u32> + '_ {
    std::iter::from_fn(move || {
        let (number, rest) = match row {
            [LONG_BINGET, a, b, c, d, rest @ ..] => (u32::from_le_bytes([*a, *b, *c, *d]), rest),
            [BINGET, number, rest @ ..] => (u32::from(*number), rest),
            _ => return None,
        };
        row = rest;
        Some(number)
    })
}

impl SharedLists {
    #[inline]
    pub(crate) fn find(&self, references: &[u8]) -> Option<NodeId> {
        self.known.get(references).copied()
    }

    pub(crate) fn remember(&mut self, references: &[u8], list: NodeId) {
        if self.remembered_bytes < MAX_REMEMBERED_BYTES {
            self.remembered_bytes += references.len() + 64;
            self.known.insert(references.into(), list);
        }
    }

    /// Forgets every row, since a memo slot was overwritten.
    pub(crate) fn clear(&mut self) {
        self.known.clear();
        self.remembered_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_references_is_recognised_with_every_way_of_memoizing() {
        for (bytes, memoized) in [
            (&b"(h\x01j\x02\0\0\0e."[..], Memoized::No),
            (&b"\x94(h\x01j\x02\0\0\0e."[..], Memoized::Next),
            (&b"q\x09(h\x01j\x02\0\0\0e."[..], Memoized::As(9)),
            (&b"r\x09\x01\0\0(h\x01j\x02\0\0\0e."[..], Memoized::As(265)),
        ] {
            let row = row_in(bytes).unwrap();
            assert_eq!(row.memoized, memoized);
            assert_eq!(bytes[row.length()], b'.');
            assert_eq!(references(row.references).collect::<Vec<_>>(), [1, 2]);
        }
    }

    #[test]
    fn anything_else_in_a_list_is_no_row() {
        for bytes in [
            &b""[..],
            b"\x94",
            b"(h\x01",
            b"(h\x01K\x01e",
            b"(h\x01a",
            b"(h",
        ] {
            assert!(row_in(bytes).is_none(), "{bytes:?}");
        }
    }
}

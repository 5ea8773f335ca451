//! Interned strings.
//!
//! A snapshot repeats a few thousand strings millions of times; interned, they compare as numbers.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::hash::SeededState;

/// A handle to a string. Two strings of one heap are equal if and only if their handles are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StringId(pub(crate) u32);

impl StringId {
    /// The handle's number: strings are numbered in the order in which they were first seen.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// How many recent strings are recognised without a lookup in the table.
const RECENT: usize = 256;

/// All strings of one heap, as the bytes in the pickle.
#[derive(Debug)]
pub(crate) struct Strings {
    /// UTF-8, except for lone surrogates, which Python puts into file names that are not UTF-8.
    all: Vec<Box<[u8]>>,
    ids: HashMap<Box<[u8]>, u32, SeededState>,
    recent: Box<[u32; RECENT]>,
    pub(crate) held_bytes: u64,
}

impl Default for Strings {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            ids: HashMap::default(),
            recent: Box::new([u32::MAX; RECENT]),
            held_bytes: 0,
        }
    }
}

impl Strings {
    /// The handle of a string that was seen recently.
    #[inline]
    pub(crate) fn recent(&self, bytes: &[u8]) -> Option<StringId> {
        let id = self.recent[recent_place(bytes)];
        let known = self.all.get(id as usize)?;
        (known.as_ref() == bytes).then_some(StringId(id))
    }

    pub(crate) fn intern(&mut self, bytes: &[u8]) -> StringId {
        if let Some(id) = self.recent(bytes) {
            return id;
        }
        let id = match self.ids.get(bytes) {
            Some(id) => *id,
            None => {
                let id = self.all.len() as u32;
                self.all.push(bytes.into());
                self.ids.insert(bytes.into(), id);
                self.held_bytes += 2 * bytes.len() as u64 + 64;
                id
            }
        };
        self.recent[recent_place(bytes)] = id;
        StringId(id)
    }

    pub(crate) fn find(&self, bytes: &[u8]) -> Option<StringId> {
        self.ids.get(bytes).map(|id| StringId(*id))
    }

    pub(crate) fn bytes(&self, id: StringId) -> &[u8] {
        self.all.get(id.index()).map_or(&[], AsRef::as_ref)
    }

    pub(crate) fn text(&self, id: StringId) -> Cow<'_, str> {
        String::from_utf8_lossy(self.bytes(id))
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }
}

/// The slot of a string among the recent ones: a cheap hash of its length and ends.
fn recent_place(bytes: &[u8]) -> usize {
    let first = bytes.first().copied().unwrap_or(0) as usize;
    let last = bytes.last().copied().unwrap_or(0) as usize;
    (bytes.len().wrapping_mul(31) ^ first.wrapping_mul(7) ^ last.wrapping_mul(13)) % RECENT
}

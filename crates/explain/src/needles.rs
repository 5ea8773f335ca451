//! One pass over a line that decides which readers need it.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use crate::families::FAMILIES;
use crate::{environment, memory_prints, progress, traceback};

/// The readers that need a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readers(u32);

const FRAME: u32 = 1 << 24;
const PROGRESS: u32 = 1 << 25;
const MEMORY: u32 = 1 << 26;
const ENVIRONMENT: u32 = 1 << 27;
const ALL_FAMILIES: u32 = FRAME - 1;

impl Readers {
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn has_family(self) -> bool {
        self.0 & ALL_FAMILIES != 0
    }

    pub fn has_frame(self) -> bool {
        self.0 & FRAME != 0
    }

    pub fn has_progress(self) -> bool {
        self.0 & PROGRESS != 0
    }

    pub fn has_memory(self) -> bool {
        self.0 & MEMORY != 0
    }

    /// No part of a message or a traceback.
    pub fn is_context_only(self) -> bool {
        self.0 & (ALL_FAMILIES | FRAME) == 0
    }

    pub fn has_environment(self) -> bool {
        self.0 & ENVIRONMENT != 0
    }

    pub fn family(self, index: usize) -> bool {
        self.0 & (1 << index) != 0
    }

    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub fn only_families(self) -> Self {
        Self(self.0 & ALL_FAMILIES)
    }
}

struct Automaton {
    search: AhoCorasick,
    /// For each needle, the readers that need it.
    readers: Vec<u32>,
    /// For each pair of bytes, whether they stand before and after a blank of some family's needle: every
    /// line of a log is asked.
    around_blanks: Vec<bool>,
}

static AUTOMATON: LazyLock<Option<Automaton>> = LazyLock::new(|| {
    let mut needles: Vec<&str> = Vec::new();
    let mut readers: Vec<u32> = Vec::new();
    let mut add =
        |needle: &'static str, reader: u32| match needles.iter().position(|known| *known == needle)
        {
            Some(index) => readers[index] |= reader,
            None => {
                needles.push(needle);
                readers.push(reader);
            }
        };
    for (index, family) in FAMILIES.iter().enumerate() {
        family
            .needles
            .iter()
            .for_each(|needle| add(needle, 1 << index));
    }
    traceback::NEEDLES
        .iter()
        .for_each(|needle| add(needle, FRAME));
    add("│", FRAME);
    progress::NEEDLES
        .iter()
        .for_each(|needle| add(needle, PROGRESS));
    memory_prints::NEEDLES
        .iter()
        .for_each(|needle| add(needle, MEMORY));
    environment::NEEDLES
        .iter()
        .for_each(|needle| add(needle, ENVIRONMENT));
    let search = AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::DFA))
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .build(&needles)
        .ok()?;
    let mut around_blanks = vec![false; 1 << 16];
    let pairs = FAMILIES
        .iter()
        .flat_map(|family| family.needles)
        .flat_map(|needle| needle.as_bytes().windows(3))
        .filter(|letters| letters[1] == b' ');
    for letters in pairs {
        around_blanks[pair(letters[0], letters[2])] = true;
    }
    Some(Automaton {
        search,
        readers,
        around_blanks,
    })
});

/// Whether some needle may have been wrapped between these letters.
pub fn may_continue(last: u8, first: u8) -> bool {
    let automaton = AUTOMATON.as_ref();
    automaton.is_some_and(|automaton| automaton.around_blanks[pair(last, first)])
}

fn pair(last: u8, first: u8) -> usize {
    usize::from(last.to_ascii_lowercase()) << 8 | usize::from(first.to_ascii_lowercase())
}

/// Whether the first needle in a line belongs to a family: then the line may be a message, and finding the
/// others can be spared where it is only counted.
pub fn begins_with_a_family(line: &[u8]) -> bool {
    let Some(automaton) = AUTOMATON.as_ref() else {
        return false;
    };
    let first = automaton.search.find(line);
    let readers = first.map(|hit| Readers(automaton.readers[hit.pattern().as_usize()]));
    readers.is_some_and(Readers::has_family)
}

/// The readers that need this line.
pub fn readers_of(line: &[u8]) -> Readers {
    let Some(automaton) = AUTOMATON.as_ref() else {
        return Readers::default();
    };
    // Most lines match nothing, which `is_match` finds out faster.
    if !automaton.search.is_match(line) {
        return Readers::default();
    }
    // Needles overlap (`CUDA_ERROR_OUT_OF_MEMORY`): all of them count, not only the first.
    let found = automaton.search.find_overlapping_iter(line);
    Readers(found.fold(0, |readers, hit| {
        readers | automaton.readers[hit.pattern().as_usize()]
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_lines_have_no_readers() {
        assert!(readers_of(b"").is_empty());
        assert!(readers_of(b"loss 0.12 lr 0.001").is_empty());
    }

    #[test]
    fn overlapping_needles_all_count() {
        let readers =
            readers_of(b"failed to allocate 17.79G: CUDA_ERROR_OUT_OF_MEMORY: out of memory");
        assert!(readers.has_family());
        assert!(readers.only_families().0.count_ones() >= 3);
        assert!(readers_of(b"  File \"a.py\", line 3").has_frame());
        assert!(readers_of("│ ❱ 3 │ x".as_bytes()).has_frame());
    }

    #[test]
    fn there_are_fewer_families_than_bits() {
        assert!(FAMILIES.len() <= 24);
    }
}

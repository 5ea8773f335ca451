//! The table itself: `table.csv`, read once and searched by name.

use std::sync::OnceLock;

use crate::Family;
use crate::family::family_of;

/// What the stand-in library does when a function is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Treatment {
    /// Keeps the state that the real function would keep, and gives the right answer.
    Simulated,
    /// Does nothing and reports success, which cannot mislead: a destructor, a setter whose value is
    /// never read back, or work whose only results are values in device memory.
    Harmless,
    /// Reports the library's own "not supported". A script that cannot continue without an answer is
    /// stopped with an error that names the function.
    Refused,
}

impl Treatment {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Harmless => "harmless",
            Self::Refused => "refused",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Simulated, Self::Harmless, Self::Refused]
            .into_iter()
            .find(|treatment| treatment.name() == text)
    }
}

impl std::fmt::Display for Treatment {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub symbol: &'static str,
    pub family: Family,
    pub treatment: Treatment,
    /// Who needs it: the torch releases that import it, separated by spaces, or the program that
    /// looks it up at run time.
    pub used_by: &'static str,
    /// What a reader should know about this one; empty for most.
    pub note: &'static str,
}

const TABLE: &str = include_str!("table.csv");

/// All rows, in the order of their names.
pub fn entries() -> &'static [Entry] {
    static ENTRIES: OnceLock<Vec<Entry>> = OnceLock::new();
    ENTRIES.get_or_init(|| TABLE.lines().filter_map(parse_row).collect())
}

/// The row of one symbol.
pub fn lookup(symbol: &str) -> Option<Entry> {
    let entries = entries();
    let position = entries
        .binary_search_by(|entry| entry.symbol.cmp(symbol))
        .ok()?;
    entries.get(position).copied()
}

/// Reads one line; the header and a malformed line give nothing (a test forbids the latter).
fn parse_row(line: &'static str) -> Option<Entry> {
    // The note comes last and may contain commas, so the table needs no quoting.
    let mut columns = line.splitn(4, ',');
    let symbol = columns.next()?;
    let treatment = Treatment::parse(columns.next()?)?;
    Some(Entry {
        symbol,
        family: family_of(symbol)?,
        treatment,
        used_by: columns.next()?,
        note: columns.next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_below_the_header_is_a_row() {
        let mut lines = TABLE.lines();
        assert_eq!(lines.next(), Some("symbol,treatment,used_by,note"));
        for line in lines {
            assert!(parse_row(line).is_some(), "malformed row: {line}");
        }
    }

    #[test]
    fn rows_are_sorted_by_name_and_unique() {
        for pair in entries().windows(2) {
            assert!(
                pair[0].symbol < pair[1].symbol,
                "`{}` must come before `{}`, and only once",
                pair[1].symbol,
                pair[0].symbol
            );
        }
    }

    #[test]
    fn every_row_says_who_needs_the_function() {
        for entry in entries() {
            assert!(!entry.used_by.is_empty(), "{}", entry.symbol);
        }
    }

    #[test]
    fn every_row_is_found_by_its_name() {
        for entry in entries() {
            assert_eq!(lookup(entry.symbol), Some(*entry));
        }
        assert_eq!(lookup("cudaNoSuchFunction"), None);
    }
}

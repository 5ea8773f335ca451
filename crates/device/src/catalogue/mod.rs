//! The cards that a script can be rehearsed on.
//!
//! How to add one is in the crate's documentation.

mod card;
mod derive;
mod parse;

use std::sync::LazyLock;

pub use card::{Card, MemoryKind, Provenance, Uncertainty};

use crate::lookup::{LookupError, NameIndex};

const TABLE: &str = include_str!("cards.txt");

static BUILTIN: LazyLock<Catalogue> = LazyLock::new(|| {
    // The table is built in and every test run parses it, so this can only fail while editing it.
    Catalogue::new(parse::parse(TABLE).unwrap_or_else(|error| panic!("{error}")))
});

/// All cards, and the names they are found by.
#[derive(Debug)]
pub struct Catalogue {
    cards: Vec<Card>,
    names: NameIndex,
}

impl Catalogue {
    /// The catalogue that is built into the program, read once.
    pub fn builtin() -> &'static Self {
        &BUILTIN
    }

    /// Every card, as a list should show them: by generation, and within it desktop, workstation,
    /// data centre.
    pub fn cards(&self) -> &[Card] {
        &self.cards
    }

    /// The card that `name` means.
    ///
    /// Case, spaces, hyphens and underscores do not matter, nor do the vendor's series names
    /// (`nvidia`, `geforce`, `rtx`, …) or the unit of a memory size: `3060`, `RTX 3060`,
    /// `rtx-3060-12gb` and `NVIDIA GeForce RTX 3060` are one card.
    pub fn find(&self, name: &str) -> Result<&Card, LookupError> {
        self.names
            .find(name, &self.cards)
            .map(|index| &self.cards[index])
    }

    fn new(cards: Vec<Card>) -> Self {
        let names = NameIndex::new(&cards);
        Self { cards, names }
    }
}

#[cfg(test)]
mod tests;

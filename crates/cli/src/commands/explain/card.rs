//! Guesses the card that a log is about, to rehearse on one like it.

use ghostgpu_answers::gpus::short_name;
use ghostgpu_device::{Card, Catalogue};
use ghostgpu_explain::{Finding, Log};

use crate::failure::Failure;
use ghostgpu_text::human;

/// A card to rehearse on.
#[derive(Debug, PartialEq, Eq)]
pub struct Guess {
    pub name: String,
    /// Its memory, if the log's figure differs from the catalogue's.
    pub memory: Option<u64>,
    /// The reason for the guess.
    pub because: String,
}

/// Totals that differ by less belong to the same card with another driver.
const SAME_CARD_PERCENT: u64 = 3;

pub fn guess(
    wanted: Option<&str>,
    memory: Option<u64>,
    finding: &Finding,
    log: &Log,
) -> Result<Guess, Failure> {
    let total = finding.figures.total.map(|total| total.bytes);
    let catalogue = Catalogue::builtin();
    if let Some(name) = wanted {
        return Ok(Guess {
            name: name.to_owned(),
            memory,
            because: "named with --gpu".to_owned(),
        });
    }
    let is_like = |card: &Card| {
        let total = total.unwrap_or(card.total_bytes);
        card.total_bytes.abs_diff(total).saturating_mul(100) <= total * SAME_CARD_PERCENT
    };
    let named = log
        .environment
        .cards
        .iter()
        .filter_map(|name| catalogue.find(name).ok())
        .find(|card| is_like(card));
    let other_than = |card: &Card, total: u64| {
        let printed = finding.figures.total.unwrap_or_default();
        let is_same = memory.is_none() && card.total_bytes.abs_diff(total) <= printed.off_by;
        (!is_same).then_some(total)
    };
    if let Some(card) = named {
        return Ok(Guess {
            name: short_name(card),
            memory: memory.or_else(|| other_than(card, total?)),
            because: "the log names it".to_owned(),
        });
    }
    let Some(total) = memory.or(total) else {
        return Err(Failure::new(
            "the log says neither which card it was nor how much memory it had",
        )
        .with_hint("name the card: `--gpu 3090`"));
    };
    let mut alike: Vec<&Card> = catalogue
        .cards()
        .iter()
        .filter(|card| {
            card.total_bytes.abs_diff(total).saturating_mul(100) <= total * SAME_CARD_PERCENT
        })
        .collect();
    alike.sort_by_key(|card| card.total_bytes.abs_diff(total));
    let card = alike.first().copied().or_else(|| {
        // A slice of a card, or a card that is not in the catalogue: use the next larger one with this much memory.
        let larger = catalogue
            .cards()
            .iter()
            .filter(|card| card.total_bytes >= total);
        larger.min_by_key(|card| card.total_bytes)
    });
    let card = card.or_else(|| catalogue.cards().iter().max_by_key(|card| card.total_bytes));
    let Some(card) = card else {
        return Err(Failure::new("the catalogue has no card"));
    };
    Ok(Guess {
        name: short_name(card),
        memory: other_than(card, total),
        because: format!(
            "the log names no card, only {}; --gpu names another",
            human(total)
        ),
    })
}

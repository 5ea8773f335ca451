//! What to suggest if nothing fits: a card that is large enough, and what smaller data would save.

use ghostgpu_device::{Card, Catalogue};
use ghostgpu_rehearse::{Change, Completion, Peaks, Stop};
use ghostgpu_tricks::Request;

use super::bench::Bench;
use super::combination::{Combination, request};
use super::composition::Composition;
use super::families::TOKEN_STEP;

/// How many cards are rehearsed at most. A card that just has the needed memory may be too small, because contexts
/// differ.
const CARDS: usize = 2;

/// The smallest card of the catalogue on which a combination fits.
#[derive(Clone, Debug)]
pub struct CardThatFits {
    pub combination: Combination,
    pub card: &'static Card,
    pub peaks: Peaks,
}

/// A change to the data, and what it saves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmallerData {
    pub kind: SmallerKind,
    /// Peaks with unlimited memory, before and after the change.
    pub before: Peaks,
    pub after: Peaks,
}

/// What is made smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmallerKind {
    Batch { from: u64, to: u64 },
    Tokens { from: u64, to: u64 },
}

/// The smallest card that is enough for a combination that needs `needed_bytes`.
pub fn smallest_card(
    bench: &mut Bench,
    combination: &Combination,
    needed_bytes: u64,
    capacity_bytes: u64,
) -> Result<Option<CardThatFits>, Stop> {
    let mut cards: Vec<&'static Card> = Catalogue::builtin()
        .cards()
        .iter()
        .filter(|card| card.total_bytes >= needed_bytes && card.total_bytes > capacity_bytes)
        .collect();
    cards.sort_by_key(|card| card.total_bytes);
    for card in cards.into_iter().take(CARDS) {
        let change = Change::Card(Box::new(card.sheet()));
        let run = bench.thoroughly(|bench| bench.rehearse(combination, Some(change)))?;
        if run.completion() == Completion::Completed {
            return Ok(Some(CardThatFits {
                combination: combination.clone(),
                card,
                peaks: run.peaks(),
            }));
        }
    }
    Ok(None)
}

/// Rehearses half the batch, and [`TOKEN_STEP`] fewer tokens, each with `combination`.
pub fn smaller_data(
    bench: &mut Bench,
    combination: &Combination,
    before: Peaks,
    composition: &Composition,
) -> Result<Vec<SmallerData>, Stop> {
    let mut found = Vec::new();
    for (kind, change) in changes(composition) {
        let Some(changed) = combination.with(change) else {
            continue;
        };
        let run = bench.rehearse(&changed, Some(Change::UnlimitedMemory))?;
        if run.completion() == Completion::Completed {
            let after = run.peaks();
            found.push(SmallerData {
                kind,
                before,
                after,
            });
        }
    }
    Ok(found)
}

fn changes(composition: &Composition) -> Vec<(SmallerKind, Request)> {
    let mut changes = Vec::new();
    if let Some(from) = composition.batch.filter(|batch| *batch >= 2) {
        let to = from / 2;
        let request = request("smaller-batch", &[("batch", to.to_string())]);
        changes.push((SmallerKind::Batch { from, to }, request));
    }
    if let Some(from) = composition.tokens.filter(|tokens| *tokens > TOKEN_STEP) {
        let to = from - TOKEN_STEP;
        let request = request("shorter-sequences", &[("tokens", to.to_string())]);
        changes.push((SmallerKind::Tokens { from, to }, request));
    }
    changes
}

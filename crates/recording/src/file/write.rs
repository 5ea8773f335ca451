//! Writing a recording.

use std::io::Write;

use super::card::write_card;
use super::error::FileError;
use super::names::{write_about, write_names};
use super::packed::Packed;
use super::{MAGIC, VERSION, VERSION_WITH_FAILED_RUN, VERSION_WITH_RANKS, kind};
use crate::allocation::Category;
use crate::recording::{CardMemory, Recording};

/// Writes the whole file. A recording that contradicts itself is not written.
pub fn write(recording: &Recording, mut out: impl Write) -> Result<(), FileError> {
    recording.check().map_err(FileError::NotWritten)?;
    out.write_all(&MAGIC)?;
    let has_ranks = all_cards(recording).any(is_of_rank);
    let has_exchanges = || all_cards(recording).any(has_exchanges);
    let version = match recording.failed_run {
        _ if has_ranks || has_exchanges() => VERSION_WITH_RANKS,
        Some(_) => VERSION_WITH_FAILED_RUN,
        None => VERSION,
    };
    out.write_all(&version.to_le_bytes())?;
    section(kind::ABOUT, &mut out, |section| {
        write_about(&recording.about, &recording.warnings, section)
    })?;
    section(kind::NAMES, &mut out, |section| {
        write_names(&recording.names, section)
    })?;
    if has_ranks {
        section(kind::RANKS, &mut out, |section| {
            section.number(all_cards(recording).count() as u64)?;
            all_cards(recording).try_for_each(|card| {
                section.number(card.rank.map_or(0, |rank| u64::from(rank) + 1))?;
                section.number(card.nccl_bytes)
            })
        })?;
    }
    for card in &recording.cards {
        section(kind::CARD, &mut out, |section| write_card(card, section))?;
    }
    if let Some(failed) = &recording.failed_run {
        section(kind::FAILED_RUN, &mut out, |section| {
            section.number(failed.steps.into())?;
            section.number(failed.cards.len() as u64)?;
            failed
                .cards
                .iter()
                .try_for_each(|card| write_card(card, section))
        })?;
    }
    section(kind::END, &mut out, |_| Ok(()))?;
    out.flush()?;
    Ok(())
}

/// The cards of the recording, then those of its failed run.
fn all_cards(recording: &Recording) -> impl Iterator<Item = &CardMemory> {
    let failed = recording.failed_run.iter().flat_map(|run| &run.cards);
    recording.cards.iter().chain(failed)
}

fn is_of_rank(card: &CardMemory) -> bool {
    card.rank.is_some() || card.nccl_bytes > 0
}

/// Categories that readers of older files do not know.
fn has_exchanges(card: &CardMemory) -> bool {
    let categories = card.allocations.iter().map(|one| one.category);
    let mut new = categories
        .filter(|category| matches!(category, Category::Gathered | Category::Communication));
    new.next().is_some()
}

fn section(
    kind: u8,
    out: &mut impl Write,
    fill: impl FnOnce(&mut Packed) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let mut section = Packed::new();
    fill(&mut section)?;
    let packed = section.finish()?;
    out.write_all(&[kind])?;
    out.write_all(&(packed.len() as u64).to_le_bytes())?;
    out.write_all(&packed)
}

//! Writing a recording.

use std::io::Write;

use super::card::write_card;
use super::error::FileError;
use super::names::{write_about, write_names};
use super::packed::Packed;
use super::{MAGIC, VERSION, VERSION_WITH_FAILED_RUN, kind};
use crate::recording::Recording;

/// Writes the whole file. A recording that contradicts itself is not written.
pub fn write(recording: &Recording, mut out: impl Write) -> Result<(), FileError> {
    recording.check().map_err(FileError::NotWritten)?;
    out.write_all(&MAGIC)?;
    let version = match recording.failed_run {
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

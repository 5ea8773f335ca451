//! What a run's memory was made of, on one screen: categories, stages, modules, lines, growth.

mod failures;
mod formula;
mod growth;
mod heading;
mod holders;
mod lines;
mod made_of;
mod modules;
mod stages;

use super::text::Look;
use ghostgpu_ledger::CardLedger;
use ghostgpu_recording::{Recording, Source};
use ghostgpu_text::{Sheet, human};

/// What a snapshot does not say.
const UNKNOWN: &str = "whose memory it is, steps and stages, modules, the rest of the card: a snapshot does not say \
                       (`ghostgpu snapshot show` says what helps)";

/// The report on a recording alone.
pub fn breakdown_report(recording: &Recording, look: Look) -> String {
    let mut sheet = Sheet::default();
    heading::add(&mut sheet, recording);
    add_breakdown(&mut sheet, recording, look);
    sheet.list("warnings", &recording.warnings);
    // A file from elsewhere must not speak to the terminal.
    let is_unwanted = |character: char| character.is_control() && character != '\n';
    sheet.render().replace(is_unwanted, "?")
}

/// Adds the breakdown of the card on which most was allocated.
pub(super) fn add_breakdown(sheet: &mut Sheet, recording: &Recording, look: Look) {
    let Some(ledger) = CardLedger::of_fullest(recording) else {
        return;
    };
    made_of::add(sheet, &ledger);
    if recording.cards.len() > 1 {
        add_other_cards(sheet, &ledger);
    }
    if recording.about.source == Source::Snapshot {
        failures::add(sheet, &ledger);
        lines::add(sheet, &ledger, look);
        holders::add(sheet, &ledger, look);
        sheet.paragraph("not known", UNKNOWN);
        return;
    }
    stages::add(sheet, &ledger);
    let rule = ledger.rule_of_thumb();
    modules::add(sheet, &ledger, rule.as_ref());
    lines::add(sheet, &ledger, look);
    holders::add(sheet, &ledger, look);
    if let Some(rule) = &rule {
        formula::add(sheet, rule);
    }
    growth::add(sheet, &ledger, look);
}

fn add_other_cards(sheet: &mut Sheet, shown: &CardLedger) {
    let recording = shown.recording();
    let others = recording
        .cards
        .iter()
        .filter(|card| card.index != shown.card().index)
        .map(|card| {
            let peak = CardLedger::new(recording, card).peak().allocated_bytes;
            format!("card {}: {} allocated", card.index, human(peak))
        });
    let mut texts = vec![format!("shown is card {}", shown.card().index)];
    texts.extend(others);
    sheet.paragraph("other cards", &texts.join("; "));
}

#[cfg(test)]
mod tests;

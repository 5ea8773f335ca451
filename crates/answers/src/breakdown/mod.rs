//! What a run's memory consisted of: on one screen, or in full with categories, stages, modules, lines, growth.

mod failures;
mod formula;
mod growth;
mod heading;
mod holders;
mod lines;
mod made_of;
mod modules;
mod stages;

use crate::ranks::add_ranks;
use crate::style::{Detail, Style};
use crate::{one_line, peak};
use ghostgpu_ledger::CardLedger;
use ghostgpu_recording::{Recording, Source};
use ghostgpu_text::{Sheet, human};

pub(crate) use lines::{place, short_title};
pub(crate) use made_of::{percent, when};

/// What a snapshot does not say.
const UNKNOWN: &str = "whose memory it is, steps and stages, modules, the rest of the card: a snapshot does not say \
                       (`ghostgpu snapshot show` says what helps)";

/// The answer to "whose memory was it?" from a recording alone, in the requested detail.
pub fn breakdown_answer(recording: &Recording, style: Style) -> String {
    let mut sheet = style.sheet();
    let headline = heading::headline(recording);
    if let Some(headline) = &headline {
        headline.add(&mut sheet);
    }
    match style.detail {
        Detail::Quiet if headline.is_some() => {}
        Detail::Quiet | Detail::Screen => add_screen(&mut sheet, recording, style),
        Detail::Everything => {
            heading::add(&mut sheet, recording);
            add_breakdown(&mut sheet, recording, style);
            sheet.list("warnings", &recording.warnings);
        }
    }
    // An untrusted file must not send control characters to the terminal.
    let is_unwanted = |character: char| character.is_control() && character != '\n';
    let text = sheet.render().replace(is_unwanted, "?");
    match headline {
        Some(headline) => headline.paint_text(&text, style),
        None => text,
    }
}

/// What fits one screen.
fn add_screen(sheet: &mut Sheet, recording: &Recording, style: Style) {
    let text = one_line::one_line(&heading::rehearsed(recording), sheet.text_width());
    sheet.section(heading::label(recording), [text]);
    let Some(ledger) = CardLedger::of_fullest(recording) else {
        return;
    };
    let reserved = ledger.peak_reserved();
    sheet.section(
        "peak",
        [peak::figures(
            Some(ledger.peak().allocated_bytes),
            Some(reserved.reserved_bytes),
            ledger.accounts(reserved.moment).on_card_bytes(),
        )],
    );
    peak::add_parts(sheet, &ledger, "");
    add_others(sheet, &ledger, false);
    peak::add_largest_line(sheet, &ledger, style);
    peak::add_growth(sheet, &ledger, &ledger.growth(), style);
    one_line::add(sheet, "warnings", &recording.warnings);
}

/// Adds the breakdown of the card on which most was allocated.
pub(crate) fn add_breakdown(sheet: &mut Sheet, recording: &Recording, style: Style) {
    let Some(ledger) = CardLedger::of_fullest(recording) else {
        return;
    };
    made_of::add(sheet, &ledger);
    add_others(sheet, &ledger, true);
    if recording.about.source == Source::Snapshot {
        failures::add(sheet, &ledger);
        lines::add(sheet, &ledger, style);
        holders::add(sheet, &ledger, style);
        sheet.paragraph("not known", UNKNOWN);
        return;
    }
    stages::add(sheet, &ledger);
    let rule = ledger.rule_of_thumb();
    modules::add(sheet, &ledger, rule.as_ref());
    lines::add(sheet, &ledger, style);
    holders::add(sheet, &ledger, style);
    if let Some(rule) = &rule {
        formula::add(sheet, rule);
    }
    growth::add(sheet, &ledger, style);
}

/// The ranks of a job, or the other cards of a process.
fn add_others(sheet: &mut Sheet, shown: &CardLedger, is_full: bool) {
    let recording = shown.recording();
    let ranks = recording.about.answer.as_ref().map(|answer| &answer.ranks);
    match ranks {
        Some(ranks) if !ranks.is_empty() => {
            sheet.section("shown", [shown.card().title()]);
            add_ranks(sheet, ranks, is_full);
        }
        _ if recording.cards.len() > 1 => add_other_cards(sheet, shown),
        _ => {}
    }
}

fn add_other_cards(sheet: &mut Sheet, shown: &CardLedger) {
    let recording = shown.recording();
    let others = recording
        .cards
        .iter()
        .filter(|card| (card.rank, card.index) != (shown.card().rank, shown.card().index))
        .map(|card| {
            let peak = CardLedger::new(recording, card).peak().allocated_bytes;
            format!("{}: {} allocated", card.title(), human(peak))
        });
    let mut texts = vec![format!("shown is {}", shown.card().title())];
    texts.extend(others);
    sheet.paragraph("other cards", &texts.join("; "));
}

#[cfg(test)]
pub(crate) mod tests;

//! The cards as text: the smallest that fits, then a table.

use std::collections::BTreeSet;

use ghostgpu_recording::Verdict;
use ghostgpu_text::{Sheet, Table, counted, human, shortened};

use super::{CardRow, Cards, smallest};
use crate::headline::word;
use crate::style::{Colour, Detail, Style};

/// How many rows fit on one screen, next to the text above and below them.
const ROWS: usize = 14;

/// How many of them are cards that the job does not fit on.
const ROWS_BELOW: usize = 4;

/// Width of all columns next to the names, with the gaps.
const FIGURES_WIDTH: usize = 53;

/// How much of the beginning of a name is kept if it is too long.
const NAME_BEGINNING: usize = 13;

impl Cards {
    /// With `is_all`, every card is in the table.
    pub fn text(&self, style: Style, is_all: bool) -> String {
        let (label, colour, lines) = self.headline();
        let mut sheet = style.sheet();
        match style.detail {
            Detail::Quiet => {
                sheet.section(label, [lines.join(": ")]);
                return style.paint_label(label, colour, &sheet.render());
            }
            Detail::Screen | Detail::Everything => {
                for (index, line) in lines.iter().enumerate() {
                    sheet.paragraph(if index == 0 { label } else { "" }, line);
                }
            }
        }
        self.beside(&mut sheet);
        let is_all = is_all || style.detail == Detail::Everything;
        let by_memory = self.by_memory();
        let shown = match is_all {
            true => by_memory.clone(),
            false => around_the_limit(&by_memory),
        };
        let mut text = sheet.render();
        if !shown.is_empty() {
            text.push('\n');
            text.push_str(&table(&shown, style.width));
        }
        if let Some(more) = what_is_left_out(&by_memory, &shown) {
            text.push_str(&format!("{more}\n"));
        }
        style.paint_label(label, colour, &text)
    }

    fn headline(&self) -> (&'static str, Colour, Vec<String>) {
        if let Some(row) = smallest(&self.cards, Verdict::Fits) {
            let line = format!("{} ({})", row.name, human(row.total_bytes));
            return ("smallest card", Colour::Good, vec![line, figures(row)]);
        }
        if let Some(row) = smallest(&self.cards, Verdict::FitsTightly) {
            let line = format!("{} ({}), tightly", row.name, human(row.total_bytes));
            return ("smallest card", Colour::Unknown, vec![line, figures(row)]);
        }
        let known: BTreeSet<&str> = self.cards.iter().map(|row| word(row.verdict).0).collect();
        let reason = self.cards.iter().find_map(|row| row.reason.clone());
        match (known.len(), self.cards.first()) {
            (1, Some(row)) if row.verdict != Verdict::DoesNotFit => {
                let (word, colour) = word(row.verdict);
                (word, colour, vec![reason.unwrap_or_default()])
            }
            (0, _) | (_, None) => (
                "unknown",
                Colour::Unknown,
                vec!["no card was rehearsed".to_owned()],
            ),
            _ => {
                let needs = self.cards.iter().filter_map(|row| row.needed_device_bytes);
                let line = match needs.min() {
                    Some(bytes) => format!("on any of them: it needs {} or more", human(bytes)),
                    None => "on any of them".to_owned(),
                };
                ("does not fit", Colour::Bad, vec![line])
            }
        }
    }

    /// The text before the table.
    fn beside(&self, sheet: &mut Sheet) {
        let tight = smallest(&self.cards, Verdict::FitsTightly);
        let fitting = smallest(&self.cards, Verdict::Fits);
        if let (Some(tight), Some(fitting)) = (tight, fitting)
            && tight.total_bytes < fitting.total_bytes
        {
            let line = format!("{} ({})", tight.name, human(tight.total_bytes));
            sheet.section("tightly", [line]);
        }
        let judged = self.judged().count();
        if self.cards.len() > 1 && judged > 0 {
            sheet.paragraph(
                "fits on",
                &format!(
                    "{} of {}",
                    self.fits_on,
                    counted(judged as u64, "card", "cards")
                ),
            );
        }
        let cannot: Vec<&CardRow> = self.cannot_run().collect();
        if !cannot.is_empty() && judged > 0 {
            let capabilities: Vec<&str> = {
                let mut seen: Vec<&str> = Vec::new();
                for row in &cannot {
                    if !seen.contains(&row.capability.as_str()) {
                        seen.push(&row.capability);
                    }
                }
                seen
            };
            let torch = self.torch.as_deref().unwrap_or("the installed one");
            sheet.paragraph(
                "cannot run",
                &format!(
                    "{} more: torch {torch} has no code for compute capability {}",
                    cannot.len(),
                    capabilities.join(", ")
                ),
            );
        }
        if self.reserve_bytes > 0 {
            sheet.paragraph(
                "assumes",
                &format!(
                    "{} of every card are in use already",
                    human(self.reserve_bytes)
                ),
            );
        }
        if let Some(because) = self.rehearsed_alone_because {
            sheet.paragraph(
                "note",
                &format!("each card was rehearsed by itself: {because}"),
            );
        }
        if !self.not_rehearsed.is_empty() {
            sheet.paragraph(
                "not rehearsed",
                &counted(self.not_rehearsed.len() as u64, "card", "cards"),
            );
        }
    }

    fn cannot_run(&self) -> impl Iterator<Item = &CardRow> {
        let rows = self.cards.iter();
        rows.filter(|row| row.verdict == Verdict::CannotRun)
    }

    fn judged(&self) -> impl Iterator<Item = &CardRow> {
        let rows = self.cards.iter();
        rows.filter(|row| row.verdict != Verdict::CannotRun)
    }

    /// The cards that can run the job, by memory; all cards if there are few.
    fn by_memory(&self) -> Vec<&CardRow> {
        let mut rows: Vec<&CardRow> = match self.cards.len() <= ROWS {
            true => self.cards.iter().collect(),
            false => self.judged().collect(),
        };
        rows.sort_by_key(|row| row.total_bytes);
        rows
    }
}

/// `needs 10.03 GiB: 1.60 GiB (14 %) to spare`.
fn figures(row: &CardRow) -> String {
    let needs = row.needed_device_bytes.map(human);
    match (needs, &row.reason) {
        (Some(needs), Some(reason)) => format!("needs {needs}: {reason}"),
        (Some(needs), None) => format!("needs {needs}"),
        (None, reason) => reason.clone().unwrap_or_default(),
    }
}

/// The cards on both sides of the limit.
fn around_the_limit<'a>(rows: &[&'a CardRow]) -> Vec<&'a CardRow> {
    if rows.len() <= ROWS {
        return rows.to_vec();
    }
    let mut fitting = rows.iter();
    let limit = fitting
        .position(|row| row.fits == Some(true))
        .unwrap_or(rows.len());
    let from = limit
        .saturating_sub(ROWS_BELOW)
        .min(rows.len().saturating_sub(ROWS));
    rows[from..(from + ROWS).min(rows.len())].to_vec()
}

fn table(rows: &[&CardRow], width: usize) -> String {
    let mut table = Table::new(&["card", ">memory", "verdict", ">needs", ">to spare"]);
    for row in rows {
        let name = shortened(
            &row.name,
            width.saturating_sub(FIGURES_WIDTH),
            NAME_BEGINNING,
        );
        table.push(vec![
            name,
            human(row.total_bytes),
            word(row.verdict).0.to_owned(),
            row.needed_device_bytes.map(human).unwrap_or_default(),
            match (row.headroom_bytes, row.missing_bytes) {
                (Some(left), _) => human(left),
                (None, Some(missing)) => format!("-{}", human(missing)),
                (None, None) => String::new(),
            },
        ]);
    }
    table.render()
}

/// `… 41 smaller and 62 larger cards: --all`.
fn what_is_left_out(rows: &[&CardRow], shown: &[&CardRow]) -> Option<String> {
    if rows.len() == shown.len() {
        return None;
    }
    let first = shown.first()?;
    let before = rows.iter().take_while(|row| row.name != first.name).count();
    let after = rows.len() - shown.len() - before;
    let words = [(before, "smaller"), (after, "larger")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, which)| format!("{count} {which}"))
        .collect::<Vec<_>>();
    Some(format!("… {} cards: --all", words.join(" and ")))
}

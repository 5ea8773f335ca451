//! A plan as text: the recommended combination, the others, and the next command.

use ghostgpu_recording::Verdict;
use ghostgpu_text::{Sheet, columns, counted, human};

use super::{Candidate, CandidateOutcome, PlanAnswer, PlanResult, StoppedBecause};
use crate::fits::next::{quoted, wrapped};
use crate::headline::{Headline, word};
use crate::style::{Colour, Detail, Style};

/// How many combinations one screen shows: those that keep the numbers, those that change them, and those that do not
/// fit.
const MOST_KEEPING: usize = 7;
const MOST_CHANGING: usize = 4;
const MOST_MISSES: usize = 4;
/// How many tricks that cannot be used one screen shows with their reason.
const MOST_REASONS: usize = 3;

/// For how many classes of blocks the memory is given.
const MOST_LAYERS: usize = 2;

/// Tables are indented less than other text.
const INDENT: usize = 2;

impl PlanAnswer {
    pub fn text(&self, style: Style) -> String {
        let headline = self.headline();
        if style.detail == Detail::Quiet {
            return headline.alone(style);
        }
        let is_everything = style.detail == Detail::Everything;
        let mut sheet = style.sheet();
        headline.add(&mut sheet);
        self.add_as_it_is(&mut sheet, is_everything);
        let mut text = headline.paint(&sheet, style);
        match self.result {
            PlanResult::FitsAlready | PlanResult::NoQuestion => {}
            PlanResult::Found | PlanResult::FoundTightly => {
                text.push_str(&self.table_of_ways(style.width, is_everything));
            }
            PlanResult::NothingFits => text.push_str(&self.misses(style.width, is_everything)),
        }
        let mut sheet = style.sheet();
        self.add_rest(&mut sheet, is_everything);
        text.push_str(&sheet.render());
        // An empty sheet would add an empty line.
        text.truncate(text.trim_end().len());
        text + "\n"
    }

    fn headline(&self) -> Headline {
        let card = format!("{} ({})", self.gpu.name, human(self.gpu.total_bytes));
        let (word, colour, text) = match (self.result, self.best()) {
            (PlanResult::FitsAlready, _) => (
                word(Verdict::Fits).0,
                Colour::Good,
                format!("as it is on {card}: {}", self.reason),
            ),
            (PlanResult::Found | PlanResult::FoundTightly, Some(best)) => {
                let peak = best.peaks.map_or(0, |peaks| peaks.peak_device_bytes);
                let left = best.headroom_bytes.unwrap_or(0);
                let is_tight = self.result == PlanResult::FoundTightly;
                let text = format!(
                    "{} on {card}: {} on the card, {} left{}",
                    best.in_words,
                    human(peak),
                    human(left),
                    if is_tight { ", which is little" } else { "" }
                );
                let colour = match is_tight {
                    true => Colour::Unknown,
                    false => Colour::Good,
                };
                ("fits with", colour, text)
            }
            (PlanResult::NoQuestion, _) => {
                let (word, colour) = word(self.as_it_is.verdict);
                (word, colour, self.reason.clone())
            }
            _ => ("no plan", Colour::Bad, format!("{} on {card}", self.reason)),
        };
        Headline {
            word: word.into(),
            colour,
            text,
        }
    }

    fn add_as_it_is(&self, sheet: &mut Sheet, is_everything: bool) {
        let Some(peaks) = self.as_it_is.peaks else {
            return;
        };
        let on_card = human(peaks.peak_device_bytes);
        if self.result == PlanResult::FitsAlready {
            let text = format!("{on_card} on the card with everything that was rehearsed");
            sheet.paragraph("peak", &text);
            return;
        }
        let most = if is_everything { usize::MAX } else { 3 };
        let parts: Vec<String> = self
            .as_it_is
            .made_of
            .iter()
            .take(most)
            .map(|part| format!("{} {}", part.title, human(part.bytes)))
            .collect();
        let made_of = match parts.is_empty() {
            true => String::new(),
            false => format!(": {}", parts.join(", ")),
        };
        let what = match self.as_it_is.verdict {
            Verdict::FitsTightly => "fits tightly: it has",
            _ => "does not fit: it has",
        };
        let text = format!("{what} {on_card} with unlimited memory{made_of}");
        sheet.paragraph("as it is", &text);
    }

    /// The combinations that fit, in two parts: those that keep the numbers, and those that change them.
    fn table_of_ways(&self, width: usize, is_everything: bool) -> String {
        let most = |count: usize| if is_everything { usize::MAX } else { count };
        let fitting = |keeps: bool, most: usize| -> Vec<&Candidate> {
            let all = self.candidates.iter().filter(|it| it.outcome.fits());
            let all: Vec<&Candidate> = match is_everything {
                true => all.collect(),
                false => self.fitting().collect(),
            };
            let all = all.into_iter().filter(|it| it.keeps_numbers() == keeps);
            all.take(most).collect()
        };
        let keeping = fitting(true, most(MOST_KEEPING));
        let changing = fitting(false, most(MOST_CHANGING));
        let has_time = keeping
            .iter()
            .chain(&changing)
            .any(|it| it.relative_time.is_some());
        let mut rows = vec![Row::heading("what fits", "on card", has_time)];
        rows.extend(keeping.iter().map(|candidate| Row::of(candidate, has_time)));
        if !changing.is_empty() {
            let title = match self.looked_beyond_what_was_allowed {
                true => "if you --allow it",
                false => "with what --allow permits",
            };
            rows.push(Row::title(title));
            rows.extend(
                changing
                    .iter()
                    .map(|candidate| Row::of(candidate, has_time)),
            );
        }
        if is_everything {
            rows.extend(self.other_rows(has_time));
        }
        lines(&rows, width)
    }

    /// The combinations that did not fit or could not be rehearsed.
    fn other_rows(&self, has_time: bool) -> Vec<Row> {
        let others = self.candidates.iter().filter(|it| !it.outcome.fits());
        let mut rows: Vec<Row> = others
            .map(|candidate| Row::of(candidate, has_time))
            .collect();
        if !rows.is_empty() {
            rows.insert(0, Row::title("what does not"));
        }
        rows
    }

    fn misses(&self, width: usize, is_everything: bool) -> String {
        let has_time = self.candidates.iter().any(|it| it.relative_time.is_some());
        let misses = self
            .candidates
            .iter()
            .filter(|it| it.peaks.is_some() && it.outcome == CandidateOutcome::DoesNotFit);
        let mut rows = vec![Row::heading("nearest misses", "needs", has_time)];
        match is_everything {
            true => rows.extend(self.candidates.iter().map(|it| Row::of(it, has_time))),
            false => rows.extend(misses.take(MOST_MISSES).map(|it| Row::of(it, has_time))),
        }
        match rows.len() {
            1 => String::new(),
            _ => lines(&rows, width),
        }
    }

    fn add_rest(&self, sheet: &mut Sheet, is_everything: bool) {
        for smaller in &self.smaller_data {
            let (one, what) = match smaller.what.as_str() {
                "tokens" => ("token", "tokens instead of"),
                _ => ("sample", "samples in a batch instead of"),
            };
            let saved = smaller
                .before_device_bytes
                .saturating_sub(smaller.after_device_bytes);
            if saved == 0 {
                // The peak does not depend on the data, for example because it is in the optimizer's step.
                continue;
            }
            let each = saved / (smaller.from - smaller.to).max(1);
            sheet.paragraph(
                "smaller data",
                &format!(
                    "{} {what} {}: {} less, {} for each {one}",
                    smaller.to,
                    smaller.from,
                    human(saved),
                    human(each)
                ),
            );
        }
        if self.result == PlanResult::NothingFits {
            self.add_layers(sheet);
        }
        for card in &self.cards {
            let with = match card.in_words.as_str() {
                "" => "as it is".to_owned(),
                words => format!("with {words}"),
            };
            sheet.paragraph(
                "larger card",
                &format!(
                    "{} ({}) {with}: {} on the card",
                    card.name,
                    human(card.total_bytes),
                    human(card.peak_device_bytes)
                ),
            );
        }
        if let Some(largest) = self.largest_batch {
            let own = largest
                .own
                .map(|own| format!("; the script's own is {own}"));
            let text = format!("{} with it{}", largest.batch, own.unwrap_or_default());
            sheet.paragraph("largest batch", &text);
        }
        for (words, because) in self.not_usable().into_iter().take(MOST_REASONS) {
            sheet.paragraph("not usable", &format!("{words}: {because}"));
        }
        if let Some(text) = self.learning_rate() {
            sheet.paragraph("learning rate", &text);
        }
        if self.stopped != StoppedBecause::NotSearched {
            sheet.paragraph("rehearsed", &self.rehearsed());
        }
        if is_everything && let Some(best) = self.best() {
            let did: Vec<String> = best
                .did
                .iter()
                .map(|did| format!("{}: {}", did.trick, did.did))
                .collect();
            sheet.list("does", &did);
        }
        if !self.command.is_empty() {
            let words: Vec<String> = self.command.iter().map(|word| quoted(word)).collect();
            let label = match self.result {
                PlanResult::FitsAlready => "next",
                _ => "train with",
            };
            let command = wrapped(&words, sheet.text_width());
            sheet.section(label, command);
        }
    }

    /// Tricks that cannot be used here, and why; only the first of those with the same reason.
    fn not_usable(&self) -> Vec<(&str, &str)> {
        let mut all: Vec<(&str, &str)> = Vec::new();
        for candidate in &self.candidates {
            if candidate.outcome == CandidateOutcome::Fails
                && let Some(because) = candidate.because.as_deref()
                && !all.iter().any(|(_, known)| *known == because)
            {
                all.push((&candidate.in_words, because));
            }
        }
        all
    }

    /// Why no more combinations were rehearsed although the search was complete.
    fn left_out(&self) -> String {
        let reasons = [
            (self.left_out_since_one_within_fits, "contain one that fits"),
            (self.left_out_as_too_large, "could not save enough"),
            (self.left_out_as_slower, "would be much slower"),
        ];
        let mut parts: Vec<String> = Vec::new();
        for (count, reason) in reasons.into_iter().filter(|(count, _)| *count > 0) {
            let more = if parts.is_empty() { " more" } else { "" };
            parts.push(format!("{count}{more} {reason}"));
        }
        match parts.is_empty() {
            true => "there is nothing else to combine".to_owned(),
            false => parts.join(", "),
        }
    }

    /// What a model with fewer blocks would save.
    fn add_layers(&self, sheet: &mut Sheet) {
        let layers = self.as_it_is.layers.iter();
        for layers in layers.take(MOST_LAYERS) {
            let each = layers.bytes / layers.count.max(1);
            let text = format!(
                "each of the {} blocks ({}) has {} of what the job has as it is",
                layers.count,
                layers.class,
                human(each)
            );
            sheet.paragraph("smaller model", &text);
        }
    }

    /// The usual rules for the learning rate if the batch changes.
    fn learning_rate(&self) -> Option<String> {
        let halved = self.smaller_data.iter().find(|it| it.what == "batch");
        let halved = halved.map(|it| (it.from, it.to));
        let larger = self.largest_batch.and_then(|it| Some((it.own?, it.batch)));
        let (from, to) = larger.or(halved).filter(|(from, to)| from != to)?;
        let part = to as f64 / from.max(1) as f64;
        Some(format!(
            "with {to} samples in a step instead of {from} usually ×{part:.2} with SGD, ×{:.2} with Adam",
            part.sqrt()
        ))
    }

    /// How many combinations were rehearsed, and why no more.
    fn rehearsed(&self) -> String {
        let fitting = self
            .candidates
            .iter()
            .filter(|it| it.outcome.fits())
            .count();
        let rehearsals = counted(self.rehearsals as u64, "rehearsal", "rehearsals");
        let candidates = counted(self.candidates.len() as u64, "combination", "combinations");
        let because = match self.stopped {
            StoppedBecause::NothingLeft => self.left_out(),
            StoppedBecause::Spent => {
                "no more were allowed (--rehearsals), better ones may be left".to_owned()
            }
            StoppedBecause::Interrupted => "interrupted, better ones may be left".to_owned(),
            StoppedBecause::NotSearched => String::new(),
        };
        let margin = match self.margin_bytes {
            0 => String::new(),
            bytes => format!(", with {} to be left", human(bytes)),
        };
        format!("{candidates} in {rehearsals}, {fitting} fit{margin}; {because}")
    }
}

/// A row of the table.
struct Row {
    what: String,
    /// The other columns, right-aligned; the last one is left-aligned.
    cells: Vec<String>,
}

impl Row {
    fn heading(what: &str, bytes: &str, has_time: bool) -> Self {
        let mut cells = vec![bytes.to_owned(), "left".to_owned()];
        if has_time {
            cells.push("time".to_owned());
        }
        cells.push("numbers".to_owned());
        Self {
            what: what.to_owned(),
            cells,
        }
    }

    fn title(what: &str) -> Self {
        Self {
            what: what.to_owned(),
            cells: Vec::new(),
        }
    }

    fn of(candidate: &Candidate, has_time: bool) -> Self {
        let none = || "-".to_owned();
        let bytes = candidate.peaks.map(|peaks| human(peaks.peak_device_bytes));
        let left = candidate.headroom_bytes.map(human);
        let mut cells = vec![bytes.unwrap_or_else(none), left.unwrap_or_else(none)];
        if has_time {
            let time = candidate.relative_time.map(|time| format!("×{time:.2}"));
            cells.push(time.unwrap_or_else(none));
        }
        let numbers = candidate.numerics.to_string();
        cells.push(match candidate.outcome {
            CandidateOutcome::FitsTightly => format!("{numbers}, tight"),
            CandidateOutcome::Fails => "cannot be used".to_owned(),
            CandidateOutcome::NotKnown => "not known".to_owned(),
            CandidateOutcome::Fits | CandidateOutcome::DoesNotFit => numbers,
        });
        Self {
            what: candidate.in_words.clone(),
            cells,
        }
    }
}

/// Renders the table; text that is too long for the first column continues on the next line.
fn lines(rows: &[Row], width: usize) -> String {
    let count = rows.iter().map(|row| row.cells.len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.cells.get(column));
            cells.map(|cell| columns(cell)).max().unwrap_or(0)
        })
        .collect();
    let right: usize = widths.iter().map(|width| width + 2).sum();
    let room = width.saturating_sub(INDENT + right).max(20);
    let longest = rows.iter().map(|row| columns(&row.what)).max().unwrap_or(0);
    let room = room.min(longest);
    let mut text = String::new();
    for row in rows {
        let parts = between_flags(&row.what, room);
        for (place, part) in parts.iter().enumerate() {
            let indent = match (row.cells.is_empty(), place) {
                (true, _) => 0,
                (false, _) => INDENT,
            };
            let mut line = " ".repeat(indent) + part;
            if place == 0 && !row.cells.is_empty() {
                line.push_str(&" ".repeat((INDENT + room).saturating_sub(columns(&line))));
                let last = row.cells.len() - 1;
                for (column, (cell, width)) in row.cells.iter().zip(&widths).enumerate() {
                    let padding = " ".repeat(width.saturating_sub(columns(cell)));
                    line.push_str(&match column == last {
                        true => format!("  {cell}"),
                        false => format!("  {padding}{cell}"),
                    });
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    text
}

/// Wraps flags; a flag and its value stay together.
fn between_flags(words: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (place, flag) in words.split(" --").enumerate() {
        let flag = match place {
            0 => flag.to_owned(),
            _ => format!("--{flag}"),
        };
        match lines.last_mut() {
            Some(line) if columns(line) + 1 + columns(&flag) <= width => {
                *line = format!("{line} {flag}");
            }
            _ => lines.push(flag),
        }
    }
    lines
}

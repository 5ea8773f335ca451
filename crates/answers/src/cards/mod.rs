//! On which cards does a job fit? The answer of `cards`, as data and as text.

mod text;

use serde::Serialize;

use crate::csv;
use ghostgpu_device::Card;
use ghostgpu_plan::cards::{OnOneCard, Question, Survey};
use ghostgpu_recording::Verdict;
use ghostgpu_rehearse::EXIT_DOES_NOT_FIT;

/// Adding a field keeps the version; `docs/cards-json.md` describes them.
const SCHEMA: &str = "ghostgpu.cards/1";

/// The JSON document of `--json`; the text shows the same.
#[derive(Clone, Debug, Serialize)]
pub struct Cards {
    /// Name and version of the document.
    pub schema: &'static str,
    /// The script with its arguments.
    pub command: Vec<String>,
    /// The card with the least memory on which the job fits.
    pub smallest_that_fits: Option<String>,
    /// How many cards it fits on, tightly or not.
    pub fits_on: usize,
    /// In the order of the catalogue, or of `--gpu`.
    pub cards: Vec<CardRow>,
    /// Cards that were not reached before the command was interrupted.
    pub not_rehearsed: Vec<String>,
    /// What others use of every card (`--reserve`).
    pub reserve_bytes: u64,
    pub torch: Option<String>,
    /// How often the job was rehearsed.
    pub rehearsals: usize,
    /// Why every card was rehearsed individually.
    pub rehearsed_alone_because: Option<&'static str>,
    pub exit_code: u8,
}

/// One card. Figures have the same names and meanings as in the answer of `run`.
#[derive(Clone, Debug, Serialize)]
pub struct CardRow {
    pub name: String,
    /// What `--gpu` takes.
    pub gpu: String,
    pub total_bytes: u64,
    pub capability: String,
    pub verdict: Verdict,
    pub fits: Option<bool>,
    pub reason: Option<String>,
    pub needed_device_bytes: Option<u64>,
    pub needed_reserved_bytes: Option<u64>,
    pub headroom_bytes: Option<u64>,
    /// How much memory the card lacks.
    pub missing_bytes: Option<u64>,
    pub margin_bytes: u64,
    /// The job was rehearsed on this card with its own memory; else the row follows from rehearsals on similar cards.
    pub rehearsed: bool,
}

impl Cards {
    pub fn new(survey: &Survey, question: &Question, command: Vec<String>) -> Self {
        let reserve = question.reserve_bytes;
        let rows: Vec<CardRow> = survey
            .known
            .iter()
            .map(|row| CardRow::new(row, reserve))
            .collect();
        let exit_code = match &survey.failed_first {
            Some(failure) => failure.exit_code,
            None => exit_code(&rows),
        };
        Self {
            schema: SCHEMA,
            command,
            smallest_that_fits: smallest(&rows, Verdict::Fits).map(|row| row.name.clone()),
            fits_on: rows.iter().filter(|row| row.fits == Some(true)).count(),
            cards: rows,
            not_rehearsed: names(&survey.open),
            reserve_bytes: reserve,
            torch: question.torch.map(str::to_owned),
            rehearsals: survey.rehearsals,
            rehearsed_alone_because: survey.alone_because,
            exit_code,
        }
    }

    /// One line for each card, for spreadsheets.
    pub fn csv(&self) -> String {
        let number = |bytes: Option<u64>| bytes.map(|bytes| bytes.to_string()).unwrap_or_default();
        let rows = self.cards.iter().map(|row| {
            vec![
                row.name.clone(),
                row.gpu.clone(),
                row.capability.clone(),
                row.total_bytes.to_string(),
                verdict_name(row.verdict),
                number(row.needed_device_bytes),
                number(row.headroom_bytes),
                number(row.missing_bytes),
                row.margin_bytes.to_string(),
                row.reason.clone().unwrap_or_default(),
            ]
        });
        csv::table(
            &[
                "card",
                "gpu",
                "capability",
                "total_bytes",
                "verdict",
                "needed_device_bytes",
                "headroom_bytes",
                "missing_bytes",
                "margin_bytes",
                "reason",
            ],
            rows,
        )
    }
}

impl CardRow {
    fn new(row: &OnOneCard, reserve_bytes: u64) -> Self {
        let need = row.need.as_ref();
        let does_not_fit = row.verdict == Verdict::DoesNotFit;
        let missing = row.missing_bytes(reserve_bytes);
        Self {
            name: row.card.name.to_owned(),
            gpu: crate::gpus::short_name(row.card),
            total_bytes: row.card.total_bytes,
            capability: row.card.capability.to_string(),
            verdict: row.verdict,
            fits: row.verdict.fits(),
            reason: row.reason.clone(),
            needed_device_bytes: need.map(|need| need.device_bytes),
            needed_reserved_bytes: need.and_then(|need| need.reserved_bytes),
            headroom_bytes: row.headroom_bytes,
            missing_bytes: missing.filter(|_| does_not_fit),
            margin_bytes: row.margin_bytes,
            rehearsed: row.is_rehearsed,
        }
    }
}

fn names(cards: &[&Card]) -> Vec<String> {
    cards.iter().map(|card| card.name.to_owned()).collect()
}

/// The card with least memory that has this verdict; the first of equals.
fn smallest(rows: &[CardRow], verdict: Verdict) -> Option<&CardRow> {
    let rows = rows.iter().filter(|row| row.verdict == verdict);
    rows.min_by_key(|row| row.total_bytes)
}

/// The exit code of the best verdict of any card.
fn exit_code(rows: &[CardRow]) -> u8 {
    const BEST_FIRST: [Verdict; 7] = [
        Verdict::Fits,
        Verdict::FitsTightly,
        Verdict::NotKnown,
        Verdict::WillRunOut,
        Verdict::DoesNotFit,
        Verdict::DidNotUseCard,
        Verdict::CannotRun,
    ];
    let best = BEST_FIRST
        .into_iter()
        .find(|verdict| rows.iter().any(|row| row.verdict == *verdict));
    best.and_then(Verdict::exit_code)
        .unwrap_or(EXIT_DOES_NOT_FIT)
}

/// As JSON has it: `does-not-fit`.
pub(crate) fn verdict_name(verdict: Verdict) -> String {
    let value = serde_json::to_value(verdict).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;

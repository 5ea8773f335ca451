//! A job with many arguments on many cards: the answer of `sweep`, as data and as text.

mod page;
mod text;

use std::collections::BTreeMap;

use ghostgpu_recording::Verdict;
use ghostgpu_rehearse::{EXIT_DOES_NOT_FIT, EXIT_FAILURE};
use serde::{Deserialize, Serialize};

use crate::cards::verdict_name;
use crate::csv;

/// Adding a field keeps the version; `docs/sweep-json.md` describes them.
const SCHEMA: &str = "ghostgpu.sweep/1";

/// The JSON document of `--json`; the text shows the same.
#[derive(Clone, Debug, Serialize)]
pub struct Sweep {
    /// Name and version of the document.
    pub schema: &'static str,
    /// The script with the arguments that all points have.
    pub command: Vec<String>,
    pub arguments: Vec<SweptArgument>,
    pub points: Vec<Point>,
    /// Arguments whose values made no difference.
    pub without_effect: Vec<String>,
    /// How many points were not reached.
    pub not_rehearsed: usize,
    pub exit_code: u8,
}

/// An argument of the script, with its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SweptArgument {
    pub name: String,
    pub values: Vec<String>,
}

/// The job with one value for each argument, on one card.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// In the order of the arguments.
    pub values: Vec<String>,
    #[serde(flatten)]
    pub card: OnCard,
    /// Known from an earlier sweep.
    pub known_before: bool,
}

/// What `cards` says about one card, as far as it is kept. Names and meanings are those of its document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OnCard {
    pub name: String,
    pub gpu: String,
    pub total_bytes: u64,
    pub verdict: Verdict,
    pub fits: Option<bool>,
    pub reason: Option<String>,
    pub needed_device_bytes: Option<u64>,
    pub headroom_bytes: Option<u64>,
    pub missing_bytes: Option<u64>,
    pub margin_bytes: u64,
}

impl Sweep {
    pub fn new(
        command: Vec<String>,
        arguments: Vec<SweptArgument>,
        points: Vec<Point>,
        not_rehearsed: usize,
    ) -> Self {
        let has_answer = points.iter().any(|point| is_answer(point.card.verdict));
        let fits = points.iter().any(|point| point.card.fits == Some(true));
        Self {
            schema: SCHEMA,
            without_effect: without_effect(&arguments, &points),
            command,
            arguments,
            exit_code: match (fits, has_answer) {
                (true, _) => 0,
                (false, true) => EXIT_DOES_NOT_FIT,
                (false, false) => EXIT_FAILURE,
            },
            points,
            not_rehearsed,
        }
    }

    /// One line for each point, for spreadsheets.
    pub fn csv(&self) -> String {
        let names = self.arguments.iter().map(|argument| argument.name.as_str());
        let figures = [
            "card",
            "total_bytes",
            "verdict",
            "needed_device_bytes",
            "headroom_bytes",
            "missing_bytes",
            "margin_bytes",
            "reason",
        ];
        let headings: Vec<&str> = names.chain(figures).collect();
        let number = |bytes: Option<u64>| bytes.map(|bytes| bytes.to_string()).unwrap_or_default();
        let rows = self.points.iter().map(|point| {
            let card = &point.card;
            let figures = [
                card.name.clone(),
                card.total_bytes.to_string(),
                verdict_name(card.verdict),
                number(card.needed_device_bytes),
                number(card.headroom_bytes),
                number(card.missing_bytes),
                card.margin_bytes.to_string(),
                card.reason.clone().unwrap_or_default(),
            ];
            point.values.iter().cloned().chain(figures).collect()
        });
        csv::table(&headings, rows)
    }
}

/// Whether a verdict is about the job's memory, and not about what prevented a rehearsal.
pub fn is_answer(verdict: Verdict) -> bool {
    !matches!(
        verdict,
        Verdict::ScriptFailed
            | Verdict::ScriptKilled
            | Verdict::TimedOut
            | Verdict::Refused
            | Verdict::PreloadBlocked
    )
}

/// Arguments with several values that make no difference in any combination of the others.
fn without_effect(arguments: &[SweptArgument], points: &[Point]) -> Vec<String> {
    let has_no_effect = |index: usize| {
        // The first result, by the other values and the card.
        let mut seen: BTreeMap<(Vec<&str>, &str), &OnCard> = BTreeMap::new();
        let mut is_compared = false;
        for point in points.iter().filter(|point| is_answer(point.card.verdict)) {
            let mut others: Vec<&str> = point.values.iter().map(String::as_str).collect();
            others.remove(index);
            let card = &point.card;
            if let Some(first) = seen.get(&(others.clone(), card.name.as_str())) {
                is_compared = true;
                let is_same = first.verdict == card.verdict
                    && first.needed_device_bytes == card.needed_device_bytes;
                if !is_same || card.needed_device_bytes.is_none() {
                    return false;
                }
            } else {
                seen.insert((others, card.name.as_str()), card);
            }
        }
        is_compared
    };
    let indices = (0..arguments.len()).filter(|&index| has_no_effect(index));
    indices.map(|index| arguments[index].name.clone()).collect()
}

#[cfg(test)]
mod tests;

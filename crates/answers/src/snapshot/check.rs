//! Whether a snapshot stays within limits.

use ghostgpu_ledger::CardLedger;
use ghostgpu_text::{human, wrap};
use serde_json::{Value, json};

use crate::style::{Detail, Style};

/// Adding a field keeps the version; `docs/snapshot-json.md` describes them.
const SCHEMA: &str = "ghostgpu.snapshot.check/1";

/// Width of the word before a sentence.
const WORD_WIDTH: usize = 8;

/// Limits that no device may exceed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    pub max_reserved_bytes: Option<u64>,
    pub max_live_bytes: Option<u64>,
    pub max_fragmentation_percent: Option<f64>,
    /// No request may have failed.
    pub no_oom: bool,
}

/// Every limit, checked for every device.
#[derive(Debug)]
pub struct Checks<'a> {
    checked: Vec<Checked>,
    /// What the file lacks.
    warnings: &'a [String],
}

/// One limit, checked for one device.
#[derive(Clone, Copy, Debug)]
struct Checked {
    device: u32,
    figure: Figure,
}

/// What is limited: what was found, and the limit.
#[derive(Clone, Copy, Debug)]
enum Figure {
    ReservedBytes(u64, u64),
    LiveBytes(u64, u64),
    /// The share, and the bytes.
    FragmentationPercent(f64, u64, f64),
    FailedRequests(usize),
}

impl<'a> Checks<'a> {
    pub fn of(ledgers: &[CardLedger], limits: &Limits, warnings: &'a [String]) -> Self {
        let checked = ledgers.iter().flat_map(|ledger| check(ledger, limits));
        Self {
            checked: checked.collect(),
            warnings,
        }
    }

    pub fn all_kept(&self) -> bool {
        self.checked.iter().all(|each| each.figure.is_kept())
    }

    pub fn text(&self, style: Style) -> String {
        let mut text = String::new();
        let mut line = |word: &str, sentence: &str| {
            let width = style.width.saturating_sub(WORD_WIDTH);
            for (index, part) in wrap(sentence, width).into_iter().enumerate() {
                let word = if index == 0 { word } else { "" };
                text.push_str(&format!("{word:WORD_WIDTH$}{part}\n"));
            }
        };
        for Checked { device, figure } in &self.checked {
            let word = if figure.is_kept() { "ok" } else { "failed" };
            line(word, &format!("device {device}: {}", figure.in_words()));
        }
        if style.detail != Detail::Quiet {
            for warning in self.warnings {
                line("note", warning);
            }
        }
        text
    }

    pub fn json(&self) -> Value {
        let checks: Vec<Value> = self.checked.iter().map(Checked::json).collect();
        json!({
            "schema": SCHEMA,
            "is_within_limits": self.all_kept(),
            "checks": checks,
            "warnings": self.warnings,
        })
    }
}

impl Checked {
    fn json(&self) -> Value {
        let (limited, found, limit) = match self.figure {
            Figure::ReservedBytes(found, limit) => ("reserved_bytes", json!(found), json!(limit)),
            Figure::LiveBytes(found, limit) => ("live_bytes", json!(found), json!(limit)),
            Figure::FragmentationPercent(found, _, limit) => {
                ("fragmentation_percent", json!(found), json!(limit))
            }
            Figure::FailedRequests(found) => ("failed_requests", json!(found), json!(0)),
        };
        json!({
            "device": self.device,
            "limited": limited,
            "found": found,
            "limit": limit,
            "is_kept": self.figure.is_kept(),
        })
    }
}

impl Figure {
    fn is_kept(self) -> bool {
        match self {
            Self::ReservedBytes(found, limit) | Self::LiveBytes(found, limit) => found <= limit,
            Self::FragmentationPercent(found, _, limit) => found <= limit,
            Self::FailedRequests(found) => found == 0,
        }
    }

    fn in_words(self) -> String {
        let sizes = |what: &str, found: u64, limit: u64| {
            let (found, limit) = (human(found), human(limit));
            format!("{what} at most {found}, the limit is {limit}")
        };
        match self {
            Self::ReservedBytes(found, limit) => sizes("reserved", found, limit),
            Self::LiveBytes(found, limit) => sizes("live", found, limit),
            Self::FragmentationPercent(found, bytes, limit) => format!(
                "{found:.1} % of peak reserved memory ({}) was never in use, the limit is {limit} %",
                human(bytes)
            ),
            Self::FailedRequests(1) => "1 request failed, the limit is 0".to_owned(),
            Self::FailedRequests(found) => format!("{found} requests failed, the limit is 0"),
        }
    }
}

fn check(ledger: &CardLedger, limits: &Limits) -> Vec<Checked> {
    let reserved_bytes = ledger.peak_reserved().reserved_bytes;
    let live_bytes = ledger.peak().requested_bytes;
    let fragmentation = |limit| {
        let bytes = ledger.never_used_bytes();
        let share = match reserved_bytes {
            0 => 0.0,
            reserved => bytes as f64 / reserved as f64 * 100.0,
        };
        Figure::FragmentationPercent(share, bytes, limit)
    };
    let figures = [
        limits
            .max_reserved_bytes
            .map(|limit| Figure::ReservedBytes(reserved_bytes, limit)),
        limits
            .max_live_bytes
            .map(|limit| Figure::LiveBytes(live_bytes, limit)),
        limits.max_fragmentation_percent.map(fragmentation),
        limits
            .no_oom
            .then(|| Figure::FailedRequests(ledger.card().failures.len())),
    ];
    let device = ledger.card().index;
    let figures = figures.into_iter().flatten();
    figures.map(|figure| Checked { device, figure }).collect()
}

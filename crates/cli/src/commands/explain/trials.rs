//! What dry runs said about advice.

use ghostgpu_explain::{Advice, Effect};
use serde::Serialize;

use crate::probing::Peaks;
use crate::report::Sheet;
use crate::size::{gib, grouped, human};

/// All that was tried.
#[derive(Clone, Debug, Serialize)]
pub struct Trials {
    pub card: String,
    pub total_bytes: u64,
    /// On what the choice of the card rests, and what else was assumed.
    pub assumptions: Vec<String>,
    pub as_it_is: AsItIs,
    pub works: Vec<Works>,
    pub fails: Vec<Fails>,
    /// Advice that is a change in the script, which a dry run does not make.
    pub untried: Vec<Advice>,
}

/// The script without any change.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum AsItIs {
    Fits {
        #[serde(flatten)]
        peaks: Peaks,
    },
    DoesNotFit {
        place: String,
        needed_bytes: Option<u64>,
    },
    Fails {
        because: String,
    },
}

/// Advice with which the script fits.
#[derive(Clone, Debug, Serialize)]
pub struct Works {
    pub what: String,
    pub command: String,
    pub effect: Effect,
    #[serde(flatten)]
    pub peaks: Peaks,
    /// Of the card with which it works.
    pub total_bytes: u64,
    pub is_other_card: bool,
}

/// Advice that was tried in vain.
#[derive(Clone, Debug, Serialize)]
pub struct Fails {
    pub what: String,
    pub because: String,
}

impl Trials {
    /// What changes least comes first, and what costs money last.
    pub fn rank(&mut self) {
        self.works.sort_by_key(|works| {
            let effect = match works.effect {
                Effect::Identical => 0,
                Effect::Rounding => 1,
                Effect::Precision => 2,
                Effect::Training | Effect::Service => 3,
            };
            (works.is_other_card, effect)
        });
        let has_tried = |words: &[&str]| {
            let tried = self.works.iter().map(|works| &works.what);
            let mut tried = tried.chain(self.fails.iter().map(|fails| &fails.what));
            tried.any(|what| words.iter().any(|word| what.contains(word)))
        };
        let is_checkpointing_tried = has_tried(&["checkpoint"]);
        let is_precision_tried = has_tried(&["--amp", "--bf16", "--fp16", "--half", "precision"]);
        self.untried.retain(|advice| {
            let is_tried = is_checkpointing_tried && advice.what.contains("checkpointing")
                || is_precision_tried && advice.what.contains("autocast");
            !is_tried
        });
    }

    /// A dry run has shown that this kind of advice works, whatever the log alone suggests.
    pub fn contradicts(&self, advice: &str) -> bool {
        let has_batch = self
            .works
            .iter()
            .any(|works| works.what.contains("batch of"));
        has_batch && advice.starts_with("a smaller batch")
    }

    /// The script fits as it is, or with something that was tried.
    pub fn has_answer(&self) -> bool {
        !self.works.is_empty() || matches!(self.as_it_is, AsItIs::Fits { .. })
    }

    pub fn write(&self, sheet: &mut Sheet) {
        sheet.paragraph(
            "tried on",
            &format!("a virtual {} ({})", self.card, gib(self.total_bytes)),
        );
        sheet.paragraph("as it is", &self.as_it_is());
        for (index, works) in self.works.iter().enumerate() {
            let label = if index == 0 { "works" } else { "" };
            let peaks = works.peaks;
            sheet.paragraph(
                label,
                &format!(
                    "{}. {} ({}): on the card at most {} of {}, allocated {}",
                    index + 1,
                    works.what,
                    works.effect.words(),
                    gib(peaks.device_bytes),
                    gib(works.total_bytes),
                    gib(peaks.allocated_bytes),
                ),
            );
            sheet.section("", [format!("     {}", works.command)]);
        }
        if self.works.is_empty() && !matches!(self.as_it_is, AsItIs::Fits { .. }) {
            sheet.paragraph("works", "nothing that was tried");
        }
        let fails: Vec<String> = self
            .fails
            .iter()
            .map(|fails| format!("{}: {}", fails.what, fails.because))
            .collect();
        sheet.list("in vain", &fails);
        if !self.untried.is_empty() {
            let names: Vec<&str> = self.untried.iter().map(|each| each.what.as_str()).collect();
            let sentence = format!("changes in the script itself: {}", names.join("; "));
            sheet.paragraph("not tried", &sentence);
        }
        sheet.list("assumes", &self.assumptions);
    }

    fn as_it_is(&self) -> String {
        match &self.as_it_is {
            AsItIs::Fits { peaks } => format!(
                "it fits on an empty card: {} on the card at most ({} bytes), {} allocated",
                gib(peaks.device_bytes),
                grouped(peaks.device_bytes),
                gib(peaks.allocated_bytes)
            ),
            AsItIs::DoesNotFit {
                place,
                needed_bytes,
            } => {
                let needed = needed_bytes.map(|bytes| format!("; it would need {}", human(bytes)));
                format!("out of memory {place}{}", needed.unwrap_or_default())
            }
            AsItIs::Fails { because } => format!("the script fails for another reason: {because}"),
        }
    }
}

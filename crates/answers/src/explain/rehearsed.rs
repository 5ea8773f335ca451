//! The results of rehearsing advice, for the answer.

use ghostgpu_explain::{Advice, Candidate, Catalogue, Effect, Unhelpful, say};
use serde::Serialize;

use ghostgpu_rehearse::{EXIT_DOES_NOT_FIT, Peaks};
use ghostgpu_text::{Sheet, grouped, human};

use super::combinations;
use crate::plan::{Candidate as Combination, PlanAnswer};

/// Everything that was rehearsed.
#[derive(Clone, Debug, Serialize)]
pub struct Rehearsed {
    pub card: String,
    pub total_bytes: u64,
    /// Why this card was chosen, and other assumptions.
    pub assumptions: Vec<String>,
    pub as_it_is: AsItIs,
    /// The answer of `ghostgpu plan`; `None` if the script fits as it is, or fails.
    pub plan: Option<PlanAnswer>,
    /// Other advice, and single tricks.
    pub works: Vec<Works>,
    pub fails: Vec<Fails>,
    /// Advice that cannot be rehearsed, or that found nothing to change; each says why.
    pub not_rehearsed: Vec<Advice>,
}

/// The script without any change.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum AsItIs {
    Fits {
        #[serde(flatten)]
        peaks: Peaks,
        /// The number of steps after which the rehearsal ended the script, if it did.
        stopped_after_steps: Option<u64>,
        /// By how much its memory grew per step, if it did.
        grows_by_bytes: Option<u64>,
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
    /// What was changed, if the command does not say so.
    pub did: Option<String>,
    #[serde(flatten)]
    pub peaks: Peaks,
    /// The memory of the card on which it works.
    pub total_bytes: u64,
    pub is_other_card: bool,
    /// The kind of advice it is.
    #[serde(skip)]
    pub candidate: Option<Candidate>,
}

/// Advice that did not help.
#[derive(Clone, Debug, Serialize)]
pub struct Fails {
    pub what: String,
    pub because: String,
}

impl Rehearsed {
    /// Sorts what works: the smallest changes first, other cards last.
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
    }

    /// Whether a rehearsal has shown that this helps, although the log alone suggests otherwise.
    pub fn contradicts(&self, unhelpful: &Unhelpful) -> bool {
        let mut working = self.works.iter().map(|works| works.candidate);
        unhelpful.candidate.is_some() && working.any(|candidate| candidate == unhelpful.candidate)
    }

    /// Whether the script fits as it is, or with something that was rehearsed.
    pub fn has_answer(&self) -> bool {
        let has_plan = self.best_combination().is_some();
        has_plan || !self.works.is_empty() || matches!(self.as_it_is, AsItIs::Fits { .. })
    }

    /// The exit code of the command.
    pub fn exit_code(&self) -> u8 {
        match self.has_answer() {
            true => 0,
            false => EXIT_DOES_NOT_FIT,
        }
    }

    /// What the plan recommends.
    pub fn best_combination(&self) -> Option<&Combination> {
        self.plan.as_ref()?.best()
    }

    pub fn write(&self, sheet: &mut Sheet, catalogue: &Catalogue) {
        let label = |id: &str| say!(catalogue, id);
        sheet.paragraph(
            &label("label-rehearsed-on"),
            &say!(
                catalogue,
                "rehearsed-on-card",
                card = self.card.clone(),
                total = human(self.total_bytes)
            ),
        );
        sheet.paragraph(&label("label-as-it-is"), &self.as_it_is(catalogue));
        if let Some(plan) = &self.plan {
            combinations::add_all(sheet, plan, catalogue);
        }
        for (index, works) in self.works.iter().enumerate() {
            let works_label = match index {
                0 => label("label-works"),
                _ => String::new(),
            };
            let peaks = works.peaks;
            let clause = |did: &String| format!("{did}{}", say!(catalogue, "list-clause"));
            let text = say!(
                catalogue,
                "works-line",
                number = index + 1,
                what = works.what.clone(),
                effect = works.effect.words(catalogue),
                did = works.did.as_ref().map(clause).unwrap_or_default(),
                device = human(peaks.device_bytes),
                total = human(works.total_bytes),
                allocated = human(peaks.allocated_bytes),
            );
            sheet.paragraph(&works_label, &text);
            sheet.section("", [format!("     {}", works.command)]);
        }
        if !self.has_answer() {
            sheet.paragraph(&label("label-works"), &label("nothing-works"));
        }
        let fails: Vec<String> = self
            .fails
            .iter()
            .map(|fails| {
                say!(
                    catalogue,
                    "useless-line",
                    what = fails.what.clone(),
                    why = fails.because.clone()
                )
            })
            .collect();
        sheet.list(&label("label-did-not-help"), &fails);
        let not_rehearsed: Vec<String> = self
            .not_rehearsed
            .iter()
            .map(|advice| match &advice.not_rehearsed_because {
                Some(because) => say!(
                    catalogue,
                    "useless-line",
                    what = advice.what.clone(),
                    why = because.clone()
                ),
                None => advice.what.clone(),
            })
            .collect();
        sheet.list(&label("label-not-rehearsed"), &not_rehearsed);
        sheet.list(&label("label-assumes"), &self.assumptions);
    }

    /// The result of the script without any change, as a sentence.
    pub fn as_it_is(&self, catalogue: &Catalogue) -> String {
        match &self.as_it_is {
            AsItIs::Fits {
                peaks,
                stopped_after_steps,
                grows_by_bytes,
            } => {
                let steps = stopped_after_steps
                    .map(|steps| say!(catalogue, "as-it-is-steps", count = steps))
                    .unwrap_or_default();
                let further = match (grows_by_bytes, stopped_after_steps) {
                    (Some(bytes), _) => {
                        say!(catalogue, "as-it-is-grows", bytes = human(*bytes))
                    }
                    (None, Some(_)) => say!(catalogue, "as-it-is-stopped"),
                    (None, None) => String::new(),
                };
                let fits = say!(
                    catalogue,
                    "as-it-is-fits",
                    steps = steps,
                    device = human(peaks.device_bytes),
                    bytes = grouped(peaks.device_bytes),
                    allocated = human(peaks.allocated_bytes),
                );
                format!("{fits}{further}")
            }
            AsItIs::DoesNotFit {
                place,
                needed_bytes,
            } => {
                let failed = say!(catalogue, "out-of-memory", place = place.clone());
                let needed = needed_bytes
                    .map(|bytes| say!(catalogue, "as-it-is-needs", bytes = human(bytes)));
                format!("{failed}{}", needed.unwrap_or_default())
            }
            AsItIs::Fails { because } => {
                say!(catalogue, "as-it-is-fails", because = because.clone())
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    pub fn peaks(gib: u64) -> Peaks {
        Peaks {
            allocated_bytes: gib * GIB,
            reserved_bytes: gib * GIB,
            device_bytes: (gib + 1) * GIB,
        }
    }

    pub fn works(what: &str, effect: Effect, did: Option<&str>) -> Works {
        Works {
            what: what.to_owned(),
            command: format!("do {what}"),
            effect,
            did: did.map(str::to_owned),
            peaks: peaks(6),
            total_bytes: 12 * GIB,
            is_other_card: false,
            candidate: None,
        }
    }

    pub fn rehearsed(as_it_is: AsItIs) -> Rehearsed {
        Rehearsed {
            card: "NVIDIA GeForce RTX 3060".to_owned(),
            total_bytes: 12 * GIB,
            assumptions: Vec::new(),
            as_it_is,
            plan: None,
            works: Vec::new(),
            fails: Vec::new(),
            not_rehearsed: Vec::new(),
        }
    }

    fn text(rehearsed: &Rehearsed) -> String {
        let mut sheet = Sheet::default();
        rehearsed.write(&mut sheet, ghostgpu_explain::Language::English.catalogue());
        sheet.render()
    }

    #[test]
    fn what_was_tried_is_told_with_its_figure_and_what_was_not_with_its_reason() {
        let mut rehearsed = rehearsed(AsItIs::DoesNotFit {
            place: "in step 1 (forward), at train.py:9".to_owned(),
            needed_bytes: Some(14 * GIB),
        });
        rehearsed.works = vec![
            works("a batch of 3", Effect::Training, None),
            works(
                "gradient checkpointing",
                Effect::Identical,
                Some("12 Block modules checkpointed"),
            ),
        ];
        rehearsed.fails.push(Fails {
            what: "bfloat16 autocast".to_owned(),
            because: "out of memory in step 1 (backward)".to_owned(),
        });
        let advice: Advice = Advice {
            name: "quantised".to_owned(),
            what: "weights in 8 or 4 bits".to_owned(),
            command: String::new(),
            why: String::new(),
            effect: Effect::Precision,
            candidate: None,
            not_rehearsed_because: None,
        };
        rehearsed
            .not_rehearsed
            .push(advice.not_rehearsed("needs bitsandbytes"));
        rehearsed.rank();
        insta::assert_snapshot!(text(&rehearsed));
    }

    #[test]
    fn a_script_that_fits_is_told_with_how_far_it_was_watched() {
        let cases = [
            (None, None, "on an empty card: 4.00 GiB", "allocated\n"),
            (
                Some(3),
                None,
                "on an empty card for 3 steps: 4.00 GiB",
                "--steps looks further",
            ),
            (
                Some(20),
                Some(5 << 20),
                "for 20 steps",
                "growing by 5.00 MiB with every step",
            ),
        ];
        for (stopped_after_steps, grows_by_bytes, begin, end) in cases {
            let text = text(&rehearsed(AsItIs::Fits {
                peaks: peaks(3),
                stopped_after_steps,
                grows_by_bytes,
            }));
            let joined = text.replace("\n               ", " ");
            assert!(joined.contains(begin) && joined.contains(end), "{text}");
        }
    }
}

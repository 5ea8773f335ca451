//! What the fixes save, as text and as JSON.

use serde_json::{Value, json};

use crate::probing::Peaks;
use crate::report::Headline;
use crate::terminal::{Detail, Look};
use ghostgpu_text::{Table, human, shortened};

/// Width of what stands beside the name of a fix.
const BESIDE_NAME: usize = 38;

/// Which text of the script ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Variant {
    AsItIs,
    Alone {
        line: usize,
        rule: &'static str,
        title: String,
    },
    All {
        count: usize,
        rules: Vec<&'static str>,
    },
}

impl Variant {
    pub fn name(&self) -> String {
        match self {
            Self::AsItIs => "as it is".to_owned(),
            Self::Alone { line, rule, .. } => format!("line {line}, {rule} alone"),
            Self::All { count: 1, rules } => {
                format!("with the fix of {}", rules.first().unwrap_or(&"its rule"))
            }
            Self::All { count, .. } => format!("with all {count} fixes"),
        }
    }
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Run {
    Fits(Peaks),
    DoesNotFit {
        place: String,
        /// Seen on a card whose memory does not end.
        need: Option<Peaks>,
    },
    Failed {
        because: String,
        code: u8,
    },
}

impl Run {
    fn peaks(&self) -> Option<&Peaks> {
        match self {
            Self::Fits(peaks) => Some(peaks),
            Self::DoesNotFit { need, .. } => need.as_ref(),
            Self::Failed { .. } => None,
        }
    }
}

/// All runs; the script as it is comes first, all fixes last.
#[derive(Clone, Debug)]
pub struct Answer {
    pub script: String,
    pub gpu: String,
    pub gpu_total_bytes: u64,
    pub steps: u64,
    pub runs: Vec<(Variant, Run)>,
}

impl Answer {
    /// Whether the script fits with all fixes.
    pub fn fits_at_last(&self) -> bool {
        matches!(self.runs.last(), Some((_, Run::Fits(_))))
    }

    fn before(&self) -> Option<&Peaks> {
        self.runs.first().and_then(|(_, run)| run.peaks())
    }

    pub fn text(&self, look: Look) -> String {
        let headline = self.headline();
        if look.detail == Detail::Quiet {
            return headline.alone(look);
        }
        let mut sheet = look.sheet();
        headline.add(&mut sheet);
        if let (Some(before), Some((_, last))) = (self.before(), self.runs.last())
            && let Some(after) = last.peaks()
        {
            sheet.paragraph(
                "saves",
                &format!(
                    "{} on the card, {} allocated",
                    difference(before.device_bytes, after.device_bytes),
                    difference(before.allocated_bytes, after.allocated_bytes),
                ),
            );
        }
        match look.detail {
            Detail::Everything => {
                sheet.table("rehearsed", &self.full_table());
                sheet.list("problems", &self.problems());
            }
            _ => sheet.table("rehearsed", &self.short_table(sheet.text_width())),
        }
        let steps = match self.steps {
            0 => "to the end of the script".to_owned(),
            1 => "1 optimizer step".to_owned(),
            steps => format!("{steps} optimizer steps"),
        };
        sheet.paragraph(
            "steps",
            &format!("{steps}; what grows from step to step saves more with more --steps"),
        );
        headline.paint(&sheet, look)
    }

    fn headline(&self) -> Headline {
        let Some((variant, run)) = self.runs.last() else {
            return Headline::unknown("nothing was rehearsed".to_owned());
        };
        let needed = run.peaks().map(|peaks| peaks.device_bytes);
        let mut headline = match run {
            Run::Fits(peaks) => {
                Headline::fitting(peaks.device_bytes, &self.gpu, self.gpu_total_bytes, 1)
            }
            Run::DoesNotFit { .. } => {
                Headline::not_fitting(needed, &self.gpu, self.gpu_total_bytes, 1)
            }
            Run::Failed { because, .. } => Headline::unknown(format!("it fails: {because}")),
        };
        headline.text = format!("{}: {}", variant.name(), headline.text);
        headline
    }

    /// What is on the card, for each text of the script.
    fn short_table(&self, width: usize) -> Table {
        let mut table = Table::new(&["", ">on card", ">saved", ""]);
        for (variant, run) in &self.runs {
            let [_, _, on_card, saved] = self.figures(variant, run);
            table.push(vec![
                shortened(&variant.name(), width.saturating_sub(BESIDE_NAME), 8),
                on_card,
                saved,
                outcome(run).to_owned(),
            ]);
        }
        table
    }

    fn full_table(&self) -> Table {
        let mut table = Table::new(&["", ">allocated", ">saved", ">on card", ">saved", ""]);
        for (variant, run) in &self.runs {
            let mut row = vec![variant.name()];
            row.extend(self.figures(variant, run));
            row.push(outcome(run).to_owned());
            table.push(row);
        }
        table
    }

    /// Allocated, what that saves, on card, what that saves.
    fn figures(&self, variant: &Variant, run: &Run) -> [String; 4] {
        let Some(peaks) = run.peaks() else {
            let unknown = || "unknown".to_owned();
            return [unknown(), String::new(), unknown(), String::new()];
        };
        let saved = |of: fn(&Peaks) -> u64| match (variant, self.before()) {
            (Variant::AsItIs, _) | (_, None) => String::new(),
            (_, Some(before)) => difference(of(before), of(peaks)),
        };
        [
            human(peaks.allocated_bytes),
            saved(|peaks| peaks.allocated_bytes),
            human(peaks.device_bytes),
            saved(|peaks| peaks.device_bytes),
        ]
    }

    /// Where memory ran out and why the script failed, for each text of it.
    fn problems(&self) -> Vec<String> {
        let problem = |(variant, run): &(Variant, Run)| match run {
            Run::Fits(_) => None,
            Run::DoesNotFit { place, .. } => {
                Some(format!("{}: out of memory {place}", variant.name()))
            }
            Run::Failed { because, .. } => Some(format!("{}: {because}", variant.name())),
        };
        self.runs.iter().filter_map(problem).collect()
    }

    pub fn json(&self) -> Value {
        let runs: Vec<Value> = self
            .runs
            .iter()
            .map(|(variant, run)| self.run_json(variant, run))
            .collect();
        json!({
            "schema": "ghostgpu.lint-measure/1",
            "script": self.script,
            "gpu": {"name": self.gpu, "total_bytes": self.gpu_total_bytes},
            "steps": self.steps,
            "runs": runs,
        })
    }

    fn run_json(&self, variant: &Variant, run: &Run) -> Value {
        let peaks = run.peaks();
        let saved = |of: fn(&Peaks) -> u64| -> Option<i128> {
            Some(i128::from(of(self.before()?)) - i128::from(of(peaks?)))
        };
        let (fits, problem) = match run {
            Run::Fits(_) => (Some(true), None),
            Run::DoesNotFit { place, .. } => (Some(false), Some(format!("out of memory {place}"))),
            Run::Failed { because, .. } => (None, Some(because.clone())),
        };
        let mut value = json!({
            "variant": match variant {
                Variant::AsItIs => "as-it-is",
                Variant::Alone { .. } => "one-fix",
                Variant::All { .. } => "all-fixes",
            },
            "fits": fits,
            "problem": problem,
            "peak_allocated_bytes": peaks.map(|it| it.allocated_bytes),
            "peak_reserved_bytes": peaks.map(|it| it.reserved_bytes),
            "peak_device_bytes": peaks.map(|it| it.device_bytes),
            "saved_allocated_bytes": saved(|it| it.allocated_bytes).map(|it| it as i64),
            "saved_reserved_bytes": saved(|it| it.reserved_bytes).map(|it| it as i64),
            "saved_device_bytes": saved(|it| it.device_bytes).map(|it| it as i64),
        });
        match variant {
            Variant::AsItIs => {}
            Variant::Alone { line, rule, title } => {
                value["fix"] = json!({"rule": rule, "line": line, "title": title});
            }
            Variant::All { count, rules } => {
                value["fixes"] = json!({"count": count, "rules": rules});
            }
        }
        value
    }
}

fn outcome(run: &Run) -> &'static str {
    match run {
        Run::Fits(_) => "fits",
        Run::DoesNotFit { .. } => "does not fit",
        Run::Failed { .. } => "fails",
    }
}

/// `1.50 GiB`, `nothing`, `-20.00 MiB` where more is taken.
fn difference(old: u64, new: u64) -> String {
    match old.cmp(&new) {
        std::cmp::Ordering::Equal => "nothing".to_owned(),
        std::cmp::Ordering::Greater => human(old - new),
        std::cmp::Ordering::Less => format!("-{}", human(new - old)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::{PLAIN, assert_fits_one_screen};

    fn peaks(allocated: u64, device: u64) -> Peaks {
        Peaks {
            allocated_bytes: allocated << 20,
            reserved_bytes: allocated << 20,
            device_bytes: device << 20,
        }
    }

    fn answer() -> Answer {
        Answer {
            script: "train.py".to_owned(),
            gpu: "NVIDIA GeForce RTX 3060".to_owned(),
            gpu_total_bytes: 12 << 30,
            steps: 3,
            runs: vec![
                (
                    Variant::AsItIs,
                    Run::DoesNotFit {
                        place: "in step 3 (forward), at train.py:41".to_owned(),
                        need: Some(peaks(13_000, 13_500)),
                    },
                ),
                (
                    Variant::Alone {
                        line: 12,
                        rule: "summed-loss",
                        title: "Add `.detach()`".to_owned(),
                    },
                    Run::Fits(peaks(8_000, 8_500)),
                ),
                (
                    Variant::Alone {
                        line: 20,
                        rule: "other",
                        title: "Do".to_owned(),
                    },
                    Run::Failed {
                        because: "KeyError: 'x'".to_owned(),
                        code: 1,
                    },
                ),
                (
                    Variant::Alone {
                        line: 1024,
                        rule: "evaluation-with-gradients",
                        title: "Do not".to_owned(),
                    },
                    Run::DoesNotFit {
                        place: "in step 3 (forward), at train.py:41".to_owned(),
                        need: Some(peaks(13_010, 13_500)),
                    },
                ),
                (
                    Variant::All {
                        count: 3,
                        rules: vec!["summed-loss", "other", "evaluation-with-gradients"],
                    },
                    Run::Fits(peaks(7_990, 8_490)),
                ),
            ],
        }
    }

    #[test]
    fn runs_are_compared_with_the_script_as_it_is() {
        let text = answer().text(PLAIN);
        assert_fits_one_screen(&text);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn runs_are_told_in_full_or_in_one_line() {
        let with = |detail| answer().text(Look { detail, ..PLAIN });
        insta::assert_snapshot!(with(Detail::Everything));
        assert_eq!(with(Detail::Quiet).lines().count(), 1);
    }

    #[test]
    fn runs_are_documented_for_programs() {
        insta::assert_snapshot!(serde_json::to_string_pretty(&answer().json()).expect("JSON"));
    }

    #[test]
    fn the_answer_is_whether_it_fits_with_all_fixes() {
        let mut answer = answer();
        assert!(answer.fits_at_last());
        answer.runs.pop();
        assert!(!answer.fits_at_last());
    }
}

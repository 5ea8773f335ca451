//! What the fixes save, as text and as JSON.

use ghostgpu_plan::fixes::{Measured, Variant};
use serde_json::{Value, json};

use crate::headline::{Headline, word};
use crate::style::{Detail, Style};
use ghostgpu_recording::Verdict;
use ghostgpu_rehearse::Peaks;
use ghostgpu_text::{Table, human, shortened};

/// Width of the columns next to the name of a fix.
const BESIDE_NAME: usize = 38;

/// The peaks of a version; if it does not fit, those with the smallest memory with which it completes.
fn peaks_of(run: &Measured) -> Option<&Peaks> {
    match run {
        Measured::Ended { peaks, .. } => Some(peaks),
        Measured::DoesNotFit { need, .. } => need.as_ref(),
        Measured::Fails { .. } => None,
    }
}

/// All runs; the script as it is comes first, all fixes last.
#[derive(Clone, Debug)]
pub struct Answer {
    pub script: String,
    pub gpu: String,
    pub gpu_total_bytes: u64,
    pub steps: Option<u64>,
    pub runs: Vec<(Variant, Measured)>,
    /// The arguments of `ghostgpu lint` that apply all fixes: `--fix train.py`.
    pub applies: String,
}

impl Answer {
    /// The verdict on the script with all fixes.
    pub fn verdict(&self) -> Verdict {
        let last = self.runs.last();
        last.map_or(Verdict::NotKnown, |(_, run)| run.verdict())
    }

    /// The version to recommend: all fixes if the script passes with them, else the passing one that takes least; `None`
    /// if none passes.
    fn recommended(&self) -> Option<(&Variant, &Measured)> {
        let changed = self.runs.iter().skip(1);
        let passing: Vec<&(Variant, Measured)> = changed.filter(|(_, run)| run.passes()).collect();
        let all = passing
            .iter()
            .find(|(variant, _)| matches!(variant, Variant::All { .. }));
        let least = || {
            passing
                .iter()
                .min_by_key(|(_, run)| peaks_of(run).map_or(u64::MAX, |peaks| peaks.device_bytes))
        };
        all.or_else(least).map(|(variant, run)| (variant, run))
    }

    /// What is recommended, in a sentence.
    fn advice(&self) -> String {
        let because = match self.runs.last() {
            Some((_, Measured::Ended { judgement, .. })) => judgement.reason.clone(),
            Some((_, Measured::DoesNotFit { place, .. })) => format!("out of memory {place}"),
            Some((_, Measured::Fails { reason, .. })) => reason.to_string(),
            None => String::new(),
        };
        match self.recommended() {
            Some((Variant::Alone { line, rule, .. }, _)) => format!(
                "correct line {line} ({rule}) alone: with all fixes it does not pass ({because})"
            ),
            Some(_) => format!("`ghostgpu lint {}`", self.applies),
            None => format!(
                "nothing: with none of the fixes was the whole training seen to fit ({because})"
            ),
        }
    }

    fn before(&self) -> Option<&Peaks> {
        self.runs.first().and_then(|(_, run)| peaks_of(run))
    }

    pub fn text(&self, style: Style) -> String {
        let headline = self.headline();
        if style.detail == Detail::Quiet {
            return headline.alone(style);
        }
        let mut sheet = style.sheet();
        headline.add(&mut sheet);
        if let (Some(before), Some((_, last))) = (self.before(), self.runs.last())
            && let Some(after) = peaks_of(last)
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
        sheet.paragraph("recommended", &self.advice());
        match style.detail {
            Detail::Everything => {
                sheet.table("rehearsed", &self.full_table());
                sheet.list("problems", &self.problems());
            }
            _ => sheet.table("rehearsed", &self.short_table(sheet.text_width())),
        }
        let steps = match self.steps {
            None => "until nothing new was seen".to_owned(),
            Some(0) => "to the end of the script".to_owned(),
            Some(1) => "1 optimizer step".to_owned(),
            Some(steps) => format!("{steps} optimizer steps"),
        };
        sheet.paragraph(
            "steps",
            &format!("{steps}; what grows from step to step saves more with more of them (--full)"),
        );
        headline.paint(&sheet, style)
    }

    fn headline(&self) -> Headline {
        let Some((variant, run)) = self.runs.last() else {
            return Headline::unknown("nothing was rehearsed".to_owned());
        };
        let total = self.gpu_total_bytes;
        let mut headline = match run {
            Measured::Ended {
                peaks,
                needed_device_bytes,
                judgement,
            } => {
                let needed = needed_device_bytes.unwrap_or(peaks.device_bytes);
                Headline::judged(judgement.verdict, needed, &self.gpu, total)
            }
            Measured::DoesNotFit { need, .. } => {
                let needed = need.map(|peaks| peaks.device_bytes);
                Headline::not_fitting(needed, &self.gpu, total, 1)
            }
            Measured::Fails { reason, .. } => Headline::unknown(format!("it fails: {reason}")),
        };
        headline.text = format!("{variant}: {}", headline.text);
        headline
    }

    /// What is on the card, for each version of the script.
    fn short_table(&self, width: usize) -> Table {
        let mut table = Table::new(&["", ">on card", ">saved", ""]);
        for (variant, run) in &self.runs {
            let [_, _, on_card, saved] = self.figures(variant, run);
            table.push(vec![
                shortened(&variant.to_string(), width.saturating_sub(BESIDE_NAME), 8),
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
            let mut row = vec![variant.to_string()];
            row.extend(self.figures(variant, run));
            row.push(outcome(run).to_owned());
            table.push(row);
        }
        table
    }

    /// The columns "allocated", "saved", "on card" and "saved".
    fn figures(&self, variant: &Variant, run: &Measured) -> [String; 4] {
        let Some(peaks) = peaks_of(run) else {
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

    /// Where memory ran out or why the script failed, for each version of the script.
    fn problems(&self) -> Vec<String> {
        let problem = |(variant, run): &(Variant, Measured)| match run {
            Measured::Ended { judgement, .. } if judgement.verdict == Verdict::Fits => None,
            Measured::Ended { judgement, .. } => Some(format!("{variant}: {}", judgement.reason)),
            Measured::DoesNotFit { place, .. } => Some(format!("{variant}: out of memory {place}")),
            Measured::Fails { reason, .. } => Some(format!("{variant}: {reason}")),
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
            "verdict": self.verdict(),
            "recommended": self.recommended().map(|(variant, _)| variant_word(variant)),
            "runs": runs,
        })
    }

    fn run_json(&self, variant: &Variant, run: &Measured) -> Value {
        let peaks = peaks_of(run);
        let saved = |of: fn(&Peaks) -> u64| -> Option<i128> {
            Some(i128::from(of(self.before()?)) - i128::from(of(peaks?)))
        };
        let problem = match run {
            Measured::Ended { judgement, .. } if judgement.verdict == Verdict::Fits => None,
            Measured::Ended { judgement, .. } => Some(judgement.reason.clone()),
            Measured::DoesNotFit { place, .. } => Some(format!("out of memory {place}")),
            Measured::Fails { reason, .. } => Some(reason.to_string()),
        };
        let needed = match run {
            Measured::Ended {
                needed_device_bytes,
                ..
            } => *needed_device_bytes,
            Measured::DoesNotFit { need, .. } => need.map(|peaks| peaks.device_bytes),
            Measured::Fails { .. } => None,
        };
        let mut value = json!({
            "variant": variant_word(variant),
            "verdict": run.verdict(),
            "fits": run.verdict().fits(),
            "needed_device_bytes": needed,
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

fn variant_word(variant: &Variant) -> &'static str {
    match variant {
        Variant::AsItIs => "as-it-is",
        Variant::Alone { .. } => "one-fix",
        Variant::All { .. } => "all-fixes",
    }
}

fn outcome(run: &Measured) -> &'static str {
    match run {
        Measured::Fails { .. } => "fails",
        _ => word(run.verdict()).0,
    }
}

/// `1.50 GiB`, `nothing`, or `-20.00 MiB` if it takes more.
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
    use crate::style::{PLAIN, assert_fits_one_screen};
    use ghostgpu_plan::verdict::Judgement;
    use ghostgpu_rehearse::{OutOfMemory, Reason};

    fn peaks(allocated: u64, device: u64) -> Peaks {
        Peaks {
            allocated_bytes: allocated << 20,
            reserved_bytes: allocated << 20,
            device_bytes: device << 20,
        }
    }

    fn ended(peaks: Peaks, verdict: Verdict, reason: &str) -> Measured {
        Measured::Ended {
            needed_device_bytes: (verdict == Verdict::Fits)
                .then_some(peaks.device_bytes - (1 << 30)),
            peaks,
            judgement: Box::new(Judgement {
                verdict,
                reason: reason.to_owned(),
                headroom_bytes: None,
                margin_bytes: 0,
                flushes_per_step: None,
            }),
        }
    }

    fn answer() -> Answer {
        Answer {
            applies: "--fix train.py".to_owned(),
            script: "train.py".to_owned(),
            gpu: "NVIDIA GeForce RTX 3060".to_owned(),
            gpu_total_bytes: 12 << 30,
            steps: Some(3),
            runs: vec![
                (
                    Variant::AsItIs,
                    Measured::DoesNotFit {
                        place: OutOfMemory::Request {
                            stage: "forward".to_owned(),
                            step: 2,
                            line: Some(("train.py".to_owned(), 41)),
                            moment: None,
                        },
                        need: Some(peaks(13_000, 13_500)),
                    },
                ),
                (
                    Variant::Alone {
                        line: 12,
                        rule: "summed-loss",
                        title: "Add `.detach()`".to_owned(),
                    },
                    ended(
                        peaks(8_000, 8_500),
                        Verdict::NotKnown,
                        "evaluation was not reached",
                    ),
                ),
                (
                    Variant::Alone {
                        line: 20,
                        rule: "other",
                        title: "Do".to_owned(),
                    },
                    Measured::Fails {
                        reason: Reason::Exception("KeyError: 'x'".to_owned()),
                        code: 1,
                        last_lines: Vec::new(),
                    },
                ),
                (
                    Variant::Alone {
                        line: 1024,
                        rule: "evaluation-with-gradients",
                        title: "Do not".to_owned(),
                    },
                    Measured::DoesNotFit {
                        place: OutOfMemory::Request {
                            stage: "forward".to_owned(),
                            step: 2,
                            line: Some(("train.py".to_owned(), 41)),
                            moment: None,
                        },
                        need: Some(peaks(13_010, 13_500)),
                    },
                ),
                (
                    Variant::All {
                        count: 3,
                        rules: vec!["summed-loss", "other", "evaluation-with-gradients"],
                    },
                    ended(peaks(7_990, 8_490), Verdict::Fits, ""),
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
        let with = |detail| answer().text(Style { detail, ..PLAIN });
        insta::assert_snapshot!(with(Detail::Everything));
        assert_eq!(with(Detail::Quiet).lines().count(), 1);
    }

    #[test]
    fn runs_are_documented_for_programs() {
        insta::assert_snapshot!(serde_json::to_string_pretty(&answer().json()).expect("JSON"));
    }

    #[test]
    fn only_what_passed_is_recommended() {
        let with_all_as = |verdict, reason: &str| {
            let mut answer = answer();
            let (_, last) = answer.runs.last_mut().expect("all fixes");
            *last = ended(peaks(7_990, 8_490), verdict, reason);
            answer
        };
        let cases = [
            (Verdict::Fits, "", "`ghostgpu lint --fix train.py`"),
            (Verdict::FitsTightly, "", "`ghostgpu lint --fix train.py`"),
            (
                Verdict::NotKnown,
                "evaluation was not reached",
                "nothing: with none of the fixes was the whole training seen to fit (evaluation was not reached)",
            ),
            (
                Verdict::WillRunOut,
                "full after 80 more steps",
                "nothing: with none of the fixes was the whole training seen to fit (full after 80 more steps)",
            ),
        ];
        for (verdict, reason, expected) in cases {
            let answer = with_all_as(verdict, reason);
            assert_eq!(answer.advice(), expected);
            assert_eq!(answer.verdict(), verdict);
        }
    }

    #[test]
    fn one_fix_is_recommended_where_all_together_do_not_pass() {
        let mut answer = answer();
        answer.runs[1].1 = ended(peaks(8_000, 8_500), Verdict::Fits, "");
        let (_, last) = answer.runs.last_mut().expect("all fixes");
        *last = ended(peaks(9_000, 9_500), Verdict::WillRunOut, "it grows");
        assert_eq!(
            answer.advice(),
            "correct line 12 (summed-loss) alone: with all fixes it does not pass (it grows)"
        );
    }
}

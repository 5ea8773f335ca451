//! What the fixes save, as a table and as JSON.

use ghostgpu_plan::fixes::{Measured, Variant};
use serde_json::{Value, json};

use ghostgpu_rehearse::Peaks;
use ghostgpu_text::{Table, human};

/// The figures of a run, or of one with unlimited memory.
fn peaks_of(run: &Measured) -> Option<&Peaks> {
    match run {
        Measured::Fits(peaks) => Some(peaks),
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
    pub steps: u64,
    pub runs: Vec<(Variant, Measured)>,
}

impl Answer {
    /// Whether the script fits with all fixes.
    pub fn fits_at_last(&self) -> bool {
        matches!(self.runs.last(), Some((_, Measured::Fits(_))))
    }

    fn before(&self) -> Option<&Peaks> {
        self.runs.first().and_then(|(_, run)| peaks_of(run))
    }

    pub fn text(&self) -> String {
        let mut table = Table::new(&[
            self.script.as_str(),
            ">allocated",
            ">saved",
            ">on card",
            ">saved",
            "",
        ]);
        for (variant, run) in &self.runs {
            let remark = match run {
                Measured::Fits(_) => "fits".to_owned(),
                Measured::DoesNotFit { place, .. } => {
                    format!("does not fit: out of memory {place}")
                }
                Measured::Fails { reason, .. } => format!("failed: {reason}"),
            };
            let mut row = vec![variant.to_string()];
            match (peaks_of(run), self.before()) {
                (Some(peaks), Some(before)) => {
                    let saved = |old: u64, new: u64| match variant {
                        Variant::AsItIs => String::new(),
                        _ => difference(old, new),
                    };
                    row.push(human(peaks.allocated_bytes));
                    row.push(saved(before.allocated_bytes, peaks.allocated_bytes));
                    row.push(human(peaks.device_bytes));
                    row.push(saved(before.device_bytes, peaks.device_bytes));
                }
                (Some(peaks), None) => {
                    row.push(human(peaks.allocated_bytes));
                    row.push(String::new());
                    row.push(human(peaks.device_bytes));
                    row.push(String::new());
                }
                (None, _) => row.extend(vec![
                    "unknown".to_owned(),
                    String::new(),
                    "unknown".to_owned(),
                    String::new(),
                ]),
            }
            row.push(remark);
            table.push(row);
        }
        let steps = match self.steps {
            0 => "to the end of the script".to_owned(),
            1 => "over 1 optimizer step".to_owned(),
            steps => format!("over {steps} optimizer steps"),
        };
        format!(
            "{}\npeaks {steps} on {} ({}); what grows with every step saves more the longer it \
             runs (--steps)\n",
            table.render(),
            self.gpu,
            human(self.gpu_total_bytes)
        )
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

    fn run_json(&self, variant: &Variant, run: &Measured) -> Value {
        let peaks = peaks_of(run);
        let saved = |of: fn(&Peaks) -> u64| -> Option<i128> {
            Some(i128::from(of(self.before()?)) - i128::from(of(peaks?)))
        };
        let (fits, problem) = match run {
            Measured::Fits(_) => (Some(true), None),
            Measured::DoesNotFit { place, .. } => {
                (Some(false), Some(format!("out of memory {place}")))
            }
            Measured::Fails { reason, .. } => (None, Some(reason.to_string())),
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
    use ghostgpu_rehearse::{OutOfMemory, Reason};

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
                    Measured::DoesNotFit {
                        place: OutOfMemory::Request {
                            stage: "forward".to_owned(),
                            step: 2,
                            line: Some(("train.py".to_owned(), 41)),
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
                    Measured::Fits(peaks(8_000, 8_500)),
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
                    Variant::All {
                        count: 2,
                        rules: vec!["summed-loss", "other"],
                    },
                    Measured::Fits(peaks(13_010, 13_500)),
                ),
            ],
        }
    }

    #[test]
    fn runs_are_compared_with_the_script_as_it_is() {
        insta::assert_snapshot!(answer().text());
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

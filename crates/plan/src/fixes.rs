//! What corrected lines save: the script is rehearsed as it is, with each of the linter's fixes alone, and with all.

use ghostgpu_lint::fixing::{Wanted, fix, fix_alone};
use ghostgpu_lint::{Diagnostic, Settings, Source, examine};
use ghostgpu_recording::Verdict;
use ghostgpu_rehearse::{
    Change, OutOfMemory, Outcome, Peaks, Purpose, Reason, Rehearsal, Rehearse, Run, Stop,
};

use crate::need::{Need, Smallest, need};
use crate::step_growth::StepGrowth;
use crate::verdict::{Judgement, OnCard, judge, need_seen_in};

/// At most this many fixes are rehearsed on their own.
const MOST_ALONE: usize = 12;

/// A version of the script.
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

/// A version of the script to rehearse, with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    pub variant: Variant,
    /// `None` for the script as it is.
    pub contents: Option<String>,
}

/// Why there is nothing to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoTexts {
    /// The script cannot be read, or a fix cannot be made.
    Problem(String),
    /// There is no fix of the wanted kind. The counts are of all findings, and of all fixes of any kind.
    NoFix { findings: usize, fixes: usize },
}

/// What the rehearsal of one version showed.
#[derive(Clone, Debug, PartialEq)]
pub enum Measured {
    /// The script completed. Whether the training fits is in the judgement.
    Ended {
        peaks: Peaks,
        /// The smallest card on which it completes, if that was searched for.
        needed_device_bytes: Option<u64>,
        judgement: Box<Judgement>,
    },
    DoesNotFit {
        place: OutOfMemory,
        /// Its peaks with the smallest memory with which it completes, if known.
        need: Option<Peaks>,
    },
    Fails {
        reason: Reason,
        code: u8,
        last_lines: Vec<String>,
    },
}

impl Measured {
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Ended { judgement, .. } => judgement.verdict,
            Self::DoesNotFit { .. } => Verdict::DoesNotFit,
            Self::Fails { .. } => Verdict::ScriptFailed,
        }
    }

    /// Whether the whole training was seen to fit, so that this version can be recommended.
    pub fn passes(&self) -> bool {
        self.verdict().fits() == Some(true)
    }
}

/// The script as it is, with each fix alone (if there are several), and with all of them.
pub fn texts(contents: &[u8], settings: &Settings, wanted: Wanted) -> Result<Vec<Text>, NoTexts> {
    let read = || Source::script(contents).map_err(|it| NoTexts::Problem(it.to_string()));
    let source = read()?;
    let findings = examine(&source, settings);
    let fixable: Vec<&Diagnostic> = findings
        .iter()
        .filter(|finding| finding.fix.as_ref().is_some_and(|fix| wanted.takes(fix)))
        .collect();
    if fixable.is_empty() {
        return Err(NoTexts::NoFix {
            findings: findings.len(),
            fixes: findings
                .iter()
                .filter(|finding| finding.fix.is_some())
                .count(),
        });
    }
    let mut texts = vec![Text {
        variant: Variant::AsItIs,
        contents: None,
    }];
    if fixable.len() > 1 {
        for finding in fixable.iter().take(MOST_ALONE) {
            let Some(fix) = &finding.fix else { continue };
            let alone = fix_alone(&source, fix).map_err(|it| NoTexts::Problem(it.to_string()))?;
            if let Some(alone) = alone {
                texts.push(Text {
                    variant: Variant::Alone {
                        line: source.position(finding.range.start).line,
                        rule: finding.origin.name(),
                        title: fix.title.clone(),
                    },
                    contents: Some(alone.contents()),
                });
            }
        }
    }
    let all = fix(read()?, settings, wanted).map_err(|it| NoTexts::Problem(it.to_string()))?;
    texts.push(Text {
        variant: Variant::All {
            count: all.count,
            rules: fixable
                .iter()
                .map(|finding| finding.origin.name())
                .collect(),
        },
        contents: Some(all.source.contents()),
    });
    Ok(texts)
}

/// Rehearses each text and judges it like any other job on this card. If the first one, the script as it is, fails,
/// the others are not rehearsed: there is nothing to compare them with.
pub fn measure(
    runner: &mut dyn Rehearse,
    texts: &[Text],
    card: &OnCard,
) -> Result<Vec<(Variant, Measured)>, Stop> {
    let mut all = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        let contents = text.contents.clone();
        let changes: Vec<Change> = contents.map(Change::Text).into_iter().collect();
        let purpose = Purpose::Fix {
            name: text.variant.to_string(),
            number: index + 1,
            of: texts.len(),
        };
        let rehearsal = Rehearsal::figures(purpose, changes.clone());
        let run = Run::even_if_timed_out(runner.rehearse(&rehearsal))?;
        let measured = match Outcome::of(&run) {
            Outcome::Fits(peaks) => {
                let is_last = index + 1 == texts.len();
                ended(runner, &changes, &run, peaks, card, is_last)?
            }
            Outcome::Fails { reason, code } => Measured::Fails {
                reason,
                code,
                last_lines: run.last_lines,
            },
            Outcome::DoesNotFit(place) => Measured::DoesNotFit {
                place,
                need: smallest(runner, &changes, &run)?.map(|need| Peaks {
                    allocated_bytes: need.allocated_bytes.unwrap_or(0),
                    reserved_bytes: need.reserved_bytes.unwrap_or(0),
                    device_bytes: need.device_bytes,
                }),
            },
        };
        let is_over = index == 0 && matches!(measured, Measured::Fails { .. });
        all.push((text.variant.clone(), measured));
        if is_over {
            break;
        }
    }
    Ok(all)
}

/// Judges a run that completed. Its need is measured where the verdict depends on it, because a card may only be full of
/// PyTorch's cache; and for the version with all fixes, because the answer states it.
fn ended(
    runner: &mut dyn Rehearse,
    changes: &[Change],
    run: &Run,
    peaks: Peaks,
    card: &OnCard,
    is_last: bool,
) -> Result<Measured, Stop> {
    let growth = StepGrowth::of(run);
    let seen = need_seen_in(run);
    let mut judgement = judge(run, Some(&seen), growth.as_ref(), card);
    let mut needed_device_bytes = None;
    let is_known = matches!(judgement.verdict, Verdict::Fits | Verdict::FitsTightly);
    if is_known
        && (is_last || judgement.verdict == Verdict::FitsTightly)
        && let Some(need) = smallest(runner, changes, run)?
    {
        judgement = judge(run, Some(&need), growth.as_ref(), card);
        needed_device_bytes = Some(need.device_bytes);
    }
    Ok(Measured::Ended {
        peaks,
        needed_device_bytes,
        judgement: Box::new(judgement),
    })
}

fn smallest(
    runner: &mut dyn Rehearse,
    changes: &[Change],
    run: &Run,
) -> Result<Option<Smallest>, Stop> {
    Ok(match need(runner, changes, run)?.need {
        Need::Found(smallest) => Some(smallest),
        Need::Unknown(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_runner::{FakeRunner, does_not_fit, fails, fits, fits_with, interrupted};
    use ghostgpu_device::Catalogue;
    use ghostgpu_session::{Coverage, NotReached, ProcessReport, TrainingPart};

    fn two_texts() -> Vec<Text> {
        vec![
            Text {
                variant: Variant::AsItIs,
                contents: None,
            },
            Text {
                variant: Variant::All {
                    count: 1,
                    rules: vec!["summed-loss"],
                },
                contents: Some("fixed".to_owned()),
            },
        ]
    }

    fn is_unlimited(rehearsal: &Rehearsal) -> bool {
        rehearsal.changes.contains(&Change::UnlimitedMemory)
    }

    fn measured(runner: &mut FakeRunner) -> Result<Vec<(Variant, Measured)>, Stop> {
        let sheet = Catalogue::builtin()
            .find("h200")
            .expect("a card")
            .sheet_with_total(1 << 37);
        let card = OnCard {
            sheet: &sheet,
            count: 1,
            uncertainty: None,
            reserve_bytes: 0,
            margin: None,
            torch: None,
        };
        measure(runner, &two_texts(), &card)
    }

    fn is_fixed(rehearsal: &Rehearsal) -> bool {
        let fixed = Change::Text("fixed".to_owned());
        rehearsal.changes.contains(&fixed)
    }

    /// A process that did not reach a part of the training.
    fn without(part: TrainingPart) -> ProcessReport {
        ProcessReport {
            coverage: Some(Coverage {
                not_reached: vec![NotReached {
                    part,
                    because: "the budget was over".to_owned(),
                }],
                ..Coverage::default()
            }),
            ..ProcessReport::default()
        }
    }

    #[test]
    fn the_need_of_a_version_that_does_not_fit_is_measured_with_unlimited_memory() {
        let mut runner =
            FakeRunner::new(
                |rehearsal| match is_fixed(rehearsal) || is_unlimited(rehearsal) {
                    true => fits(if is_fixed(rehearsal) { 3 } else { 9 }),
                    false => does_not_fit(),
                },
            );
        let measured = measured(&mut runner).expect("runs");
        let Measured::DoesNotFit { need, .. } = &measured[0].1 else {
            panic!("{measured:?}");
        };
        assert_eq!(need.map(|peaks| peaks.device_bytes), Some(9));
        assert!(!measured[0].1.passes());
        assert!(matches!(&measured[1].1, Measured::Ended { peaks, .. } if peaks.device_bytes == 3));
        assert!(measured[1].1.passes());
    }

    #[test]
    fn fixes_pass_only_if_every_decisive_part_was_rehearsed() {
        for (part, passes) in [
            (TrainingPart::Evaluation, false),
            (TrainingPart::NextEpoch, false),
            (TrainingPart::Checkpoint, true),
        ] {
            let mut runner = FakeRunner::new(move |rehearsal| match is_fixed(rehearsal) {
                true => fits_with(3, without(part)),
                false => fits(9),
            });
            let measured = measured(&mut runner).expect("runs");
            assert!(measured[0].1.passes());
            assert_eq!(measured[1].1.passes(), passes, "{part:?}");
            if !passes {
                assert_eq!(measured[1].1.verdict(), Verdict::NotKnown);
            }
        }
    }

    #[test]
    fn a_signal_while_the_need_is_measured_ends_the_rest() {
        let mut runner = FakeRunner::new(|rehearsal| match is_unlimited(rehearsal) {
            true => interrupted(),
            false => does_not_fit(),
        });
        let result = measured(&mut runner);
        assert!(matches!(result, Err(Stop::Interrupted(2))), "{result:?}");
        assert_eq!(runner.seen.len(), 2);
    }

    #[test]
    fn a_script_that_fails_as_it_is_is_not_rehearsed_further() {
        let mut runner = FakeRunner::new(|_| fails("KeyError: 'x'"));
        let measured = measured(&mut runner).expect("a run");
        assert_eq!(measured.len(), 1);
        assert_eq!(runner.seen.len(), 1);
    }
}

//! What corrected lines save: a script as it is, with each of the linter's fixes alone, and with all.

use ghostgpu_lint::fixing::{Wanted, fix, fix_alone};
use ghostgpu_lint::{Diagnostic, Settings, Source, examine};
use ghostgpu_rehearse::{
    Change, OutOfMemory, Outcome, Peaks, Purpose, Reason, Rehearsal, Rehearse, Run, Stop,
};

use crate::need::{Need, Smallest, need};

/// More fixes are not rehearsed one by one.
const MOST_ALONE: usize = 12;

/// Which text of the script runs.
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

/// A text of the script to rehearse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    pub variant: Variant,
    /// None is the script as it is.
    pub contents: Option<String>,
}

/// Why there is nothing to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoTexts {
    /// The script cannot be read, or a fix cannot be made.
    Problem(String),
    /// There is no fix of the wanted kind; how many findings there are, and how many fixes of any kind.
    NoFix { findings: usize, fixes: usize },
}

/// What a text came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measured {
    Fits(Peaks),
    DoesNotFit {
        place: OutOfMemory,
        /// Seen with unlimited memory.
        need: Option<Peaks>,
    },
    Fails {
        reason: Reason,
        code: u8,
        last_lines: Vec<String>,
    },
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

/// Rehearses each text, and once more with unlimited memory where it does not fit. Ends after the first
/// one if that fails: there is nothing to compare with.
pub fn measure(
    runner: &mut dyn Rehearse,
    texts: &[Text],
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
            Outcome::Fits(peaks) => Measured::Fits(peaks),
            Outcome::Fails { reason, code } => Measured::Fails {
                reason,
                code,
                last_lines: run.last_lines,
            },
            Outcome::DoesNotFit(place) => Measured::DoesNotFit {
                place,
                need: peaks_of(need(runner, &changes, false)?.need),
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

fn peaks_of(need: Need) -> Option<Peaks> {
    match need {
        Need::Found(Smallest {
            device_bytes,
            allocated_bytes: Some(allocated_bytes),
            reserved_bytes: Some(reserved_bytes),
            ..
        }) => Some(Peaks {
            allocated_bytes,
            reserved_bytes,
            device_bytes,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{MadeUp, does_not_fit, fails, fits, interrupted};

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

    #[test]
    fn what_does_not_fit_is_measured_with_unlimited_memory() {
        let mut runner = MadeUp::new(|rehearsal| {
            let is_fixed = rehearsal
                .changes
                .contains(&Change::Text("fixed".to_owned()));
            match is_fixed || is_unlimited(rehearsal) {
                true => fits(if is_fixed { 3 } else { 9 }),
                false => does_not_fit(),
            }
        });
        let measured = measure(&mut runner, &two_texts()).expect("runs");
        let Measured::DoesNotFit { need, .. } = &measured[0].1 else {
            panic!("{measured:?}");
        };
        assert_eq!(need.map(|peaks| peaks.device_bytes), Some(9));
        assert!(matches!(&measured[1].1, Measured::Fits(peaks) if peaks.device_bytes == 3));
        assert_eq!(runner.seen.len(), 3);
    }

    #[test]
    fn a_signal_while_the_need_is_measured_ends_the_rest() {
        let mut runner = MadeUp::new(|rehearsal| match is_unlimited(rehearsal) {
            true => interrupted(),
            false => does_not_fit(),
        });
        let result = measure(&mut runner, &two_texts());
        assert!(matches!(result, Err(Stop::Interrupted(2))), "{result:?}");
        assert_eq!(runner.seen.len(), 2);
    }

    #[test]
    fn a_script_that_fails_as_it_is_is_not_rehearsed_further() {
        let mut runner = MadeUp::new(|_| fails("KeyError: 'x'"));
        let measured = measure(&mut runner, &two_texts()).expect("a run");
        assert_eq!(measured.len(), 1);
        assert_eq!(runner.seen.len(), 1);
    }
}

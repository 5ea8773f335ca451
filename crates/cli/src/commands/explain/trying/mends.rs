//! Advice that mends a line: the linter finds the line, and its fix is tried on a copy of the script.

use std::path::Path;

use ghostgpu_explain::{Advice, Candidate};
use ghostgpu_lint::fixing::fix_alone;
use ghostgpu_lint::{Diagnostic, Fix, RULES, Settings, Source, examine};

use super::super::trials::{AsItIs, Fails, Trials};
use super::{Bench, Shown};
use crate::in_place_of::in_place_of_the_script;
use crate::probing::Outcome;
use ghostgpu_text::human;

/// Rules about losses that are kept with their graphs.
const LOSSES: &[&str] = &["collected-losses", "logged-loss", "summed-loss"];

/// Rules about outputs that gather on the card.
const OUTPUTS: &[&str] = &["collected-outputs"];

/// Rules about what is carried from step to step.
const STATE: &[&str] = &[
    "activations-kept-by-hook",
    "cached-tensors",
    "collected-outputs",
    "output-kept-on-self",
    "recurrent-state",
];

/// The rules whose fixes are tried; nothing where it is not lines that are mended.
pub fn rules_for(candidate: Candidate) -> Option<&'static [&'static str]> {
    match candidate {
        Candidate::FixedLosses => Some(LOSSES),
        Candidate::FixedOutputs => Some(OUTPUTS),
        Candidate::FixedState => Some(STATE),
        _ => None,
    }
}

/// More lines are counted, not shown.
const SHOWN_LINES: usize = 3;

/// What the linter has to say.
#[derive(Debug, PartialEq, Eq)]
enum Mending {
    Mended {
        contents: String,
        /// The new lines, each with its place.
        lines: Vec<String>,
    },
    /// Why there is nothing to try.
    Nothing(String),
}

/// What a fix makes of a tensor that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// A tensor without its graph, as the linter has it: whatever comes after can go on using it.
    Detached,
    /// A number. A detached loss may still hold memory: that of `mse_loss` is as large as its inputs.
    Number,
}

impl Bench<'_> {
    pub(super) fn try_mended(
        &mut self,
        advice: &Advice,
        rules: &[&str],
        trials: &mut Trials,
    ) -> anyhow::Result<()> {
        let ways: &[Kept] = match rules == LOSSES {
            true => &[Kept::Detached, Kept::Number],
            false => &[Kept::Detached],
        };
        let mut first_failure = None;
        for &way in ways {
            let (contents, lines) = match mended(self.script, rules, way) {
                Mending::Mended { contents, lines } => (contents, lines),
                Mending::Nothing(because) => {
                    trials.untried.push(advice.clone().not_rehearsed(because));
                    return Ok(());
                }
            };
            std::fs::write(&self.text, contents)?;
            let plan = in_place_of_the_script(&self.plan, &self.text);
            let seen = self.fresh(&plan, &advice.what)?;
            let did = match lines.len() {
                1 => "1 line mended".to_owned(),
                count => format!("{count} lines mended"),
            };
            let is_growing_only = matches!(trials.as_it_is, AsItIs::Fits { .. });
            let failure = match (&seen.outcome, seen.growth_bytes) {
                // Where the script fits and grows, it must have ceased to grow.
                (Outcome::Fits(_), Some(bytes)) if is_growing_only => {
                    format!("it still grows by {} with every step", human(bytes))
                }
                (Outcome::Fits(_), _) => {
                    let mut shown = Shown::of(advice, in_short(&lines));
                    shown.did = Some(did);
                    self.note(seen.outcome, shown, trials);
                    return Ok(());
                }
                (Outcome::DoesNotFit(place), _) => format!("out of memory {place}"),
                (Outcome::Fails { because, .. }, _) => because.clone(),
            };
            first_failure.get_or_insert(format!("{did}; {failure}"));
        }
        if let Some(because) = first_failure {
            trials.fails.push(Fails {
                what: advice.what.clone(),
                because,
            });
        }
        Ok(())
    }
}

fn in_short(lines: &[String]) -> String {
    let mut text = lines[..lines.len().min(SHOWN_LINES)].join("; ");
    if lines.len() > SHOWN_LINES {
        text.push_str(&format!("; and {} more", lines.len() - SHOWN_LINES));
    }
    text
}

/// The script with the fixes of some rules, those included that need a look.
fn mended(script: &Path, rules: &[&str], way: Kept) -> Mending {
    let name = script
        .file_name()
        .unwrap_or(script.as_os_str())
        .to_string_lossy();
    let source = std::fs::read(script)
        .map_err(|error| error.to_string())
        .and_then(|bytes| Source::script(&bytes).map_err(|error| error.to_string()));
    let mut source = match source {
        Ok(source) => source,
        Err(problem) => return Mending::Nothing(format!("{name} cannot be read: {problem}")),
    };
    let settings = Settings {
        off: RULES
            .iter()
            .map(|rule| rule.name)
            .filter(|rule| !rules.contains(rule))
            .collect(),
        ..Settings::default()
    };
    let of_rules = |source: &Source| -> Vec<Diagnostic> {
        let all = examine(source, &settings).into_iter();
        all.filter(|remark| rules.contains(&remark.origin.name()))
            .collect()
    };
    let mut remarks = of_rules(&source);
    let mut lines = Vec::new();
    // Each fix moves what stands behind it, so that one is made after the other.
    for _ in 0..remarks.len() {
        let fixed = remarks.iter().find_map(|remark| {
            let fix = kept_as(remark.fix.as_ref()?, way);
            let after = fix_alone(&source, &fix).ok().flatten()?;
            // A fix that removes nothing is none.
            (of_rules(&after).len() < remarks.len()).then_some(after)
        });
        let Some(after) = fixed else {
            break;
        };
        if let Some((line, text)) = first_difference(source.text(), after.text()) {
            lines.push(format!("{name}:{line}: {text}"));
        }
        source = after;
        remarks = of_rules(&source);
    }
    match (lines.is_empty(), remarks.first()) {
        (false, _) => Mending::Mended {
            contents: source.contents(),
            lines,
        },
        (true, Some(remark)) => Mending::Nothing(format!(
            "lint finds {name}:{} ({}), and has no fix to try",
            source.position(remark.range.start).line,
            remark.origin.name()
        )),
        (true, None) => Mending::Nothing(format!("lint finds no such line in {name}")),
    }
}

/// The fix as it stands, or with a number in the place of a tensor.
fn kept_as(fix: &Fix, way: Kept) -> Fix {
    let mut fix = fix.clone();
    if way == Kept::Number {
        for edit in &mut fix.edits {
            edit.text = edit.text.replace(".detach()", ".item()");
        }
    }
    fix
}

/// The first line of `after` that is another one in `before`.
fn first_difference<'a>(before: &str, after: &'a str) -> Option<(usize, &'a str)> {
    let mut old = before.lines();
    let mut new = after.lines().enumerate();
    new.find(|(_, line)| old.next() != Some(line))
        .map(|(index, line)| (index + 1, line.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROWING: &str = "\
import torch
losses = []
for x in loader:
    loss = model(x).mean()
    loss.backward()
    optimizer.step()
    losses.append(loss)
";

    fn mended_text(text: &str, rules: &[&str], way: Kept) -> Mending {
        let folder = tempfile::tempdir().expect("folder");
        let script = folder.path().join("train.py");
        std::fs::write(&script, text).expect("file");
        mended(&script, rules, way)
    }

    #[test]
    fn a_kept_loss_is_mended_and_shown_with_its_place() {
        for (way, ending) in [(Kept::Detached, ".detach()"), (Kept::Number, ".item()")] {
            assert_eq!(
                mended_text(GROWING, LOSSES, way),
                Mending::Mended {
                    contents: GROWING.replace("append(loss)", &format!("append(loss{ending})")),
                    lines: vec![format!("train.py:7: losses.append(loss{ending})")],
                }
            );
        }
    }

    #[test]
    fn several_lines_are_mended_one_after_the_other() {
        let text = GROWING.to_owned() + "    total += loss\n";
        let text = text.replace("losses = []", "losses = []\ntotal = 0");
        let Mending::Mended { contents, lines } = mended_text(&text, LOSSES, Kept::Detached) else {
            panic!("nothing was mended");
        };
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!(contents.matches("loss.detach()").count(), 2, "{contents}");
    }

    #[test]
    fn where_nothing_is_found_nothing_is_tried() {
        for (text, because) in [
            ("import torch\n", "lint finds no such line in train.py"),
            ("def (:\n", "lint finds no such line in train.py"),
        ] {
            assert_eq!(
                mended_text(text, LOSSES, Kept::Detached),
                Mending::Nothing(because.to_owned())
            );
        }
        assert!(matches!(
            mended(Path::new("missing.py"), LOSSES, Kept::Detached),
            Mending::Nothing(_)
        ));
    }

    #[test]
    fn many_lines_are_shown_in_short() {
        let lines: Vec<String> = (1..=5).map(|line| format!("a.py:{line}")).collect();
        assert_eq!(in_short(&lines), "a.py:1; a.py:2; a.py:3; and 2 more");
    }

    #[test]
    fn rules_of_these_names_exist() {
        for name in [LOSSES, OUTPUTS, STATE].concat() {
            assert!(RULES.iter().any(|rule| rule.name == name), "{name}");
        }
    }
}

//! Advice to correct a line: the linter finds the line, and its fix is rehearsed on a copy of the text.

use ghostgpu_explain::Candidate;
use ghostgpu_lint::fixing::fix_alone;
use ghostgpu_lint::{Diagnostic, Fix, RULES, Settings, Source, examine};

use super::Script;

/// Rules about losses that are kept with their graphs.
pub const LOSSES: &[&str] = &["collected-losses", "logged-loss", "summed-loss"];

/// Rules about outputs that accumulate on the card.
const OUTPUTS: &[&str] = &["collected-outputs"];

/// Rules about tensors that are kept from step to step.
const STATE: &[&str] = &[
    "activations-kept-by-hook",
    "cached-tensors",
    "collected-outputs",
    "output-kept-on-self",
    "recurrent-state",
];

/// The rules whose fixes are rehearsed; `None` if the advice is not about lines.
pub fn rules_for(candidate: Candidate) -> Option<&'static [&'static str]> {
    match candidate {
        Candidate::FixedLosses => Some(LOSSES),
        Candidate::FixedOutputs => Some(OUTPUTS),
        Candidate::FixedState => Some(STATE),
        _ => None,
    }
}

/// The result of applying the linter's fixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fixing {
    Fixed {
        contents: String,
        /// The new lines, each with its place.
        lines: Vec<FixedLine>,
    },
    Nothing(NoFix),
}

/// A line that was corrected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedLine {
    /// The script's name.
    pub file: String,
    pub line: usize,
    pub text: String,
}

/// Why no line was corrected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoFix {
    Unreadable {
        file: String,
        problem: String,
    },
    NotFound {
        file: String,
    },
    /// A rule reports this line but has no fix for it.
    WithoutFix {
        file: String,
        line: usize,
        rule: &'static str,
    },
}

/// What a fix keeps instead of the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The tensor without its graph, as the linter's fix does. Later code can go on using it.
    Detached,
    /// A number. A detached loss may still hold much memory: the storage of `mse_loss` is as large as its inputs.
    Number,
}

/// The script with the fixes of some rules, unsafe ones included.
pub fn fixed(script: &Script, rules: &[&str], kept: Kept) -> Fixing {
    let file = script.name.clone();
    let source = script
        .contents
        .as_ref()
        .map_err(Clone::clone)
        .and_then(|bytes| Source::script(bytes).map_err(|error| error.to_string()));
    let mut source = match source {
        Ok(source) => source,
        Err(problem) => return Fixing::Nothing(NoFix::Unreadable { file, problem }),
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
    // Each fix shifts the text after it, so the script is examined again after each.
    for _ in 0..remarks.len() {
        let fixed = remarks.iter().find_map(|remark| {
            let fix = kept_as(remark.fix.as_ref()?, kept);
            let after = fix_alone(&source, &fix).ok().flatten()?;
            // A fix must remove at least one finding.
            (of_rules(&after).len() < remarks.len()).then_some(after)
        });
        let Some(after) = fixed else {
            break;
        };
        if let Some((line, text)) = first_difference(source.text(), after.text()) {
            lines.push(FixedLine {
                file: file.clone(),
                line,
                text: text.to_owned(),
            });
        }
        source = after;
        remarks = of_rules(&source);
    }
    match (lines.is_empty(), remarks.first()) {
        (false, _) => Fixing::Fixed {
            contents: source.contents(),
            lines,
        },
        (true, Some(remark)) => Fixing::Nothing(NoFix::WithoutFix {
            file,
            line: source.position(remark.range.start).line,
            rule: remark.origin.name(),
        }),
        (true, None) => Fixing::Nothing(NoFix::NotFound { file }),
    }
}

/// The fix unchanged, or with `.item()` instead of `.detach()`.
fn kept_as(fix: &Fix, kept: Kept) -> Fix {
    let mut fix = fix.clone();
    if kept == Kept::Number {
        for edit in &mut fix.edits {
            edit.text = edit.text.replace(".detach()", ".item()");
        }
    }
    fix
}

/// The first line of `after` that differs from `before`, with its number.
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

    fn fixed_text(text: &str, rules: &[&str], kept: Kept) -> Fixing {
        let script = Script {
            name: "train.py".to_owned(),
            contents: Ok(text.as_bytes().to_vec()),
        };
        fixed(&script, rules, kept)
    }

    #[test]
    fn a_kept_loss_is_corrected_and_shown_with_its_place() {
        for (kept, ending) in [(Kept::Detached, ".detach()"), (Kept::Number, ".item()")] {
            let line = FixedLine {
                file: "train.py".to_owned(),
                line: 7,
                text: format!("losses.append(loss{ending})"),
            };
            assert_eq!(
                fixed_text(GROWING, LOSSES, kept),
                Fixing::Fixed {
                    contents: GROWING.replace("append(loss)", &format!("append(loss{ending})")),
                    lines: vec![line],
                }
            );
        }
    }

    #[test]
    fn several_lines_are_corrected_one_after_the_other() {
        let text = GROWING.to_owned() + "    total += loss\n";
        let text = text.replace("losses = []", "losses = []\ntotal = 0");
        let Fixing::Fixed { contents, lines } = fixed_text(&text, LOSSES, Kept::Detached) else {
            panic!("nothing was corrected");
        };
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!(contents.matches("loss.detach()").count(), 2, "{contents}");
    }

    #[test]
    fn where_nothing_is_found_nothing_is_corrected() {
        for text in ["import torch\n", "def (:\n"] {
            let fixing = fixed_text(text, LOSSES, Kept::Detached);
            let file = "train.py".to_owned();
            assert_eq!(fixing, Fixing::Nothing(NoFix::NotFound { file }));
        }
        let missing = Script {
            name: "train.py".to_owned(),
            contents: Err("no such file".to_owned()),
        };
        assert!(matches!(
            fixed(&missing, LOSSES, Kept::Detached),
            Fixing::Nothing(NoFix::Unreadable { .. })
        ));
    }

    #[test]
    fn rules_of_these_names_exist() {
        for name in [LOSSES, OUTPUTS, STATE].concat() {
            assert!(RULES.iter().any(|rule| rule.name == name), "{name}");
        }
    }
}

//! What candidates came to, in the words of the answer.

use std::ffi::OsString;
use std::path::Path;

use ghostgpu_device::DeviceSheet;
use ghostgpu_plan::candidates::{
    self, CandidateOutcome, Candidates, Failed, FixedLine, Made, NoFix, NotRehearsed,
    RehearsedCandidate,
};
use ghostgpu_plan::largest_batch::NotFound;
use ghostgpu_rehearse::{SizePoint, with_value};
use ghostgpu_text::human;

use super::rehearsed::{AsItIs, Fails, Rehearsed, Works};
use crate::gpus::short_name;
use crate::largest_batch::place_in_words;

/// More lines are counted, not shown.
const SHOWN_LINES: usize = 3;

/// The script and its arguments, as the user types them.
pub struct Typed<'a> {
    pub script: &'a Path,
    pub words: &'a [OsString],
}

impl Typed<'_> {
    /// `train.py --batch-size 8`.
    fn command(&self) -> String {
        self.command_with(self.words)
    }

    /// The same with other arguments.
    fn command_with(&self, words: &[OsString]) -> String {
        let words = words.iter().map(|word| word.to_string_lossy().into_owned());
        let all: Vec<String> = std::iter::once(self.script.display().to_string())
            .chain(words)
            .collect();
        all.join(" ")
    }
}

/// What rehearsals of advice said, in words.
pub fn rehearsed(
    found: Candidates,
    card: &DeviceSheet,
    assumptions: Vec<String>,
    typed: &Typed,
) -> Rehearsed {
    let mut rehearsed = Rehearsed {
        card: card.name.clone(),
        total_bytes: card.total_bytes,
        assumptions,
        as_it_is: match found.as_it_is {
            candidates::AsItIs::Fits {
                peaks,
                stopped_after_steps,
                grows_by_bytes,
            } => AsItIs::Fits {
                peaks,
                stopped_after_steps,
                grows_by_bytes,
            },
            candidates::AsItIs::DoesNotFit {
                place,
                needed_bytes,
            } => AsItIs::DoesNotFit {
                place: place.to_string(),
                needed_bytes,
            },
            candidates::AsItIs::Fails(reason) => AsItIs::Fails {
                because: reason.to_string(),
            },
        },
        works: Vec::new(),
        fails: Vec::new(),
        not_rehearsed: Vec::new(),
    };
    for candidate in found.candidates {
        add(candidate, typed, &mut rehearsed);
    }
    rehearsed.rank();
    rehearsed
}

fn add(candidate: RehearsedCandidate, typed: &Typed, rehearsed: &mut Rehearsed) {
    let advice = candidate.advice;
    let advised = advice.as_ref().map(|advice| advice.what.clone());
    match candidate.outcome {
        CandidateOutcome::Works {
            made,
            peaks,
            total_bytes,
            ends_growth_of_bytes,
        } => {
            let growth = ends_growth_of_bytes
                .map(|bytes| format!("no more growth of {} with every step", human(bytes)));
            let did: Vec<String> = did(&made).into_iter().chain(growth).collect();
            let fallback = advice.as_ref().map(|advice| advice.command.clone());
            rehearsed.works.push(Works {
                what: what(&made, advised),
                command: command(&made, typed).or(fallback).unwrap_or_default(),
                effect: candidate.effect,
                did: (!did.is_empty()).then(|| did.join("; ")),
                peaks,
                total_bytes,
                is_other_card: matches!(made, Made::Card(_)),
                candidate: advice.and_then(|advice| advice.candidate),
            });
        }
        CandidateOutcome::Fails { made, because } => {
            let did = made.as_ref().and_then(did);
            let did = did.map(|did| format!("{did}; ")).unwrap_or_default();
            rehearsed.fails.push(Fails {
                what: match &made {
                    Some(made) => what(made, advised),
                    None => advised.unwrap_or_default(),
                },
                because: format!("{did}{}", why_it_fails(&because)),
            });
        }
        CandidateOutcome::Not(NotRehearsed::Impossible) => rehearsed.not_rehearsed.extend(advice),
        CandidateOutcome::Not(because) => {
            let advice = advice.map(|advice| advice.not_rehearsed(why_not(&because)));
            rehearsed.not_rehearsed.extend(advice);
        }
    }
}

/// What a candidate is called.
fn what(made: &Made, advised: Option<String>) -> String {
    let advised = advised.unwrap_or_default();
    match made {
        Made::Batch { batch, own, .. } => {
            let before = own.map(|own| format!(" instead of {own}"));
            format!(
                "a batch of {batch}{}, the largest that fits",
                before.unwrap_or_default()
            )
        }
        Made::Switch(word) => format!("the script's own {word}"),
        Made::Card(card) => format!(
            "{advised}: {} with {}",
            card.driver_name,
            human(card.total_bytes)
        ),
        _ => advised,
    }
}

/// What to type or write; none where the advice itself says it.
fn command(made: &Made, typed: &Typed) -> Option<String> {
    let script = typed.command();
    Some(match made {
        Made::Variable { name, value } => format!("{name}={value} python {script}"),
        Made::Code { line, .. } => return line.clone(),
        Made::Batch {
            batch,
            point: SizePoint::Option(option),
            ..
        } => format!("python {script} {option} {batch}"),
        Made::Batch {
            batch,
            point,
            place,
            ..
        } => format!("batch_size={batch} in {}", place_in_words(point, place)),
        Made::Fixes(lines) => in_short(lines),
        Made::Switch(word) => format!("python {script} {word}"),
        Made::Argument { option, value, .. } => {
            let words = with_value(typed.words, option, *value);
            format!("python {}", typed.command_with(&words))
        }
        Made::CutBatches { tokens, .. } => {
            format!("tokenizer(text, truncation=True, max_length={tokens})")
        }
        Made::Card(card) => format!("ghostgpu run --gpu {} {script}", short_name(card)),
    })
}

/// What was changed, where it is not the command that says so.
fn did(made: &Made) -> Option<String> {
    Some(match made {
        Made::Code {
            did, other_results, ..
        } => {
            let parts = [did, other_results];
            let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
            return (!parts.is_empty()).then(|| parts.join("; "));
        }
        Made::Fixes(lines) => match lines.len() {
            1 => "1 line fixed".to_owned(),
            count => format!("{count} lines fixed"),
        },
        Made::Argument {
            option,
            value,
            before,
        } => format!("{option} {value} instead of {before}"),
        Made::CutBatches { tokens, of } => format!("batches cut to {tokens} of {of} tokens"),
        _ => return None,
    })
}

fn why_it_fails(because: &Failed) -> String {
    match because {
        Failed::OnEmptyCardToo => "it does not fit on an empty card either".to_owned(),
        Failed::OutOfMemory(place) => format!("out of memory {place}"),
        Failed::Script(reason) => reason.to_string(),
        Failed::StillGrows(bytes) => format!("it still grows by {} with every step", human(*bytes)),
        Failed::NotReached(because) => format!("not everything was rehearsed: {because}"),
        Failed::NoBatch(reason) => why_no_batch(reason),
    }
}

fn why_no_batch(reason: &NotFound) -> String {
    match reason {
        NotFound::NoLoader { .. } => {
            "the script iterates no DataLoader; `--arg --batch-size` names the argument that sets its \
             batch"
                .to_owned()
        }
        NotFound::NotSettable { problem, .. } => problem.clone(),
        NotFound::NoOption { option, .. } => format!("the script has no argument `{option}`"),
        NotFound::NoEffect {
            smaller, larger, ..
        } => format!("the script does exactly the same with a batch of {smaller} and of {larger}"),
        NotFound::NotEvenOne { batch, place } => {
            format!("not even {batch} fits: out of memory {place}")
        }
        NotFound::DoesNotFit(_) => {
            "it runs out of memory before it iterates a DataLoader; `--arg --batch-size` names the \
             argument that sets its batch"
                .to_owned()
        }
        NotFound::Fails { reason, .. } => reason.to_string(),
    }
}

fn why_not(because: &NotRehearsed) -> String {
    match because {
        NotRehearsed::Impossible => String::new(),
        NotRehearsed::NothingToChange => "found nothing to change in the script".to_owned(),
        NotRehearsed::NothingToChangeBefore(place) => {
            format!("found nothing to change before it ran out of memory {place}")
        }
        NotRehearsed::NoLength => {
            "the script has no argument for it, and no DataLoader with tokens to cut".to_owned()
        }
        NotRehearsed::NoFix(NoFix::Unreadable { file, problem }) => {
            format!("{file} cannot be read: {problem}")
        }
        NotRehearsed::NoFix(NoFix::NotFound { file }) => {
            format!("lint finds no such line in {file}")
        }
        NotRehearsed::NoFix(NoFix::WithoutFix { file, line, rule }) => {
            format!("lint finds {file}:{line} ({rule}), and has no fix to try")
        }
    }
}

fn in_short(lines: &[FixedLine]) -> String {
    let shown: Vec<String> = lines
        .iter()
        .take(SHOWN_LINES)
        .map(|line| format!("{}:{}: {}", line.file, line.line, line.text))
        .collect();
    let mut text = shown.join("; ");
    if lines.len() > SHOWN_LINES {
        text.push_str(&format!("; and {} more", lines.len() - SHOWN_LINES));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_lines_are_shown_in_short() {
        let lines: Vec<FixedLine> = (1..=5)
            .map(|line| FixedLine {
                file: "a.py".to_owned(),
                line,
                text: "x".to_owned(),
            })
            .collect();
        assert_eq!(
            in_short(&lines),
            "a.py:1: x; a.py:2: x; a.py:3: x; and 2 more"
        );
    }
}

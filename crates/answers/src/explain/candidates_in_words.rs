//! The outcomes of candidates, as sentences of the answer.

use std::ffi::OsString;
use std::path::Path;

use ghostgpu_device::DeviceSheet;
use ghostgpu_explain::{Catalogue, say};
use ghostgpu_plan::candidates::{
    self, CandidateOutcome, Candidates, Failed, FixedLine, Made, NoFix, NotRehearsed,
    RehearsedCandidate,
};
use ghostgpu_plan::largest_batch::NotFound;
use ghostgpu_rehearse::{OutOfMemory, Reason, SizePoint, with_value};
use ghostgpu_text::human;

use super::rehearsed::{AsItIs, Fails, Rehearsed, Works};
use crate::gpus::short_name;
use crate::largest_batch::place_in_words;
use crate::plan::PlanAnswer;

/// How many lines are shown; the others are only counted.
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
    plan: Option<PlanAnswer>,
    card: &DeviceSheet,
    assumptions: Vec<String>,
    typed: &Typed,
    catalogue: &Catalogue,
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
                place: place_of(&place, catalogue),
                needed_bytes,
            },
            candidates::AsItIs::Fails(reason) => AsItIs::Fails {
                because: why_it_ended(&reason, catalogue),
            },
        },
        plan,
        works: Vec::new(),
        fails: Vec::new(),
        not_rehearsed: Vec::new(),
    };
    for candidate in found.candidates {
        add(candidate, typed, &mut rehearsed, catalogue);
    }
    rehearsed.rank();
    rehearsed
}

fn add(
    candidate: RehearsedCandidate,
    typed: &Typed,
    rehearsed: &mut Rehearsed,
    catalogue: &Catalogue,
) {
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
                .map(|bytes| say!(catalogue, "did-end-growth", bytes = human(bytes)));
            let did: Vec<String> = did(&made, catalogue).into_iter().chain(growth).collect();
            let fallback = advice.as_ref().map(|advice| advice.command.clone());
            rehearsed.works.push(Works {
                what: what(&made, advised, catalogue),
                command: command(&made, typed, catalogue)
                    .or(fallback)
                    .unwrap_or_default(),
                effect: candidate.effect,
                did: (!did.is_empty()).then(|| did.join(&say!(catalogue, "list-clause"))),
                peaks,
                total_bytes,
                is_other_card: matches!(made, Made::Card(_)),
                candidate: advice.and_then(|advice| advice.candidate),
            });
        }
        CandidateOutcome::Fails { made, because } => {
            let did = made.as_ref().and_then(|made| did(made, catalogue));
            let because = why_it_fails(&because, catalogue);
            rehearsed.fails.push(Fails {
                what: match &made {
                    Some(made) => what(made, advised, catalogue),
                    None => advised.unwrap_or_default(),
                },
                because: match did {
                    Some(did) => format!("{did}{}{because}", say!(catalogue, "list-clause")),
                    None => because,
                },
            });
        }
        CandidateOutcome::Not(NotRehearsed::Impossible) => rehearsed.not_rehearsed.extend(advice),
        CandidateOutcome::Not(because) => {
            let advice = advice.map(|advice| advice.not_rehearsed(why_not(&because, catalogue)));
            rehearsed.not_rehearsed.extend(advice);
        }
    }
}

/// What a candidate is called.
fn what(made: &Made, advised: Option<String>, catalogue: &Catalogue) -> String {
    let advised = advised.unwrap_or_default();
    match made {
        Made::Batch {
            batch,
            own: Some(own),
            ..
        } => say!(
            catalogue,
            "candidate-batch-instead",
            batch = *batch,
            own = *own
        ),
        Made::Batch { batch, .. } => say!(catalogue, "candidate-batch", batch = *batch),
        Made::Switch(word) => say!(catalogue, "candidate-switch", word = word.clone()),
        Made::Card(card) => say!(
            catalogue,
            "candidate-card",
            advised = advised,
            card = card.driver_name.to_owned(),
            total = human(card.total_bytes)
        ),
        _ => advised,
    }
}

/// What to type or write; `None` if the advice itself says it.
fn command(made: &Made, typed: &Typed, catalogue: &Catalogue) -> Option<String> {
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
        } => say!(
            catalogue,
            "write-batch-size",
            batch = *batch,
            place = place_in_words(point, place)
        ),
        Made::Fixes(lines) => in_short(lines, catalogue),
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

/// What was changed, if the command does not say so.
fn did(made: &Made, catalogue: &Catalogue) -> Option<String> {
    Some(match made {
        Made::Code {
            did, other_results, ..
        } => {
            let parts = [did, other_results];
            let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
            return (!parts.is_empty()).then(|| parts.join(&say!(catalogue, "list-clause")));
        }
        Made::Fixes(lines) => say!(catalogue, "did-fix-lines", count = lines.len()),
        Made::Argument {
            option,
            value,
            before,
        } => say!(
            catalogue,
            "did-set-argument",
            option = option.clone(),
            value = *value,
            before = *before
        ),
        Made::CutBatches { tokens, of } => {
            say!(catalogue, "did-cut-batches", tokens = *tokens, of = *of)
        }
        _ => return None,
    })
}

fn why_it_fails(because: &Failed, catalogue: &Catalogue) -> String {
    match because {
        Failed::OnEmptyCardToo => say!(catalogue, "fails-on-empty-card"),
        Failed::OutOfMemory(place) => out_of_memory(place, catalogue),
        Failed::Script(reason) => why_it_ended(reason, catalogue),
        Failed::StillGrows(bytes) => say!(catalogue, "fails-still-grows", bytes = human(*bytes)),
        Failed::NotReached(because) => {
            say!(catalogue, "fails-not-reached", because = because.clone())
        }
        Failed::NoBatch(reason) => why_no_batch(reason, catalogue),
    }
}

fn out_of_memory(place: &OutOfMemory, catalogue: &Catalogue) -> String {
    let place = place_of(place, catalogue);
    say!(catalogue, "out-of-memory", place = place)
}

/// Where memory ran out: `in step 2 (forward), at train.py:41`.
fn place_of(place: &OutOfMemory, catalogue: &Catalogue) -> String {
    let OutOfMemory::Request {
        stage, step, line, ..
    } = place
    else {
        return say!(catalogue, "ran-out-context");
    };
    let moment = match stage.as_str() {
        "setup" => say!(catalogue, "ran-out-setup"),
        "moving the model" => say!(catalogue, "ran-out-moving"),
        stage => say!(
            catalogue,
            "ran-out-step",
            step = step + 1,
            stage = stage.to_owned()
        ),
    };
    match line {
        Some((file, line)) => say!(
            catalogue,
            "ran-out-at",
            moment = moment,
            place = format!("{file}:{line}")
        ),
        None => moment,
    }
}

/// Why a run failed other than for lack of memory. An exception keeps the script's own message.
fn why_it_ended(reason: &Reason, catalogue: &Catalogue) -> String {
    match reason {
        Reason::TimedOut => say!(catalogue, "ended-too-slow"),
        Reason::NotSimulated(Some(function)) => {
            say!(catalogue, "ended-at-call", function = function.clone())
        }
        Reason::NotSimulated(None) => say!(catalogue, "ended-at-some-call"),
        Reason::PreloadBlocked => say!(catalogue, "ended-without-library"),
        Reason::Exception(line) | Reason::RefusedByTrick(line) => line.clone(),
        Reason::NoStep => say!(catalogue, "ended-without-step"),
        Reason::ExitCode(code) => say!(catalogue, "ended-with-code", code = code.to_string()),
    }
}

fn why_no_batch(reason: &NotFound, catalogue: &Catalogue) -> String {
    match reason {
        NotFound::NoLoader { .. } => say!(catalogue, "no-batch-no-loader"),
        NotFound::NotSettable { problem, .. } => problem.clone(),
        NotFound::NoOption { option, .. } => {
            say!(catalogue, "no-batch-no-option", option = option.clone())
        }
        NotFound::NoEffect {
            smaller, larger, ..
        } => say!(
            catalogue,
            "no-batch-no-effect",
            smaller = *smaller,
            larger = *larger
        ),
        NotFound::NotEvenOne { batch, place } => say!(
            catalogue,
            "no-batch-fits",
            batch = *batch,
            place = out_of_memory(place, catalogue)
        ),
        NotFound::DoesNotFit(_) => say!(catalogue, "no-batch-too-early"),
        NotFound::Fails { reason, .. } => why_it_ended(reason, catalogue),
    }
}

fn why_not(because: &NotRehearsed, catalogue: &Catalogue) -> String {
    match because {
        NotRehearsed::Impossible => String::new(),
        NotRehearsed::NothingToChange => say!(catalogue, "not-nothing-to-change"),
        NotRehearsed::NothingToChangeBefore(place) => say!(
            catalogue,
            "not-nothing-before",
            place = out_of_memory(place, catalogue)
        ),
        NotRehearsed::NoLength => say!(catalogue, "not-no-length"),
        NotRehearsed::NoFix(NoFix::Unreadable { file, problem }) => say!(
            catalogue,
            "not-unreadable",
            file = file.clone(),
            problem = problem.clone()
        ),
        NotRehearsed::NoFix(NoFix::NotFound { file }) => {
            say!(catalogue, "not-found-by-lint", file = file.clone())
        }
        NotRehearsed::NoFix(NoFix::WithoutFix { file, line, rule }) => say!(
            catalogue,
            "not-fixed-by-lint",
            place = format!("{file}:{line}"),
            rule = rule.to_string()
        ),
    }
}

fn in_short(lines: &[FixedLine], catalogue: &Catalogue) -> String {
    let shown: Vec<String> = lines
        .iter()
        .take(SHOWN_LINES)
        .map(|line| format!("{}:{}: {}", line.file, line.line, line.text))
        .collect();
    let mut text = shown.join("; ");
    if lines.len() > SHOWN_LINES {
        let more = lines.len() - SHOWN_LINES;
        text.push_str("; ");
        text.push_str(&say!(catalogue, "and-more", count = more));
    }
    text
}

#[cfg(test)]
mod tests {
    use ghostgpu_device::Catalogue as Cards;
    use ghostgpu_explain::{Advice, Effect, Language};
    use ghostgpu_text::Sheet;

    use super::super::rehearsed::tests::peaks;
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
            in_short(&lines, Language::English.catalogue()),
            "a.py:1: x; a.py:2: x; a.py:3: x; and 2 more"
        );
    }

    fn candidate(what: &str, outcome: CandidateOutcome) -> RehearsedCandidate {
        RehearsedCandidate {
            advice: Some(Advice {
                name: "made-up".to_owned(),
                what: what.to_owned(),
                command: "do it".to_owned(),
                why: String::new(),
                effect: Effect::Identical,
                candidate: None,
                not_rehearsed_because: None,
            }),
            effect: Effect::Identical,
            outcome,
        }
    }

    fn out_of_memory_in(stage: &str) -> OutOfMemory {
        OutOfMemory::Request {
            stage: stage.to_owned(),
            step: 1,
            line: Some(("train.py".to_owned(), 41)),
            moment: None,
        }
    }

    /// Every kind of outcome, each once.
    fn every_outcome() -> Vec<RehearsedCandidate> {
        let works = |made| {
            let outcome = CandidateOutcome::Works {
                made,
                peaks: peaks(6),
                total_bytes: 12 << 30,
                ends_growth_of_bytes: None,
            };
            candidate("A", outcome)
        };
        let fails = |because| {
            let outcome = CandidateOutcome::Fails {
                made: None,
                because,
            };
            candidate("B", outcome)
        };
        let not = |because| candidate("C", CandidateOutcome::Not(because));
        let line = FixedLine {
            file: "train.py".to_owned(),
            line: 7,
            text: "total += loss.item()".to_owned(),
        };
        let batch = |own| Made::Batch {
            batch: 48,
            own,
            point: SizePoint::Option("--batch-size".to_owned()),
            place: String::new(),
        };
        let file = || "train.py".to_owned();
        vec![
            works(batch(None)),
            works(batch(Some(64))),
            works(Made::Switch("--fp16".to_owned())),
            works(Made::Fixes(vec![line])),
            works(Made::Argument {
                option: "--length".to_owned(),
                value: 64,
                before: 128,
            }),
            works(Made::CutBatches {
                tokens: 64,
                of: 128,
            }),
            fails(Failed::OnEmptyCardToo),
            fails(Failed::OutOfMemory(OutOfMemory::Context)),
            fails(Failed::OutOfMemory(out_of_memory_in("setup"))),
            fails(Failed::OutOfMemory(out_of_memory_in("moving the model"))),
            fails(Failed::OutOfMemory(out_of_memory_in("forward"))),
            fails(Failed::Script(Reason::TimedOut)),
            fails(Failed::Script(Reason::NotSimulated(Some(
                "cuFoo".to_owned(),
            )))),
            fails(Failed::Script(Reason::NotSimulated(None))),
            fails(Failed::Script(Reason::PreloadBlocked)),
            fails(Failed::Script(Reason::ExitCode(3))),
            fails(Failed::StillGrows(3 << 20)),
            fails(Failed::NotReached("evaluation".to_owned())),
            fails(Failed::NoBatch(NotFound::NoLoader { options: vec![] })),
            fails(Failed::NoBatch(NotFound::NoOption {
                option: "--batch".to_owned(),
                similar: vec![],
            })),
            fails(Failed::NoBatch(NotFound::NoEffect {
                point: SizePoint::Option("--batch".to_owned()),
                smaller: 8,
                larger: 16,
            })),
            fails(Failed::NoBatch(NotFound::NotEvenOne {
                batch: 1,
                place: out_of_memory_in("forward"),
            })),
            not(NotRehearsed::NothingToChange),
            not(NotRehearsed::NothingToChangeBefore(out_of_memory_in(
                "forward",
            ))),
            not(NotRehearsed::NoLength),
            not(NotRehearsed::NoFix(NoFix::NotFound { file: file() })),
        ]
    }

    fn told(language: Language) -> String {
        let catalogue = language.catalogue();
        let found = Candidates {
            as_it_is: candidates::AsItIs::DoesNotFit {
                place: out_of_memory_in("backward"),
                needed_bytes: Some(14 << 30),
            },
            candidates: every_outcome(),
            stop: None,
        };
        let cards = Cards::builtin();
        let card = cards.find("3060").expect("a card").sheet();
        let typed = Typed {
            script: Path::new("train.py"),
            words: &[],
        };
        let mut sheet = Sheet::default();
        rehearsed(found, None, &card, Vec::new(), &typed, catalogue).write(&mut sheet, catalogue);
        sheet.render()
    }

    #[test]
    fn every_outcome_is_told_in_english() {
        insta::assert_snapshot!(told(Language::English));
    }

    #[test]
    fn every_outcome_is_told_in_chinese() {
        insta::assert_snapshot!(told(Language::Chinese));
    }
}

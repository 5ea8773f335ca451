//! All points of a sweep: which are known, and which must be rehearsed.

use std::ffi::OsString;
use std::path::Path;

use ghostgpu_answer_cache::{AnswerCache, Key};
use ghostgpu_answers::gpus::short_name;
use ghostgpu_answers::sweep::{OnCard, Point, SweptArgument, is_answer};
use ghostgpu_device::Card;
use ghostgpu_recording::Verdict;
use serde::Deserialize;

use crate::arguments::{combinations, with_values};
use crate::executor::{Done, Executor};

/// The part of the document of `ghostgpu cards` that is read here.
#[derive(Debug, Deserialize)]
struct CardsDocument {
    cards: Vec<OnCard>,
}

/// One command line, and its cards.
struct Line<'a> {
    values: Vec<String>,
    words: Vec<OsString>,
    cards: Vec<(&'a Card, Option<Found>)>,
}

struct Found {
    card: OnCard,
    known_before: bool,
}

/// Results of earlier sweeps, which are not rehearsed again.
pub struct Known {
    pub cache: AnswerCache,
    /// The part of the cache key that all points share.
    pub common: Option<Key>,
}

impl Known {
    fn read(&self, words: &[OsString], card: &Card) -> Option<OnCard> {
        self.cache.known(&self.key(words, card)?)
    }

    fn keep(&self, words: &[OsString], card: &Card, found: &OnCard) {
        if let Some(key) = self.key(words, card) {
            self.cache.keep(&key, found);
        }
    }

    fn key(&self, words: &[OsString], card: &Card) -> Option<Key> {
        let key = self.common.clone()?.with_words(words);
        Some(key.with("card", card.name))
    }
}

/// Every command line of a sweep, with what is known about it on every card.
pub struct Grid<'a> {
    lines: Vec<Line<'a>>,
    known: Known,
}

impl<'a> Grid<'a> {
    /// Every combination of values, added to the words of the job, on every card.
    pub fn new(
        words: &[OsString],
        arguments: &[SweptArgument],
        cards: &[&'a Card],
        known: Known,
    ) -> Self {
        let line = |values: Vec<String>| {
            let words = with_values(words, arguments, &values);
            let found = |card: &Card| {
                Some(Found {
                    card: known.read(&words, card)?,
                    known_before: true,
                })
            };
            let cards = cards.iter().map(|&card| (card, found(card))).collect();
            Line {
                values,
                words,
                cards,
            }
        };
        Self {
            lines: combinations(arguments).into_iter().map(line).collect(),
            known,
        }
    }

    pub fn point_count(&self) -> usize {
        self.lines.iter().map(|line| line.cards.len()).sum()
    }

    /// How many points have an answer.
    pub fn known_count(&self) -> usize {
        let all = self.lines.iter().flat_map(|line| &line.cards);
        all.filter(|(_, found)| found.is_some()).count()
    }

    /// How many command lines have a card without an answer.
    pub fn missing_lines(&self) -> usize {
        self.lines.iter().filter(|line| line.is_missing()).count()
    }

    /// Rehearses the points that are not known. `program` is our own, `options` are the options of all its calls, and
    /// `each` is called with the number of command lines that have ended. Results from before an interrupt are kept.
    pub fn rehearse(
        &mut self,
        executor: &Executor,
        program: &Path,
        options: &[String],
        each: &mut dyn FnMut(usize),
    ) -> anyhow::Result<()> {
        let mut missing: Vec<&mut Line> = self
            .lines
            .iter_mut()
            .filter(|line| line.is_missing())
            .collect();
        let commands: Vec<Vec<OsString>> = missing
            .iter()
            .map(|line| command_line(program, options, line))
            .collect();
        let mut done_count = 0;
        executor.run_all(&commands, &mut |done| {
            done_count += 1;
            each(done_count);
            if let Some(line) = missing.get_mut(done.number) {
                note_found(line, &done, &self.known);
            }
        })
    }

    /// The points that are known now, and the number of those that are not.
    pub fn into_points(self) -> (Vec<Point>, usize) {
        let not_rehearsed = self.point_count() - self.known_count();
        let points = self.lines.into_iter().flat_map(|line| {
            let values = line.values;
            let found = line.cards.into_iter().filter_map(|(_, found)| found);
            found.map(move |found| Point {
                values: values.clone(),
                card: found.card,
                known_before: found.known_before,
            })
        });
        (points.collect(), not_rehearsed)
    }
}

impl Line<'_> {
    fn is_missing(&self) -> bool {
        self.cards.iter().any(|(_, found)| found.is_none())
    }
}

/// The call of `ghostgpu cards` for the cards of a line that are not known.
fn command_line(program: &Path, options: &[String], line: &Line) -> Vec<OsString> {
    let unknown = line.cards.iter().filter(|(_, found)| found.is_none());
    let names: Vec<&str> = unknown.map(|(card, _)| card.name).collect();
    let mut words: Vec<OsString> = vec![program.into(), "cards".into(), "--quiet".into()];
    words.extend(["--json=-".into(), "--gpu".into(), names.join(",").into()]);
    words.extend(options.iter().map(OsString::from));
    let is_module = line.words.first().is_some_and(|word| word == "-m");
    if !is_module {
        words.push("--".into());
    }
    words.extend(line.words.iter().cloned());
    words
}

/// Notes the results of one command line.
fn note_found(line: &mut Line, done: &Done, known: &Known) {
    let document: Option<CardsDocument> = serde_json::from_str(&done.stdout).ok();
    let said = document.map(|document| document.cards).unwrap_or_default();
    // A script that fails on its first card was not rehearsed on others.
    let failure = said.iter().find(|card| !is_answer(card.verdict)).cloned();
    let failure = failure.unwrap_or_else(|| OnCard {
        reason: Some(reason_in(&done.stderr, done.code)),
        verdict: Verdict::ScriptFailed,
        ..OnCard::default()
    });
    for (card, found) in line.cards.iter_mut().filter(|(_, found)| found.is_none()) {
        let own = said.iter().find(|own| own.name == card.name);
        if let Some(own) = own.filter(|own| is_answer(own.verdict)) {
            known.keep(&line.words, card, own);
        }
        // A command line that a signal ended may still have reported some of its cards.
        if own.is_none() && done.code >= 128 {
            continue;
        }
        let card = own.cloned().unwrap_or_else(|| OnCard {
            name: card.name.to_owned(),
            gpu: short_name(card),
            total_bytes: card.total_bytes,
            ..failure.clone()
        });
        *found = Some(Found {
            card,
            known_before: false,
        });
    }
}

/// Why a command line has no answer: its own error message, if there is one.
fn reason_in(stderr: &str, code: i32) -> String {
    let mut lines = stderr.lines().rev();
    let own = lines.find_map(|line| line.strip_prefix("ghostgpu: "));
    match own {
        Some(sentence) => sentence.to_owned(),
        None => format!("it ended with exit code {code}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ghostgpu_device::Catalogue;

    fn card(name: &str) -> &'static Card {
        Catalogue::builtin().find(name).expect("in the catalogue")
    }

    fn grid() -> Grid<'static> {
        let arguments = [SweptArgument {
            name: "--batch".to_owned(),
            values: vec!["8".to_owned(), "16".to_owned()],
        }];
        let known = Known {
            cache: AnswerCache::new(None, false),
            common: None,
        };
        let words = [OsString::from("train.py")];
        Grid::new(&words, &arguments, &[card("3090"), card("h200")], known)
    }

    fn done(code: i32, stdout: &str, stderr: &str) -> Done {
        Done {
            number: 0,
            code,
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
        }
    }

    fn told(name: &str, verdict: &str) -> String {
        format!(r#"{{"name": "{name}", "verdict": "{verdict}", "fits": true}}"#)
    }

    #[test]
    fn a_command_line_asks_only_about_cards_without_an_answer() {
        let mut grid = grid();
        let options = ["--steps".to_owned(), "2".to_owned()];
        let line = |line: &Line| {
            let words = command_line(Path::new("ghostgpu"), &options, line);
            words
                .join(std::ffi::OsStr::new(" "))
                .into_string()
                .expect("text")
        };
        let shared = "ghostgpu cards --quiet --json=- --gpu";
        assert_eq!(
            line(&grid.lines[0]),
            format!("{shared} RTX 3090,H200 --steps 2 -- train.py --batch 8")
        );
        let said = format!("{{\"cards\": [{}]}}", told("RTX 3090", "fits"));
        note_found(&mut grid.lines[0], &done(143, &said, ""), &grid.known);
        assert_eq!(
            line(&grid.lines[0]),
            format!("{shared} H200 --steps 2 -- train.py --batch 8")
        );
        assert_eq!((grid.known_count(), grid.missing_lines()), (1, 2));
        let (points, not_rehearsed) = grid.into_points();
        assert_eq!((points.len(), not_rehearsed), (1, 3));
    }

    #[test]
    fn a_script_that_fails_on_its_first_card_fails_on_all() {
        let mut grid = grid();
        let said = format!("{{\"cards\": [{}]}}", told("RTX 3090", "script-failed"));
        note_found(&mut grid.lines[0], &done(1, &said, ""), &grid.known);
        let stderr = "Traceback\nghostgpu: no torch in this python\n";
        note_found(&mut grid.lines[1], &done(2, "", stderr), &grid.known);
        let (points, not_rehearsed) = grid.into_points();
        assert_eq!((points.len(), not_rehearsed), (4, 0));
        assert!(points.iter().all(|point| !is_answer(point.card.verdict)));
        let names: Vec<&str> = points
            .iter()
            .map(|point| point.card.name.as_str())
            .collect();
        assert_eq!(names, ["RTX 3090", "H200", "RTX 3090", "H200"]);
        let reason = points[3].card.reason.as_deref();
        assert_eq!(reason, Some("no torch in this python"));
    }

    #[test]
    fn a_command_line_without_a_sentence_has_its_exit_code_as_the_reason() {
        assert_eq!(
            reason_in("Segmentation fault\n", 139),
            "it ended with exit code 139"
        );
    }
}

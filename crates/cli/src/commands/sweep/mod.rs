//! `ghostgpu sweep`: a script with many arguments on many cards, as one table.

mod executor;
mod swept;

use std::ffi::OsString;
use std::path::PathBuf;

use ghostgpu_answer_cache::{AnswerCache, Key};
use ghostgpu_answers::gpus::short_name;
use ghostgpu_answers::sweep::{OnCard, Point, Sweep, is_answer};
use ghostgpu_device::Card;
use ghostgpu_plan::cards::first_card;
use ghostgpu_recording::Verdict;
use ghostgpu_rehearse::python::{Search, find_interpreter};
use ghostgpu_rehearse::{Job, Stop};
use ghostgpu_text::counted;
use serde::Deserialize;

use super::AnswerOptions;
use super::card_list::cards_named;
use super::extent_options::ExtentOptions;
use super::follow_ups::options_that_count;
use super::rehearsal_options::RehearsalOptions;
use super::script_options::ScriptWords;
use super::trick_options::TrickOptions;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;
use crate::questions::known_answers;
use crate::terminal::note;
use executor::{Done, Engine, run_all};
use swept::{combinations, swept_arguments, with_values};

/// Rehearse a script with every combination of arguments on several cards, and tabulate what fits
///
/// What is known from an earlier sweep is not rehearsed again, as long as the script, the Python
/// files around it, the arguments, the card and the versions are the same.
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[command(
    mut_arg("gpu", |argument| argument
        .value_name("NAME,…")
        .help("The cards, as people call them: `3090,4090,a100` (see `ghostgpu gpus`)")
        .long_help(None)),
    mut_arg("memory", |argument| argument.hide(true)),
)]
#[command(override_usage = "\
ghostgpu sweep --gpu <NAME,…> [--arg <ARGUMENT=VALUE,…>]... [OPTIONS] <SCRIPT> [ARGUMENTS]...")]
#[command(after_help = "\
Everything after the script belongs to the script: options of ghostgpu come before it.

Examples:
  ghostgpu sweep --gpu 3090,4090,a100 --arg --batch-size=8,16,32 --arg --seq-len=512,1024 train.py
      eighteen points in six command lines, two at a time
  ghostgpu sweep --gpu h100 --arg model.width=512,1024 --csv out.csv --page out.html train.py
      an argument of Hydra's; a table for a spreadsheet, and a page with a plot
  ghostgpu sweep --gpu a100-80 --arg --batch-size=8,16 --executor submitit --jobs 20 train.py
      as a job array of Slurm

Exit codes: 0 some point fits, 3 none does, 2 wrong usage, or no point could be rehearsed. After
Ctrl-C, what is known so far is shown, and the code is 130: the same command goes on from there.")]
pub struct Arguments {
    #[command(flatten)]
    pub options: RehearsalOptions,

    /// An argument of the script's with its values: `--batch-size=8,16,32`, or `batch_size=8,16`
    #[arg(long, value_name = "ARGUMENT=VALUE,…", allow_hyphen_values = true)]
    pub arg: Vec<String>,

    /// How many rehearsals run at the same time
    #[arg(long, value_name = "N", default_value_t = 2,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub jobs: u16,

    /// Who runs them
    #[arg(
        long,
        value_name = "ENGINE",
        value_enum,
        default_value_t,
        hide_default_value = true
    )]
    pub executor: Engine,

    /// Rehearse everything, also what is known from an earlier sweep
    #[arg(long)]
    pub fresh: bool,

    #[command(flatten)]
    pub extent: ExtentOptions,

    #[command(flatten)]
    pub answer: AnswerOptions,

    /// Write one line for each point to this file, or to standard output with `-`
    #[arg(long, value_name = "FILE.csv")]
    pub csv: Option<PathBuf>,

    /// Write a page with a plot and the table to this file
    #[arg(long, value_name = "FILE.html")]
    pub page: Option<PathBuf>,

    /// Show every point, not only as many as fit one screen
    #[arg(long)]
    pub all: bool,

    #[command(flatten)]
    pub tricks: TrickOptions,

    #[command(flatten)]
    pub script: ScriptWords,
}

/// What `ghostgpu cards` writes, as far as it is read here.
#[derive(Debug, Deserialize)]
struct CardsDocument {
    cards: Vec<OnCard>,
}

/// One command line, and the cards that it is to be asked about.
struct Line<'a> {
    values: Vec<String>,
    words: Vec<OsString>,
    cards: Vec<(&'a Card, Option<Found>)>,
}

struct Found {
    card: OnCard,
    known_before: bool,
}

/// What earlier sweeps found, so that it is not rehearsed again.
struct Known {
    cache: AnswerCache,
    /// What all points have in common.
    common: Option<Key>,
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

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    check(arguments)?;
    let cards = cards_named(arguments.options.gpu.as_deref().unwrap_or_default())?;
    let swept = swept_arguments(&arguments.arg)?;
    let output = arguments.answer.prepare()?;
    let prepare = |path: &Option<PathBuf>| path.as_deref().map(Output::prepare).transpose();
    let (csv, page) = (prepare(&arguments.csv)?, prepare(&arguments.page)?);
    let own_words = arguments.script.command();
    // What is wrong with the job itself is said before anything is started.
    let prepared = Job {
        card: first_card(&cards).map(|card| card.name.to_owned()),
        extent: arguments.extent.extent(),
        tricks: arguments.tricks.requests()?,
        ..arguments.options.job(own_words.clone())
    }
    .prepare()?;
    let options = options(arguments);
    let known = Known {
        cache: known_answers::cache("sweeps", !arguments.fresh),
        common: known_answers::key(&prepared, &arguments.options.library_sizes)
            .map(|key| key.with("options", format!("{options:?}"))),
    };
    let mut lines: Vec<Line> = combinations(&swept)
        .into_iter()
        .map(|values| {
            let words = with_values(&own_words, &swept, &values);
            let known = |card: &Card| {
                let found = known.read(&words, card)?;
                Some(Found {
                    card: found,
                    known_before: true,
                })
            };
            let cards = cards.iter().map(|&card| (card, known(card))).collect();
            Line {
                values,
                words,
                cards,
            }
        })
        .collect();
    let stop = rehearse_missing(arguments, &options, &known, &mut lines)?;
    let (points, not_tried) = points_of(lines);
    let words = own_words.iter();
    let command = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let answer = Sweep::new(command, swept, points, not_tried);
    if let Some(csv) = csv {
        csv.write(&answer.csv())?;
    }
    if let Some(page) = page {
        page.write(&answer.page())?;
    }
    let look = output.look(None);
    output.publish(&answer.text(look, arguments.all), &answer)?;
    match stop {
        Some(stop) => Err(stop.into()),
        None => Ok(answer.exit_code),
    }
}

/// Refuses what no sweep can be made of.
fn check(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.options.memory.is_some() {
        let message =
            "--memory is about one card, and cards are compared here with their own memory";
        return Err(Failure::new(message).with_hint("leave it out, or name cards of that size"));
    }
    if arguments.options.gpu.is_none() {
        return Err(Failure::new("no card was named").with_hint(
            "name some, such as `--gpu 3090,4090,a100`; `ghostgpu cards` asks about all of them",
        ));
    }
    Ok(())
}

/// Rehearses what is not known. An interrupt ends that, and is returned.
fn rehearse_missing(
    arguments: &Arguments,
    options: &[String],
    known: &Known,
    lines: &mut [Line],
) -> anyhow::Result<Option<Stop>> {
    let missing: Vec<usize> = (0..lines.len())
        .filter(|&index| lines[index].cards.iter().any(|(_, found)| found.is_none()))
        .collect();
    let count: usize = lines.iter().map(|line| line.cards.len()).sum();
    let all = lines.iter().flat_map(|line| &line.cards);
    let known_count = all.filter(|(_, found)| found.is_some()).count();
    note(format_args!(
        "{}, {known_count} known already: {} to rehearse",
        counted(count as u64, "point", "points"),
        counted(missing.len() as u64, "command line", "command lines")
    ));
    if missing.is_empty() {
        return Ok(None);
    }
    let program = std::env::current_exe()?;
    let commands: Vec<Vec<OsString>> = missing
        .iter()
        .map(|&index| command_line(&program, options, &lines[index]))
        .collect();
    let python = find_interpreter(&Search {
        named: arguments.options.python.as_deref(),
        ..Search::default()
    })?;
    let progress = Progress::new("rehearsing command lines", commands.len());
    let mut done_count = 0;
    let mut each = |done: Done| {
        done_count += 1;
        progress.done(done_count);
        if let Some(&index) = missing.get(done.number) {
            note_found(&mut lines[index], &done, known);
        }
    };
    let jobs = usize::from(arguments.jobs);
    let ended = run_all(
        arguments.executor,
        jobs,
        &python.executable,
        &commands,
        &mut each,
    );
    drop(progress);
    match ended {
        Ok(()) => Ok(None),
        Err(error) => match error.downcast::<Stop>() {
            Ok(stop @ Stop::Interrupted(_)) => Ok(Some(stop)),
            Ok(stop) => Err(stop.into()),
            Err(error) => Err(error),
        },
    }
}

/// `ghostgpu cards` about the cards of a line that are not known.
fn command_line(program: &std::path::Path, options: &[String], line: &Line) -> Vec<OsString> {
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

/// What one command line said about its cards.
fn note_found(line: &mut Line, done: &Done, known: &Known) {
    let document: Option<CardsDocument> = serde_json::from_str(&done.stdout).ok();
    let said = document.map(|document| document.cards).unwrap_or_default();
    // A script that fails on its first card was not tried on others.
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
        // One that was ended by a signal may have told some of its cards.
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

/// Why a command line has no answer: its own sentence, if it has one.
fn reason_in(stderr: &str, code: i32) -> String {
    let mut lines = stderr.lines().rev();
    let own = lines.find_map(|line| line.strip_prefix("ghostgpu: "));
    match own {
        Some(sentence) => sentence.to_owned(),
        None => format!("it ended with exit code {code}"),
    }
}

fn points_of(lines: Vec<Line>) -> (Vec<Point>, usize) {
    let mut not_tried = 0;
    let mut points = Vec::new();
    for line in lines {
        for (_, found) in line.cards {
            let Some(found) = found else {
                not_tried += 1;
                continue;
            };
            points.push(Point {
                values: line.values.clone(),
                card: found.card,
                known_before: found.known_before,
            });
        }
    }
    (points, not_tried)
}

/// The options that every command line has.
fn options(arguments: &Arguments) -> Vec<String> {
    let mut words = options_that_count(&arguments.options);
    if let Some(timeout) = arguments.options.timeout {
        words.extend([
            "--timeout".to_owned(),
            format!("{}s", timeout.as_secs_f64()),
        ]);
    }
    words.extend(arguments.extent.words());
    words.extend(arguments.tricks.words());
    words
}

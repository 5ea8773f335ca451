//! `ghostgpu sweep`: a script with many arguments on many cards, as one table.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use ghostgpu_answers::sweep::Sweep;
use ghostgpu_plan::cards::first_card;
use ghostgpu_rehearse::python::{Search, find_interpreter};
use ghostgpu_rehearse::{Job, Stop};
use ghostgpu_sweep::{Engine, Executor, Grid, Known, swept_arguments};
use ghostgpu_text::counted;

use super::AnswerOptions;
use super::card_list::cards_named;
use super::extent_options::ExtentOptions;
use super::rehearsal_options::RehearsalOptions;
use super::script_options::ScriptWords;
use super::trick_options::TrickOptions;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;
use crate::questions::known_answers;
use crate::terminal::note;

/// Rehearse a script with every combination of arguments on several cards
///
/// The answer is a table of what fits. Results are cached and reused as long as the script, the Python files
/// around it, the arguments, the card and the versions are the same.
#[derive(Clone, Debug, clap::Args)]
#[command(
    mut_arg("gpu", |argument| argument
        .value_name("NAME,…")
        .help("The cards: `3090,4090,a100` (see `ghostgpu gpus`)")
        .long_help(None)),
    mut_arg("memory", |argument| argument.hide(true)),
)]
#[command(override_usage = "\
ghostgpu sweep --gpu <NAME,…> [--arg <ARGUMENT=VALUE,…>]... [OPTIONS]
           <SCRIPT> [ARGUMENTS]...")]
#[command(after_help = "\
Options of ghostgpu come before the script. Everything after it belongs to the script.

Examples:
  ghostgpu sweep --gpu 3090,4090,a100 --arg --batch-size=8,16,32 \\
    --arg --seq-len=512,1024 train.py
      eighteen points in six command lines, two at a time
  ghostgpu sweep --gpu h100 --arg model.width=512,1024 \\
    --report out.html train.py
      a Hydra argument; the result as a page with a plot
  ghostgpu sweep --gpu a100-80 --arg --batch-size=8,16 --executor submitit \\
    --jobs 20 train.py
      as a Slurm job array

Exit codes: 0 at least one point fits, 3 none fits, 2 wrong usage, or no point could be rehearsed. \
Ctrl-C shows what is known so far, with exit code 130; the same command continues from there.")]
pub struct Arguments {
    #[command(flatten)]
    pub options: RehearsalOptions,

    /// A script argument with its values: `--batch-size=8,16,32`, or `batch_size=8,16`
    #[arg(long, value_name = "ARGUMENT=VALUE,…", allow_hyphen_values = true)]
    pub arg: Vec<String>,

    /// Number of rehearsals that run at the same time
    #[arg(long, value_name = "N", default_value_t = 2,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub jobs: u16,

    /// The engine that runs them
    #[arg(
        long,
        value_name = "ENGINE",
        value_parser = engine_parser(),
        default_value = Engine::default().name(),
        hide_default_value = true
    )]
    pub executor: Engine,

    /// Ignore cached results and rehearse everything
    #[arg(long)]
    pub fresh: bool,

    #[command(flatten)]
    pub extent: ExtentOptions,

    #[command(flatten)]
    pub answer: AnswerOptions,

    /// Write one line per point to this file, or to standard output with `-`
    #[arg(long, value_name = "FILE.csv")]
    pub csv: Option<PathBuf>,

    /// Write a page with a plot and the table to this file
    #[arg(long, value_name = "PAGE.html")]
    pub report: Option<PathBuf>,

    /// Show every point, not only one screen
    #[arg(long)]
    pub all: bool,

    #[command(flatten)]
    pub tricks: TrickOptions,

    #[command(flatten)]
    pub script: ScriptWords,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    check(arguments)?;
    let cards = cards_named(arguments.options.gpu.as_deref().unwrap_or_default())?;
    let swept = swept_arguments(&arguments.arg)?;
    let output = arguments.answer.prepare()?;
    let prepare = |path: &Option<PathBuf>| path.as_deref().map(Output::prepare).transpose();
    let (csv, page) = (prepare(&arguments.csv)?, prepare(&arguments.report)?);
    let own_words = arguments.script.command();
    // Problems of the job itself are reported before anything starts.
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
    let mut grid = Grid::new(&own_words, &swept, &cards, known);
    let stop = rehearse_missing(arguments, &options, &mut grid)?;
    let (points, not_rehearsed) = grid.into_points();
    let words = own_words.iter();
    let command = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let mut answer = Sweep::new(command, swept, points, not_rehearsed);
    if let Some(stop) = &stop {
        answer.exit_code = stop.exit_code();
    }
    if let Some(csv) = csv {
        csv.write(&answer.csv())?;
    }
    if let Some(page) = page {
        page.write(&answer.page())?;
    }
    let style = output.style(None);
    output.publish(&answer.text(style, arguments.all), &answer)?;
    match stop {
        Some(stop) => Err(stop.into()),
        None => Ok(answer.exit_code),
    }
}

/// Refuses arguments that make no sweep.
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

/// Rehearses the points that are not known yet. An interrupt ends this and is returned.
fn rehearse_missing(
    arguments: &Arguments,
    options: &[String],
    grid: &mut Grid,
) -> anyhow::Result<Option<Stop>> {
    let missing = grid.missing_lines();
    note(format_args!(
        "{}, {} known already: {} to rehearse",
        counted(grid.point_count() as u64, "point", "points"),
        grid.known_count(),
        counted(missing as u64, "command line", "command lines")
    ));
    if missing == 0 {
        return Ok(None);
    }
    let python = find_interpreter(&Search {
        named: arguments.options.python.as_deref(),
        ..Search::default()
    })?;
    let executor = Executor {
        engine: arguments.executor,
        jobs: usize::from(arguments.jobs),
        python: python.executable,
    };
    let program = std::env::current_exe()?;
    let progress = Progress::new("rehearsing command lines", missing);
    let ended = grid.rehearse(&executor, &program, options, &mut |count| {
        progress.done(count);
    });
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

/// The options of every command line in the sweep.
fn options(arguments: &Arguments) -> Vec<String> {
    let mut words = arguments.options.words();
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

fn engine_parser() -> impl TypedValueParser<Value = Engine> {
    let possible = |engine: Engine| PossibleValue::new(engine.name()).help(engine.in_words());
    PossibleValuesParser::new(Engine::ALL.map(possible)).map(|word| {
        let mut engines = Engine::ALL.into_iter();
        engines
            .find(|engine| engine.name() == word)
            .unwrap_or_default()
    })
}

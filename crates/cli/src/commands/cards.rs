//! `ghostgpu cards`: on which cards does a job fit, and which is the smallest?

use std::path::PathBuf;
use std::sync::Arc;

use ghostgpu_answers::cards::Cards;
use ghostgpu_device::{Card, Catalogue};
use ghostgpu_plan::cards::{Question, first_card, survey};
use ghostgpu_rehearse::{Job, Stop, WholeRuns};
use ghostgpu_text::parse_size;

use super::AnswerOptions;
use super::card_list::cards_named;
use super::extent_options::ExtentOptions;
use super::rehearsal_options::RehearsalOptions;
use super::script_options::ScriptWords;
use super::trick_options::TrickOptions;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Rehearsing;
use crate::questions::show_last_lines;
use crate::terminal::note;

/// List the cards on which a script fits, with the room left on each
///
/// The script is rehearsed a few times for each architecture, and individually on every card that has
/// about as much memory as it needs. The verdict for each card is that of `ghostgpu run --gpu CARD`.
#[derive(Clone, Debug, clap::Args)]
#[command(
    mut_arg("gpu", |argument| argument
        .value_name("NAME,…")
        .help("Only these cards: `3090,4090,a100` [default: all in `ghostgpu gpus`]")
        .long_help(None)),
    mut_arg("memory", |argument| argument.hide(true)),
)]
#[command(override_usage = "\
ghostgpu cards [OPTIONS] <SCRIPT> [ARGUMENTS]...
       ghostgpu cards [OPTIONS] -m <MODULE> [ARGUMENTS]...
       ghostgpu cards [OPTIONS] -- <PROGRAM> [ARGUMENTS]...")]
#[command(after_help = "\
Options of ghostgpu come before the script. Everything after it belongs to the script.

Examples:
  ghostgpu cards train.py --batch-size 64
      which is the smallest card for this job?
  ghostgpu cards --architecture ada,blackwell --at-least 16GiB --all train.py
      on which of these does it fit, and how much is left on each?
  ghostgpu cards --gpu 3090,4090,a100 --margin 5% --csv cards.csv train.py
      three cards, as a table for a spreadsheet

Exit codes: 0 it fits on at least one card, 4 it fits only tightly, 3 it fits on none, \
otherwise as for `ghostgpu run`. Ctrl-C shows what is known so far, with exit code 130.")]
pub struct Arguments {
    #[command(flatten)]
    pub options: RehearsalOptions,

    /// Only cards of these generations: `ampere`, `ada`, `hopper`, `blackwell`, …
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub architecture: Vec<String>,

    /// Only cards with this much memory or more: `8GiB`
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub at_least: Option<u64>,

    /// Only cards with this much memory or less: `24GiB`
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub at_most: Option<u64>,

    #[command(flatten)]
    pub extent: ExtentOptions,

    #[command(flatten)]
    pub answer: AnswerOptions,

    /// Write one line per card to this file, or to standard output with `-`
    #[arg(long, value_name = "FILE.csv")]
    pub csv: Option<PathBuf>,

    /// Show every card, not only those around the limit
    #[arg(long)]
    pub all: bool,

    #[command(flatten)]
    pub tricks: TrickOptions,

    #[command(flatten)]
    pub script: ScriptWords,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    if arguments.options.memory.is_some() {
        let message =
            "--memory is about one card, and cards are compared here with their own memory";
        return Err(Failure::new(message)
            .with_hint("leave it out, or ask `ghostgpu run --gpu NAME --memory SIZE`")
            .into());
    }
    let cards = chosen(arguments)?;
    let output = arguments.answer.prepare()?;
    let csv = arguments.csv.as_deref().map(Output::prepare).transpose()?;
    let first = first_card(&cards).map(|card| card.name.to_owned());
    let job = Job {
        card: first,
        extent: arguments.extent.extent(),
        tricks: arguments.tricks.requests()?,
        ..arguments.options.job(arguments.script.command())
    };
    let prepared = job.prepare()?;
    note(format_args!(
        "rehearsing on {}: nothing is computed",
        match cards.len() {
            1 => "a virtual card".to_owned(),
            count => format!("up to {count} virtual cards"),
        }
    ));
    let question = Question {
        cards,
        reserve_bytes: prepared.reserve_bytes,
        margin: arguments.options.margin,
        torch: prepared.torch.as_ref().map(|torch| torch.version.as_str()),
    };
    let words = prepared.words.iter();
    let command = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let mut runner = WholeRuns::new(prepared.clone(), Arc::new(Rehearsing::default()));
    let mut found = survey(&mut runner, &question);
    let stop = found.stop.take();
    match &stop {
        None => {}
        // The verdicts found so far are still valid.
        Some(Stop::Interrupted(_)) if !found.known.is_empty() => {}
        Some(_) => return Err(stop.map_or_else(|| anyhow::anyhow!("stopped"), Into::into)),
    }
    if let Some(failure) = &found.failed_first {
        show_last_lines(&failure.last_lines);
    }
    let mut answer = Cards::new(&found, &question, command);
    if let Some(stop) = &stop {
        answer.exit_code = stop.exit_code();
    }
    let style = output.style(None);
    if let Some(csv) = csv {
        csv.write(&answer.csv())?;
    }
    output.publish(&answer.text(style, arguments.all), &answer)?;
    match stop {
        Some(stop) => Err(stop.into()),
        None => Ok(answer.exit_code),
    }
}

/// The cards in question.
fn chosen(arguments: &Arguments) -> Result<Vec<&'static Card>, Failure> {
    let mut cards = match &arguments.options.gpu {
        Some(names) => cards_named(names)?,
        None => Catalogue::builtin().cards().iter().collect(),
    };
    for wanted in &arguments.architecture {
        known_architecture(wanted)?;
    }
    cards.retain(|card| {
        let family = card.architecture().family;
        let wanted = &arguments.architecture;
        let is_family = wanted.iter().any(|name| is_same(name, family));
        (wanted.is_empty() || is_family)
            && arguments
                .at_least
                .is_none_or(|least| card.total_bytes >= least)
            && arguments
                .at_most
                .is_none_or(|most| card.total_bytes <= most)
    });
    match cards.is_empty() {
        false => Ok(cards),
        true => Err(Failure::new("none of the requested cards is left")
            .with_hint("`ghostgpu gpus` lists all cards with their memory")),
    }
}

fn known_architecture(wanted: &str) -> Result<(), Failure> {
    let mut families: Vec<&str> = Vec::new();
    for card in Catalogue::builtin().cards() {
        let family = card.architecture().family;
        if !families.contains(&family) {
            families.push(family);
        }
    }
    match families.iter().any(|family| is_same(wanted, family)) {
        true => Ok(()),
        false => Err(
            Failure::new(format!("no card is of the architecture `{wanted}`"))
                .with_hint(format!("there are {}", families.join(", ").to_lowercase())),
        ),
    }
}

fn is_same(typed: &str, family: &str) -> bool {
    typed.trim().eq_ignore_ascii_case(family)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn chosen_by(line: &str) -> Result<Vec<&'static str>, String> {
        let words = ["cards"].into_iter().chain(line.split_whitespace());
        let line = Line::try_parse_from(words.chain(["train.py"])).map_err(|e| e.to_string())?;
        let cards = chosen(&line.arguments).map_err(|failure| failure.to_string())?;
        Ok(cards.into_iter().map(|card| card.name).collect())
    }

    #[test]
    fn cards_are_chosen_by_name_generation_and_memory() {
        let all = Catalogue::builtin().cards().len();
        assert_eq!(chosen_by("").map(|cards| cards.len()), Ok(all));
        assert_eq!(chosen_by("--gpu h200,4090"), Ok(vec!["H200", "RTX 4090"]));
        let hopper = chosen_by("--architecture Hopper --at-least 90GiB").expect("cards");
        assert!(hopper.contains(&"H200") && hopper.iter().all(|name| name.contains('H')));
        let small = chosen_by("--architecture ampere,ada --at-most 5GiB").expect("cards");
        assert!(!small.is_empty() && small.len() < 8, "{small:?}");
    }

    #[test]
    fn what_leaves_no_card_is_refused() {
        for (line, sentence) in [
            (
                "--architecture ampre",
                "no card is of the architecture `ampre`",
            ),
            ("--at-least 900GiB", "none of the requested cards is left"),
            ("--gpu 3o60", "unknown card `3o60`"),
        ] {
            assert_eq!(chosen_by(line), Err(sentence.to_owned()), "{line}");
        }
    }
}

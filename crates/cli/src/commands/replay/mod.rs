//! `ghostgpu replay`: what another setting would have made of a recorded history.

mod ask;

use std::path::PathBuf;

use ghostgpu_allocator::Release;
use ghostgpu_answers::replay::{Outcome, Replayed, assumptions};
use ghostgpu_whatif::{History, Known, candidates, search};

use crate::commands::AnswerOptions;
use crate::failure::EXIT_DOES_NOT_FIT;
use crate::progress::{self, Progress};
use crate::snapshot_file;
use ghostgpu_text::{parse_card_memory, parse_size};

/// Replay a memory snapshot with other allocator settings or another memory size
///
/// Repeats the snapshot's history (`torch.cuda.memory._record_memory_history`, then `_dump_snapshot`) in an
/// exact replica of PyTorch's allocator: first as recorded, to check that the replica agrees, then with
/// your changes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ghostgpu replay oom.pickle --set expandable_segments:True
  ghostgpu replay oom.pickle --set max_split_size_mb:128 --memory 24GiB
  ghostgpu replay oom.pickle --gpu 3060 --search

Exit codes: 0 it would have run to the end, 3 it would not, 2 wrong usage, not a snapshot, or a \
setting that PyTorch refuses.")]
pub struct Arguments {
    /// A snapshot, optionally compressed (.gz, .zst)
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// An allocator setting as in PYTORCH_CUDA_ALLOC_CONF; replaces the recorded settings
    #[arg(long = "set", value_name = "OPTION:VALUE")]
    set: Vec<String>,

    /// Replay with every sensible setting, and rank them
    #[arg(long, conflicts_with = "set")]
    search: bool,

    /// Number of settings to show
    #[arg(long, value_name = "N", default_value_t = 10, requires = "search")]
    top: usize,

    /// A card with this much memory: `24GiB`
    #[arg(long, value_name = "SIZE", value_parser = parse_card_memory)]
    memory: Option<u64>,

    /// This card (see `ghostgpu gpus`)
    #[arg(long, value_name = "NAME")]
    gpu: Option<String>,

    /// Memory used outside PyTorch by the CUDA context, libraries and other programs [default: the
    /// card's context]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    outside: Option<u64>,

    /// The limit to apply, as by `torch.cuda.set_per_process_memory_fraction` [default: the recorded one]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    limit: Option<u64>,

    /// The limit when this was recorded, which a snapshot does not contain [default: none]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    recorded_limit: Option<u64>,

    /// The device to replay [default: the only one with a history]
    #[arg(long, value_name = "N")]
    device: Option<usize>,

    /// The PyTorch release that recorded it, such as 2.11 [default: the one whose rules reproduce the
    /// recorded addresses]
    #[arg(long, value_name = "VERSION", value_parser = parse_release)]
    torch: Option<Release>,

    /// Replay with the rules of this release
    #[arg(long, value_name = "VERSION", value_parser = parse_release)]
    as_torch: Option<Release>,

    #[command(flatten)]
    answer: AnswerOptions,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let output = arguments.answer.prepare()?;
    let card = ask::card_memory(arguments)?;
    let snapshot = snapshot_file::open(&arguments.file)?;
    let device = snapshot_file::device_with_history(&snapshot, arguments.device)?;
    let known = Known {
        release: arguments.torch,
        limit_bytes: arguments.recorded_limit,
    };
    let history = progress::during("replaying the history", || {
        History::of(&snapshot, device, known)
    });
    let history = history.map_err(|error| ask::cannot_replay(&error))?;
    let question = ask::question(arguments, &history, card.as_ref())?;
    let outcome = if arguments.search {
        let settings = candidates(question.release, question.limit_bytes.is_some());
        let progress = Progress::new("settings", settings.len());
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let done = |count| progress.done(count);
        Outcome::Ranked {
            found: search(&history, &question, settings, threads, &done),
            shown: arguments.top,
        }
    } else {
        let answer = progress::during("replaying the history", || history.ask(&question));
        Outcome::One(Box::new(answer))
    };
    let assumptions = assumptions(&snapshot, &history, &outcome, card.as_ref());
    let code = if outcome.fits() { 0 } else { EXIT_DOES_NOT_FIT };
    let replayed = Replayed {
        file: arguments.file.display().to_string(),
        history: &history,
        question,
        card,
        outcome,
        assumptions,
    };
    output.answer(|style| replayed.text(style), || replayed.json())?;
    Ok(code)
}

fn parse_release(text: &str) -> Result<Release, String> {
    text.parse::<Release>().map_err(|error| error.to_string())
}

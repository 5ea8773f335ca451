//! `ghostgpu snapshot top`: who held the memory at a moment.

use std::path::PathBuf;

use ghostgpu_answers::in_json;
use ghostgpu_answers::snapshot::Top;
use ghostgpu_ledger::By;

use super::moment::At;
use super::opened::{ledger, open};
use crate::commands::AnswerOptions;

/// Show who held the memory at a given moment
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ghostgpu snapshot top oom.pickle
  ghostgpu snapshot top oom.pickle --at end --by function
  ghostgpu snapshot top oom.pickle --by size --top 30")]
pub(super) struct Arguments {
    /// A snapshot, optionally compressed (.gz, .zst)
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The moment: `peak`, `end` or an event number
    #[arg(long, value_name = "WHEN", default_value = "peak")]
    at: At,

    /// Group memory by this
    #[arg(long, value_name = "WHAT", default_value = "line")]
    by: ByWhat,

    /// Number of holders to list
    #[arg(long, value_name = "N", default_value_t = 15)]
    top: usize,

    /// The device [default: the only one]
    #[arg(long, value_name = "N")]
    device: Option<usize>,

    #[command(flatten)]
    answer: AnswerOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ByWhat {
    /// The line of your own code
    Line,
    /// The function of your own code
    Function,
    /// The whole stack
    Stack,
    /// Annotations and metadata in the file
    Category,
    /// The size of the allocation
    Size,
}

impl From<ByWhat> for By {
    fn from(what: ByWhat) -> Self {
        match what {
            ByWhat::Line => Self::Line,
            ByWhat::Function => Self::Function,
            ByWhat::Stack => Self::Stack,
            ByWhat::Category => Self::Name,
            ByWhat::Size => Self::Size,
        }
    }
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let output = arguments.answer.prepare()?;
    let (recording, warnings) = open(&arguments.file)?;
    let (device, ledger) = ledger(&recording, arguments.device)?;
    let moment = arguments.at.of(&ledger)?;
    let holders = ledger.held_by(moment, arguments.by.into());
    let top = Top {
        recording: &recording,
        device,
        when: arguments.at.words(),
        holders: &holders,
        most: arguments.top,
        warnings: &warnings,
    };
    output.answer(|style| top.text(style), || in_json(&top.json()))?;
    Ok(0)
}

//! `ghostgpu snapshot diff`: what changed between two snapshots.

use std::path::PathBuf;

use ghostgpu_answers::in_json;
use ghostgpu_answers::snapshot::{Difference, Side};

use super::moment::At;
use super::opened::{ledger, open};
use super::top::ByWhat;
use crate::commands::AnswerOptions;

/// Show what changed between two snapshots
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Holders are compared by where they allocated, not by address, so the snapshots may come from \
different runs. All differences are counted; the largest are listed.

Examples:
  ghostgpu snapshot diff before.pickle after.pickle
  ghostgpu snapshot diff step10.pickle step100.pickle --by stack --at peak")]
pub(super) struct Arguments {
    /// The snapshot before
    #[arg(value_name = "BEFORE")]
    before: PathBuf,

    /// The snapshot after
    #[arg(value_name = "AFTER")]
    after: PathBuf,

    /// The moment in both: `peak`, `end` or an event number
    #[arg(long, value_name = "WHEN", default_value = "end")]
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

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let output = arguments.answer.prepare()?;
    let read = |path: &PathBuf| -> anyhow::Result<Side> {
        let (recording, warnings) = open(path)?;
        let (_, ledger) = ledger(&recording, arguments.device)?;
        let moment = arguments.at.of(&ledger)?;
        Ok(Side::of(&ledger, moment, arguments.by.into(), warnings))
    };
    let difference = Difference {
        before: read(&arguments.before)?,
        after: read(&arguments.after)?,
        when: arguments.at.words(),
        most: arguments.top,
    };
    output.answer(
        |style| difference.text(style),
        || in_json(&difference.json()),
    )?;
    Ok(0)
}

//! `ghostgpu snapshot top`: who held the memory at a moment.

use std::path::PathBuf;

use ghostgpu_ledger::{By, Holders};
use ghostgpu_recording::Recording;
use serde_json::json;

use super::moment::At;
use super::opened::{ledger, open};
use crate::commands::answer_options::{AnswerOptions, in_json};
use crate::terminal::Look;
use ghostgpu_text::{Table, grouped, human};

/// Say who held the memory at a moment
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ghostgpu snapshot top oom.pickle
  ghostgpu snapshot top oom.pickle --at end --by function
  ghostgpu snapshot top oom.pickle --by size --top 30")]
pub(super) struct Arguments {
    /// A snapshot, also compressed (.gz, .zst)
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The moment: `peak`, `end` or the number of an event
    #[arg(long, value_name = "WHEN", default_value = "peak")]
    at: At,

    /// What to add memory up by
    #[arg(long, value_name = "WHAT", default_value = "line")]
    by: ByWhat,

    /// How many holders to list
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
    /// The line of the user's own code
    Line,
    /// The function of the user's own code
    Function,
    /// The whole stack
    Stack,
    /// What the file itself calls it: annotations and metadata
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
    let (recording, warnings) = open(&arguments.file)?;
    let (device, ledger) = ledger(&recording, arguments.device)?;
    let moment = arguments.at.of(&ledger)?;
    let holders = ledger.held_by(moment, arguments.by.into());
    let text = |look: Look| {
        let mut sheet = look.sheet();
        sheet.section(
            "live",
            [format!(
                "{} in {} allocations on device {device}, {}",
                human(holders.requested_bytes),
                grouped(holders.count),
                arguments.at.words()
            )],
        );
        sheet.table("held by", &table(&holders, arguments.top));
        sheet.list("notes", &warnings);
        sheet.render()
    };
    let document = || in_json(&as_json(&recording, &holders, arguments.top));
    arguments.answer.prepare()?.answer(text, document)?;
    Ok(0)
}

/// The largest holders, and one line for all others.
pub(super) fn table(holders: &Holders, most: usize) -> Table {
    let mut table = Table::new(&[">bytes", ">share", ">blocks", "holder"]);
    let share = |bytes: u64| match holders.requested_bytes {
        0 => "-".to_owned(),
        all => format!("{:.1} %", bytes as f64 / all as f64 * 100.0),
    };
    for holder in holders.holders.iter().take(most) {
        table.push(vec![
            human(holder.requested_bytes),
            share(holder.requested_bytes),
            grouped(holder.count),
            holder.label.clone(),
        ]);
    }
    let rest = holders.holders.get(most..).unwrap_or_default();
    if !rest.is_empty() {
        let bytes = rest.iter().fold(0u64, |sum, holder| {
            sum.saturating_add(holder.requested_bytes)
        });
        table.push(vec![
            human(bytes),
            share(bytes),
            grouped(rest.iter().map(|holder| holder.count).sum()),
            others(rest.len()),
        ]);
    }
    table
}

/// What is not listed.
pub(super) fn others(count: usize) -> String {
    match count {
        1 => "1 other".to_owned(),
        count => format!("{} others", grouped(count as u64)),
    }
}

fn as_json(recording: &Recording, holders: &Holders, most: usize) -> serde_json::Value {
    let list: Vec<_> = holders
        .holders
        .iter()
        .take(most)
        .map(|holder| {
            let frames = recording.names.stacks.get(holder.stack.0 as usize);
            let frames = frames.into_iter().flatten();
            let stack: Vec<String> = frames
                .filter_map(|id| recording.names.frames.get(id.0 as usize))
                .map(|frame| format!("{}:{} {}", frame.file, frame.line, frame.function))
                .collect();
            json!({
                "label": holder.label,
                "bytes": holder.requested_bytes,
                "block_bytes": holder.block_bytes,
                "count": holder.count,
                "older_count": holder.older_count,
                "stack": stack,
            })
        })
        .collect();
    json!({
        "schema": "ghostgpu.snapshot.top/1",
        "events_before": holders.moment.0,
        "bytes": holders.requested_bytes,
        "block_bytes": holders.block_bytes,
        "count": holders.count,
        "holders": list,
    })
}

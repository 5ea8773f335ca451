//! `ghostgpu snapshot show`: a snapshot on one screen.

use std::path::{Path, PathBuf};

use ghostgpu_allocator::{Release, Settings};
use ghostgpu_answers::in_json;
use ghostgpu_answers::snapshot::{AtFailure, Failed, Shown};
use ghostgpu_report::write_html;
use ghostgpu_snapshot::{EventKind, Snapshot};
use ghostgpu_whatif::{History, Known};

use super::opened::ledger;
use super::what_helps;
use crate::commands::AnswerOptions;
use crate::exports;
use crate::output::Output;
use crate::progress;
use crate::snapshot_file;
use crate::terminal;

/// Show a snapshot on one screen: state, peak, holders, fragmentation, what helps
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ghostgpu snapshot show oom.pickle
  ghostgpu snapshot show oom.pickle --report oom.html
  ghostgpu snapshot show oom.pickle.zst --device 1 --top 20")]
pub(super) struct Arguments {
    /// A snapshot, optionally compressed (.gz, .zst)
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Number of holders to list
    #[arg(long, value_name = "N", default_value_t = 8)]
    top: usize,

    /// The device [default: the one that ran out of memory, or has the most]
    #[arg(long, value_name = "N")]
    device: Option<usize>,

    /// Also write the report page to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Replay the history to find out what helps, even if it is long
    #[arg(long)]
    advise: bool,

    #[command(flatten)]
    answer: AnswerOptions,
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let output = arguments.answer.prepare()?;
    let page = arguments
        .report
        .as_deref()
        .map(Output::prepare)
        .transpose()?;
    let mut snapshot = snapshot_file::open(&arguments.file)?;
    let wanted = arguments.device.or_else(|| most_interesting(&snapshot));
    let device = snapshot_file::device_with_memory(&snapshot, wanted)?;
    let trace = snapshot.traces.iter().find(|trace| trace.device == device);
    let events = trace.map_or(0, |trace| trace.events.len());
    // The replay comes first, because making the recording consumes the snapshot's events.
    let history = match events <= what_helps::QUICK_EVENTS || arguments.advise {
        true => progress::during("replaying the history", || {
            History::of(&snapshot, device, Known::default()).ok()
        }),
        false => None,
    };
    let recording = snapshot_file::recording_of(&mut snapshot, &arguments.file);
    let (_, ledger) = ledger(&recording, Some(device))?;
    let (settings, release) = match &history {
        Some(history) => (history.settings.clone(), history.release),
        None => (Settings::default(), Release::REFERENCE),
    };
    let at_failure = Failed::last_of(ledger.card())
        .map(|failed| AtFailure::of(&ledger, failed, &settings, release));
    let bound = at_failure.as_ref().map(|at_failure| at_failure.bound);
    let shown = Shown {
        file: arguments.file.display().to_string(),
        snapshot: &snapshot,
        device,
        ledger: &ledger,
        top: arguments.top,
        settings: &settings,
        at_failure,
        what_helps: history.map(|history| {
            progress::during("replaying the history under other settings", || {
                what_helps::of(&history, bound)
            })
        }),
    };
    output.answer(|style| shown.text(style), || in_json(&shown.json()))?;
    if let Some(page) = page {
        exports::write(page, |out| Ok(write_html(&recording, out)?))?;
        if let Some(path) = arguments
            .report
            .as_deref()
            .filter(|path| *path != Path::new("-"))
        {
            terminal::note(format_args!("wrote the page to {}", path.display()));
        }
    }
    Ok(0)
}

/// The device whose request failed, or that has most memory.
fn most_interesting(snapshot: &Snapshot) -> Option<usize> {
    let devices = snapshot.active_devices();
    let has_failed = |device: &usize| {
        let mut traces = snapshot.traces.iter();
        let trace = traces.find(|trace| trace.device == *device);
        trace.is_some_and(|trace| trace.events.kinds().contains(&EventKind::Oom))
    };
    let reserved = |device: &usize| -> u64 {
        let segments = snapshot.segments_of(*device);
        segments.fold(0, |sum, segment| sum.saturating_add(segment.total_bytes))
    };
    let failed = devices.iter().copied().find(has_failed);
    // The first of equals.
    failed.or_else(|| devices.into_iter().rev().max_by_key(reserved))
}

//! `ghostgpu snapshot show`: a snapshot on one screen.

use std::path::{Path, PathBuf};

use ghostgpu_allocator::{Release, Settings};
use ghostgpu_ledger::{By, CardLedger, Level};
use ghostgpu_report::write_html;
use ghostgpu_trace::{BlockState, EventKind, Format, Snapshot};
use ghostgpu_whatif::{History, Known};

use super::fragmentation::{AtFailure, Failed, of_failure, of_state};
use super::opened::ledger;
use super::{top, what_helps};
use crate::output::{Output, print_all};
use crate::snapshot_file;
use crate::terminal::{self, Detail};
use ghostgpu_text::{Sheet, grouped, human};

/// Show a snapshot on one screen: state, peak, holders, fragmentation, what helps
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ghostgpu snapshot show oom.pickle
  ghostgpu snapshot show oom.pickle --report oom.html
  ghostgpu snapshot show oom.pickle.zst --device 1 --top 20")]
pub(super) struct Arguments {
    /// A snapshot, also compressed (.gz, .zst)
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// How many holders to list
    #[arg(long, value_name = "N", default_value_t = 8)]
    top: usize,

    /// The device [default: the one that ran out of memory, or has most]
    #[arg(long, value_name = "N")]
    device: Option<usize>,

    /// Also write a page for any browser with all of it, and more
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Replay the history to find out what helps, however long it is
    #[arg(long)]
    advise: bool,
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
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
    // The replay needs the snapshot's own events, which the recording takes.
    let history = match events <= what_helps::QUICK_EVENTS || arguments.advise {
        true => History::of(&snapshot, device, Known::default()).ok(),
        false => None,
    };
    let recording = snapshot_file::recording_of(&mut snapshot, &arguments.file);
    let (_, ledger) = ledger(&recording, Some(device))?;
    let shown = Shown {
        snapshot: &snapshot,
        device,
        ledger: &ledger,
        history,
    };
    print_all(&render(&shown, arguments))?;
    if let Some(page) = page {
        page.write_with(|out| Ok(write_html(&recording, out)?))?;
    }
    Ok(0)
}

/// What one screen is about.
struct Shown<'a> {
    /// Without its events.
    snapshot: &'a Snapshot,
    device: usize,
    ledger: &'a CardLedger<'a>,
    history: Option<History>,
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
    // Of equal ones the first.
    failed.or_else(|| devices.into_iter().rev().max_by_key(reserved))
}

fn render(shown: &Shown, arguments: &Arguments) -> String {
    let Shown {
        snapshot,
        device,
        ledger,
        history,
    } = shown;
    let mut sheet = terminal::sheet();
    let failed = Failed::last_of(ledger.card());
    headline(&mut sheet, snapshot, ledger, &arguments.file);
    state(&mut sheet, snapshot, *device);
    peak(&mut sheet, snapshot, ledger);
    failure(&mut sheet, ledger, failed.as_ref());
    let holders = ledger.held_by(ledger.peak().moment, By::Line);
    sheet.table("held by", &top::table(&holders, arguments.top));

    let (settings, release) = match history {
        Some(history) => (history.settings.clone(), history.release),
        None => (Settings::default(), Release::REFERENCE),
    };
    let at_failure = failed.map(|failed| AtFailure::of(ledger, failed, &settings, release));
    let words = match &at_failure {
        Some(at_failure) => of_failure(ledger, at_failure, &settings),
        None => {
            let segments = ledger.segments_at(ledger.end().moment);
            of_state(ledger, &segments, &settings)
        }
    };
    sheet.list("fragmentation", &words);
    if let Some(history) = history {
        let bound = at_failure.map(|at_failure| at_failure.bound);
        sheet.list("what helps", &what_helps::sentences(history, bound));
    } else if ledger.end().moment.0 > 0 {
        let file = arguments.file.display();
        sheet.paragraph(
            "what helps",
            &format!(
                "not tried, as the history is long: --advise does, and `ghostgpu replay {file} \
                 --search` tries everything"
            ),
        );
    }
    let notes: Vec<String> = snapshot.warnings.iter().map(ToString::to_string).collect();
    sheet.list("notes", &notes);
    sheet.render()
}

fn headline(sheet: &mut Sheet, snapshot: &Snapshot, ledger: &CardLedger, file: &Path) {
    let cards = &ledger.recording().cards;
    let events: usize = cards.iter().map(|card| card.events.len()).sum();
    let mut text = format!("{}: ", file.display());
    text.push_str(&match (snapshot.format, events) {
        (Format::SegmentsOnly, _) => "the segments alone, without a history".to_owned(),
        (_, 0) => "a state, without a history".to_owned(),
        (_, events) => format!("{} events", grouped(events as u64)),
    });
    if cards.len() > 1 {
        let (count, shown) = (cards.len(), ledger.card().index);
        text.push_str(&format!(", {count} devices; this is device {shown}"));
    }
    let settings = snapshot.settings.text.as_deref().unwrap_or_default();
    if !settings.is_empty() {
        text.push_str(&format!(", {settings}"));
    }
    sheet.paragraph("snapshot", &text);
}

fn state(sheet: &mut Sheet, snapshot: &Snapshot, device: usize) {
    let mut reserved = 0u64;
    let (mut allocated, mut waiting, mut cached) = (0u64, 0u64, 0u64);
    let mut segments = 0u64;
    for segment in snapshot.segments_of(device) {
        segments += 1;
        reserved = reserved.saturating_add(segment.total_bytes);
        for block in &segment.blocks {
            let sum = match block.state {
                BlockState::Allocated => &mut allocated,
                BlockState::PendingFree => &mut waiting,
                BlockState::Inactive => &mut cached,
            };
            *sum = sum.saturating_add(block.bytes);
        }
    }
    let pending = match waiting {
        0 => String::new(),
        bytes => format!(", {} freed but still used by another stream", human(bytes)),
    };
    sheet.paragraph(
        "at the end",
        &format!(
            "reserved {} in {} segments: allocated {}, cached {}{pending}",
            human(reserved),
            grouped(segments),
            human(allocated),
            human(cached)
        ),
    );
}

fn peak(sheet: &mut Sheet, snapshot: &Snapshot, ledger: &CardLedger) {
    let (peak, reserved, end) = (ledger.peak(), ledger.peak_reserved(), ledger.end());
    if end.moment.0 == 0 {
        return;
    }
    let place = |level: &Level| {
        let event = format!("event {}", grouped(level.moment.0.saturating_sub(1) as u64));
        let time_us = |level: &Level| ledger.time_us(level.moment);
        let before = time_us(&end).saturating_sub(time_us(level));
        match ledger.card().began_us {
            0 => event,
            _ => format!("{event}, {:.3} s before the end", before as f64 / 1e6),
        }
    };
    let exact = |bytes: u64| match terminal::detail() {
        Detail::Everything => format!("  {:>15} bytes", grouped(bytes)),
        _ => String::new(),
    };
    let mut lines = vec![
        format!(
            "live       {:>10}{}  ({})",
            human(peak.requested_bytes),
            exact(peak.requested_bytes),
            place(&peak)
        ),
        format!(
            "reserved   {:>10}{}  ({})",
            human(reserved.reserved_bytes),
            exact(reserved.reserved_bytes),
            place(&reserved)
        ),
    ];
    let lost = snapshot
        .warnings
        .iter()
        .any(|warning| matches!(warning, ghostgpu_trace::Warning::RingOverflowed { .. }));
    if lost {
        lines.push("of what was recorded; older events are lost".to_owned());
    }
    sheet.section("peak", lines);
}

fn failure(sheet: &mut Sheet, ledger: &CardLedger, failed: Option<&Failed>) {
    let Some(failed) = failed else { return };
    let last = ledger.end().moment.0.saturating_sub(1);
    let when = match last - failed.event {
        0 => "the last event".to_owned(),
        later => format!("{} events before the end", grouped(later as u64)),
    };
    sheet.section(
        "out of memory",
        [format!(
            "a request for {} failed at event {} ({when})",
            human(failed.bytes),
            grouped(failed.event as u64)
        )],
    );
}

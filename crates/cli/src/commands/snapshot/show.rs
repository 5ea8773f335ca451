//! `ghostgpu snapshot show`: a snapshot on one screen.

use std::path::{Path, PathBuf};

use ghostgpu_allocator::{Release, Settings};
use ghostgpu_ledger::{By, Ledger, Level};
use ghostgpu_trace::{BlockState, Format, Segment, Snapshot};
use ghostgpu_whatif::{History, Known};

use super::fragmentation::{AtFailure, Failed, of_failure, of_state};
use super::{top, what_helps};
use crate::output::print_all;
use crate::snapshot_file;
use crate::terminal::{self, Detail};
use ghostgpu_text::{Sheet, grouped, human};

/// Show a snapshot on one screen: state, peak, holders, fragmentation, what helps
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ghostgpu snapshot show oom.pickle
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

    /// Replay the history to find out what helps, however long it is
    #[arg(long)]
    advise: bool,
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let snapshot = snapshot_file::open(&arguments.file)?;
    let device = match arguments.device {
        Some(_) => snapshot_file::device_with_memory(&snapshot, arguments.device)?,
        None => most_interesting(&snapshot)
            .map_or_else(|| snapshot_file::device_with_memory(&snapshot, None), Ok)?,
    };
    print_all(&render(&snapshot, device, arguments))?;
    Ok(0)
}

/// The device whose request failed last, or that has most memory.
fn most_interesting(snapshot: &Snapshot) -> Option<usize> {
    let devices = snapshot.active_devices();
    let failed = devices
        .iter()
        .copied()
        .find(|&device| Failed::last_of(snapshot, device).is_some());
    let reserved = |device: &usize| -> u64 {
        let segments = snapshot.segments_of(*device);
        segments.fold(0, |sum, segment| sum.saturating_add(segment.total_bytes))
    };
    // Of equal ones the first.
    failed.or_else(|| devices.into_iter().rev().max_by_key(reserved))
}

fn render(snapshot: &Snapshot, device: usize, arguments: &Arguments) -> String {
    let mut sheet = terminal::sheet();
    let ledger = Ledger::new(snapshot, device);
    let failed = Failed::last_of(snapshot, device);
    headline(&mut sheet, snapshot, device, &arguments.file);
    state(&mut sheet, snapshot, device);
    peak(&mut sheet, snapshot, &ledger);
    failure(&mut sheet, &ledger, failed.as_ref());
    let holders = ledger.holders(ledger.peak().moment, By::Line);
    sheet.table("held by", &top::table(&holders, arguments.top));

    let is_quick = ledger.end().moment.0 <= what_helps::QUICK_EVENTS;
    let history = (is_quick || arguments.advise)
        .then(|| History::of(snapshot, device, Known::default()).ok())
        .flatten();
    let (settings, release) = match &history {
        Some(history) => (history.settings.clone(), history.release),
        None => (Settings::default(), Release::REFERENCE),
    };
    let at_failure = failed.map(|failed| AtFailure::of(&ledger, failed, &settings, release));
    let words = match &at_failure {
        Some(at_failure) => of_failure(snapshot, at_failure, &settings),
        None => {
            let segments: Vec<Segment> = snapshot.segments_of(device).cloned().collect();
            of_state(snapshot, &segments, &settings)
        }
    };
    sheet.list("fragmentation", &words);
    if let Some(history) = &history {
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

fn headline(sheet: &mut Sheet, snapshot: &Snapshot, device: usize, file: &Path) {
    let events: usize = snapshot.traces.iter().map(|trace| trace.events.len()).sum();
    let devices = snapshot.active_devices();
    let mut text = format!("{}: ", file.display());
    text.push_str(&match (snapshot.format, events) {
        (Format::SegmentsOnly, _) => "the segments alone, without a history".to_owned(),
        (_, 0) => "a state, without a history".to_owned(),
        (_, events) => format!("{} events", grouped(events as u64)),
    });
    if devices.len() > 1 {
        text.push_str(&format!(
            ", {} devices; this is device {device}",
            devices.len()
        ));
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

fn peak(sheet: &mut Sheet, snapshot: &Snapshot, ledger: &Ledger) {
    let (peak, reserved, end) = (ledger.peak(), ledger.peak_reserved(), ledger.end());
    if end.moment.0 == 0 {
        return;
    }
    let place = |level: &Level| {
        let event = format!("event {}", grouped(level.moment.0.saturating_sub(1) as u64));
        match (end.time_us - level.time_us, level.time_us) {
            (_, 0) => event,
            (before, _) => format!("{event}, {:.3} s before the end", before as f64 / 1e6),
        }
    };
    let exact = |bytes: u64| match terminal::detail() {
        Detail::Everything => format!("  {:>15} bytes", grouped(bytes)),
        _ => String::new(),
    };
    let mut lines = vec![
        format!(
            "live       {:>10}{}  ({})",
            human(peak.live_bytes),
            exact(peak.live_bytes),
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

fn failure(sheet: &mut Sheet, ledger: &Ledger, failed: Option<&Failed>) {
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

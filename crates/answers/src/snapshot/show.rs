//! A snapshot on one screen.

use ghostgpu_allocator::Settings;
use ghostgpu_ledger::{By, CardLedger, Holders, Level};
use ghostgpu_snapshot::{BlockState, Format, Snapshot, Warning};
use ghostgpu_text::{Sheet, counted, grouped, human};
use serde_json::{Value, json};

use super::fragmentation::{AtFailure, Failed, of_failure, of_state};
use super::top;
use super::what_helps::WhatHelps;
use crate::style::{Detail, Style};

/// Adding a field keeps the version; `docs/snapshot-json.md` describes them.
const SCHEMA: &str = "ghostgpu.snapshot.show/1";

/// What the screen shows.
#[derive(Debug)]
pub struct Shown<'a> {
    /// The snapshot's path, as the user typed it.
    pub file: String,
    /// Without its events.
    pub snapshot: &'a Snapshot,
    pub device: usize,
    pub ledger: &'a CardLedger<'a>,
    /// How many holders are listed.
    pub top: usize,
    pub settings: &'a Settings,
    pub at_failure: Option<AtFailure>,
    /// `None` if the history was not replayed.
    pub what_helps: Option<WhatHelps>,
}

impl Shown<'_> {
    pub fn text(&self, style: Style) -> String {
        let Self {
            snapshot, ledger, ..
        } = self;
        let mut sheet = style.sheet();
        if style.detail == Detail::Quiet {
            self.verdict(&mut sheet);
            return sheet.render();
        }
        headline(&mut sheet, snapshot, ledger, &self.file);
        sheet.paragraph("at the end", &State::of(snapshot, self.device).in_words());
        peak(&mut sheet, snapshot, ledger, style.detail);
        if let Some(at_failure) = &self.at_failure {
            failure(&mut sheet, ledger, &at_failure.failed);
        }
        sheet.table("held by", &top::table(&self.holders(), self.top, style));
        let in_full = style.detail == Detail::Everything;
        sheet.list("fragmentation", &self.fragmentation(in_full));
        if let Some(what_helps) = &self.what_helps {
            sheet.list("what helps", &what_helps.sentences());
        } else if ledger.end().moment.0 > 0 {
            let file = &self.file;
            sheet.paragraph(
                "what helps",
                &format!(
                    "not replayed, because the history is long: --advise replays the usual settings, and \
                     `ghostgpu replay {file} --search` all of them"
                ),
            );
        }
        sheet.list("notes", &self.warnings());
        sheet.render()
    }

    pub fn json(&self) -> Value {
        let Self {
            snapshot, ledger, ..
        } = self;
        let level = |level: Level| {
            (ledger.end().moment.0 > 0).then(|| {
                json!({
                    "event": level.moment.event(),
                    "bytes": level.requested_bytes,
                    "reserved_bytes": level.reserved_bytes,
                })
            })
        };
        let failed = self.at_failure.as_ref().map(|it| it.failed);
        let holders = self.holders();
        json!({
            "schema": SCHEMA,
            "file": self.file,
            "device": self.device,
            "devices": snapshot.active_devices(),
            "events": ledger.card().events.len(),
            "settings": snapshot.settings.text,
            "at_end": State::of(snapshot, self.device).json(),
            "at_peak": level(ledger.peak()),
            "at_reserved_peak": level(ledger.peak_reserved()),
            "out_of_memory": failed.map(|failed| json!({
                "event": failed.event,
                "bytes": failed.bytes,
                "driver_free_bytes": failed.driver_free_bytes,
            })),
            "holders": top::holders_json(ledger.recording(), &holders, self.top),
            "fragmentation": self.fragmentation(true),
            "what_helps": self.what_helps.as_ref().map(WhatHelps::sentences),
            "warnings": self.warnings(),
        })
    }

    /// Who held the memory at the peak.
    fn holders(&self) -> Holders {
        let ledger = self.ledger;
        ledger.held_by(ledger.peak().moment, By::Line)
    }

    /// Why cached memory did not help, or what keeps it.
    fn fragmentation(&self, in_full: bool) -> Vec<String> {
        let ledger = self.ledger;
        match &self.at_failure {
            Some(at_failure) => of_failure(ledger, at_failure, self.settings, in_full),
            None => {
                let segments = ledger.segments_at(ledger.end().moment);
                of_state(ledger, &segments, self.settings)
            }
        }
    }

    /// What the file lacks.
    fn warnings(&self) -> Vec<String> {
        let warnings = self.snapshot.warnings.iter();
        warnings.map(ToString::to_string).collect()
    }

    /// The line of `--quiet`: what failed, or the peak.
    fn verdict(&self, sheet: &mut Sheet) {
        if let Some(at_failure) = &self.at_failure {
            return failure(sheet, self.ledger, &at_failure.failed);
        }
        sheet.section(
            "peak",
            [format!(
                "{} live, {} reserved",
                human(self.ledger.peak().requested_bytes),
                human(self.ledger.peak_reserved().reserved_bytes)
            )],
        );
    }
}

fn headline(sheet: &mut Sheet, snapshot: &Snapshot, ledger: &CardLedger, file: &str) {
    let cards = &ledger.recording().cards;
    let events: usize = cards.iter().map(|card| card.events.len()).sum();
    let mut text = format!("{file}: ");
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

/// The memory of a device as the file has it. A recording does not know which blocks wait for another stream if they were
/// freed before its first event.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    segments: u64,
    reserved_bytes: u64,
    allocated_bytes: u64,
    /// Freed, but still used by another stream.
    pending_bytes: u64,
    cached_bytes: u64,
}

impl State {
    fn of(snapshot: &Snapshot, device: usize) -> Self {
        let mut state = Self::default();
        for segment in snapshot.segments_of(device) {
            state.segments += 1;
            state.reserved_bytes = state.reserved_bytes.saturating_add(segment.total_bytes);
            for block in &segment.blocks {
                let sum = match block.state {
                    BlockState::Allocated => &mut state.allocated_bytes,
                    BlockState::PendingFree => &mut state.pending_bytes,
                    BlockState::Inactive => &mut state.cached_bytes,
                };
                *sum = sum.saturating_add(block.bytes);
            }
        }
        state
    }

    fn in_words(self) -> String {
        let pending = match self.pending_bytes {
            0 => String::new(),
            bytes => format!(", {} freed but still used by another stream", human(bytes)),
        };
        format!(
            "reserved {} in {}: allocated {}, cached {}{pending}",
            human(self.reserved_bytes),
            counted(self.segments, "segment", "segments"),
            human(self.allocated_bytes),
            human(self.cached_bytes)
        )
    }

    fn json(self) -> Value {
        json!({
            "segments": self.segments,
            "reserved_bytes": self.reserved_bytes,
            "allocated_bytes": self.allocated_bytes,
            "pending_bytes": self.pending_bytes,
            "cached_bytes": self.cached_bytes,
        })
    }
}

fn peak(sheet: &mut Sheet, snapshot: &Snapshot, ledger: &CardLedger, detail: Detail) {
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
    let exact = |bytes: u64| match detail {
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
        .any(|warning| matches!(warning, Warning::RingOverflowed { .. }));
    if lost {
        lines.push("of what was recorded; older events are lost".to_owned());
    }
    sheet.section("peak", lines);
}

fn failure(sheet: &mut Sheet, ledger: &CardLedger, failed: &Failed) {
    let last = ledger.end().moment.0.saturating_sub(1);
    let when = match last - failed.event {
        0 => "the last event".to_owned(),
        later => format!(
            "{} before the end",
            counted(later as u64, "event", "events")
        ),
    };
    sheet.paragraph(
        "out of memory",
        &format!(
            "a request for {} failed at event {} ({when})",
            human(failed.bytes),
            grouped(failed.event as u64)
        ),
    );
}

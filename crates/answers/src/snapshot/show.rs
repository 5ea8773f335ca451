//! A snapshot on one screen.

use ghostgpu_allocator::Settings;
use ghostgpu_ledger::{By, CardLedger, Level};
use ghostgpu_snapshot::{BlockState, Format, Snapshot, Warning};
use ghostgpu_text::{Sheet, grouped, human};

use super::fragmentation::{AtFailure, Failed, of_failure, of_state};
use super::top;
use super::what_helps::WhatHelps;
use crate::style::{Detail, Style};

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
        state(&mut sheet, snapshot, self.device);
        peak(&mut sheet, snapshot, ledger, style.detail);
        if let Some(at_failure) = &self.at_failure {
            failure(&mut sheet, ledger, &at_failure.failed);
        }
        let holders = ledger.held_by(ledger.peak().moment, By::Line);
        sheet.table("held by", &top::table(&holders, self.top));
        let words = match &self.at_failure {
            Some(at_failure) => of_failure(ledger, at_failure, self.settings),
            None => {
                let segments = ledger.segments_at(ledger.end().moment);
                of_state(ledger, &segments, self.settings)
            }
        };
        sheet.list("fragmentation", &words);
        if let Some(what_helps) = &self.what_helps {
            sheet.list("what helps", &what_helps.sentences());
        } else if ledger.end().moment.0 > 0 {
            let file = &self.file;
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

//! The parts of a card's memory at its peak, which add up to all of it.

use ghostgpu_ledger::Moment;
use ghostgpu_ledger::{Accounts, CardLedger, Part};
use ghostgpu_recording::{Source, Stage};
use ghostgpu_text::{Sheet, Table, grouped, human, wrap};

/// Parts smaller than one part in this many of the total share a line.
const SMALL_PART: u64 = 200;

pub(super) fn add(sheet: &mut Sheet, ledger: &CardLedger) {
    let accounts = ledger.accounts(ledger.peak().moment);
    let total = accounts.on_card_bytes();
    let (large, small): (Vec<_>, Vec<_>) = accounts
        .parts()
        .filter(|(_, bytes)| *bytes > 0)
        .partition(|(_, bytes)| *bytes >= total / SMALL_PART);
    let mut table = Table::new(&[&when(ledger, accounts.moment), ">", ">bytes", ">"]);
    for (part, bytes) in &large {
        table.push(row(part.title(), *bytes, total));
    }
    let small_bytes = small.iter().map(|(_, bytes)| bytes).sum();
    if !small.is_empty() {
        table.push(row("smaller parts (below)", small_bytes, total));
    }
    let all = match ledger.recording().about.source {
        Source::Rehearsal => "total on the card",
        Source::Snapshot => "all of it, reserved by PyTorch",
    };
    table.push(row(all, total, total));
    let mut lines: Vec<String> = table.render().lines().map(str::to_owned).collect();
    if !small.is_empty() {
        lines.extend(wrap(&in_words(&small), sheet.text_width()));
    }
    lines.extend(later_reserve(ledger, &accounts));
    sheet.section("at the peak", lines);
}

fn row(title: &str, bytes: u64, total: u64) -> Vec<String> {
    vec![
        title.to_owned(),
        human(bytes),
        grouped(bytes),
        percent(bytes, total),
    ]
}

/// `41.3 %`.
pub(crate) fn percent(bytes: u64, total: u64) -> String {
    match total {
        0 => String::new(),
        total => format!("{:.1} %", bytes as f64 * 100.0 / total as f64),
    }
}

fn in_words(parts: &[(Part, u64)]) -> String {
    let words: Vec<String> = parts
        .iter()
        .map(|(part, bytes)| format!("{} {}", part.title(), human(*bytes)))
        .collect();
    format!("smaller: {}", words.join(", "))
}

/// The stage and step of a moment.
pub(crate) fn when(ledger: &CardLedger, moment: Moment) -> String {
    let event = moment.0.checked_sub(1);
    let phase = event.and_then(|event| ledger.card().phase_of(event as u32));
    match phase {
        // A snapshot has events, but no stages.
        None => match event {
            Some(event) => format!("after event {}", grouped(event as u64)),
            None => "before the recording".to_owned(),
        },
        Some(phase) => match phase.stage {
            Stage::Moving => "while moving the model".to_owned(),
            stage => format!("in step {}, {}", u64::from(phase.step) + 1, stage.title()),
        },
    }
}

/// A sentence if the allocator reserved more at another time.
fn later_reserve(ledger: &CardLedger, accounts: &Accounts) -> Option<String> {
    let most = ledger.peak_reserved();
    (most.reserved_bytes > accounts.reserved_bytes).then(|| {
        format!(
            "most was reserved {}: {} more",
            when(ledger, most.moment),
            human(most.reserved_bytes - accounts.reserved_bytes)
        )
    })
}

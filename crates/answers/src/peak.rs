//! The peak on one screen: its figures, its largest parts, the line that holds most, what grows.

use ghostgpu_ledger::Moment;
use ghostgpu_ledger::{Accounts, CardLedger, Growth, Place, Places};
use ghostgpu_text::{Sheet, Table, grouped, human, shortened};

use crate::breakdown::{percent, place, short_title, when};
use crate::style::Style;

/// How many parts are listed; the others share one row.
pub const MOST_PARTS: usize = 5;

/// `1.50 GiB allocated, 1.62 GiB reserved, 2.10 GiB on card`.
pub fn figures(allocated: Option<u64>, reserved: Option<u64>, on_card: u64) -> String {
    let known = |bytes: Option<u64>| bytes.map_or_else(|| "unknown".to_owned(), human);
    format!(
        "{} allocated, {} reserved, {} on card",
        known(allocated),
        known(reserved),
        human(on_card)
    )
}

/// Adds when the peak was, and its parts, the largest first. `circumstance` says what was special about the run.
pub fn add_parts(sheet: &mut Sheet, ledger: &CardLedger, circumstance: &str) {
    add_largest_parts(sheet, ledger, circumstance, MOST_PARTS);
}

/// The same with at most `most` parts; the others share one row.
pub fn add_largest_parts(sheet: &mut Sheet, ledger: &CardLedger, circumstance: &str, most: usize) {
    let moment = ledger.peak().moment;
    let accounts = ledger.accounts(moment);
    if moment == Moment(0) || accounts.on_card_bytes() == 0 {
        return;
    }
    let mut lines = vec![format!("{}{circumstance}:", when(ledger, moment))];
    let table = parts(&accounts, most).render();
    lines.extend(table.lines().skip(1).map(|row| format!("  {row}")));
    sheet.section("", lines);
}

fn parts(accounts: &Accounts, most: usize) -> Table {
    let total = accounts.on_card_bytes();
    let mut parts: Vec<_> = accounts.parts().filter(|(_, bytes)| *bytes > 0).collect();
    // The stable sort keeps equal parts in their order.
    parts.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let mut table = Table::new(&["", ">", ">"]);
    let mut add = |title: &str, bytes: u64| {
        table.push(vec![title.to_owned(), human(bytes), percent(bytes, total)]);
    };
    // If only one part is left, its own row is more useful than a row for "others".
    let shown = match parts.len() {
        count if count == most + 1 => count,
        _ => most,
    };
    for (part, bytes) in parts.iter().take(shown) {
        add(part.title(), *bytes);
    }
    if let rest @ [_, ..] = parts.get(shown..).unwrap_or_default() {
        let bytes = rest.iter().map(|(_, bytes)| bytes).sum();
        add(&format!("{} smaller parts", rest.len()), bytes);
    }
    table
}

/// The line whose allocations hold most at the peak.
pub fn add_largest_line(sheet: &mut Sheet, ledger: &CardLedger, style: Style) {
    let sums = ledger.by_place(ledger.peak().moment);
    // Only lines of Python code are places that the user can go to.
    let largest = sums.iter().find(|sum| matches!(sum.place, Place::Line(_)));
    let Some(largest) = largest else { return };
    let places = Places::of(ledger.recording(), ledger.card());
    let total: u64 = sums.iter().map(|sum| sum.held.requested_bytes()).sum();
    let bytes = largest.held.requested_bytes();
    let mostly = largest.held.requested.largest();
    let mostly = mostly.map_or("", |(category, _)| short_title(category));
    let held = format!(
        "{} ({}), mostly {mostly}",
        human(bytes),
        percent(bytes, total)
    );
    let place = place(&places, &largest.place, style);
    let width = sheet.text_width();
    let lines = match place.chars().count() + 2 + held.chars().count() <= width {
        true => vec![format!("{place}: {held}")],
        false => vec![shortened(&place, width, 0), held],
    };
    sheet.section("largest line", lines);
}

/// Adds what grows with every step, and when the card is full.
pub fn add_growth(sheet: &mut Sheet, ledger: &CardLedger, growth: &Growth, style: Style) {
    let Some(first) = growth.sources.first() else {
        return;
    };
    let places = Places::of(ledger.recording(), ledger.card());
    let width = sheet.text_width();
    let bytes = human(first.bytes_per_step);
    let place = place(&places, &first.place, style);
    // The variable that keeps memory says more than the line that allocated it.
    let forms = match first.kept_in.as_str() {
        "" => vec![format!("{bytes} per step from {place}")],
        keeper => vec![
            format!("{bytes} per step from {place}, kept in {keeper}"),
            format!("{bytes} per step, kept in {keeper}"),
        ],
    };
    let fits = |form: &&String| form.chars().count() <= width;
    let source = match forms.iter().find(fits).or(forms.last()) {
        Some(form) => shortened(form, width, width / 3),
        None => bytes,
    };
    let others = match growth.sources.len() - 1 {
        0 => String::new(),
        1 => "1 more line grows; ".to_owned(),
        others => format!("{others} more lines grow; "),
    };
    let full = until_full(growth.steps_until_full);
    sheet.section("grows", [source, format!("{others}{full}")]);
}

/// When growth fills the card.
pub fn until_full(steps: Option<u64>) -> String {
    match steps {
        Some(0) => "the card is full within the next step".to_owned(),
        Some(1) => "the card is full after 1 more step".to_owned(),
        Some(steps) => format!("the card is full after {} more steps", grouped(steps)),
        None => "when the card is full is unknown: so is its memory".to_owned(),
    }
}

/// Whether growth fills the card within the lifetime of a training.
pub fn matters(growth: &Growth) -> bool {
    const LONG_TRAINING: u64 = 1_000_000;
    let steps = growth.steps_until_full.unwrap_or_default();
    !growth.sources.is_empty() && steps <= LONG_TRAINING
}

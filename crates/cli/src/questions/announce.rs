//! Lines beside the answer, on standard error.

use crate::terminal::note;
use ghostgpu_rehearse::Prepared;
use ghostgpu_text::human;

/// Says on which card what is done, so that a rehearsal never passes for the real thing.
pub fn announce(prepared: &Prepared, doing: &str, promise: &str) {
    let card = prepared.card();
    let name = match prepared.card_count() {
        1 => format!("a virtual {} ({})", card.name, human(card.total_bytes)),
        count => format!(
            "{count} virtual cards {} ({} each)",
            card.name,
            human(card.total_bytes)
        ),
    };
    note(format_args!("{doing} on {name}: {promise}"));
    for remark in &prepared.remarks {
        note(format_args!("note: {remark}"));
    }
}

/// The end of what a script printed, for the reader of a failure.
pub fn show_last_lines(lines: &[String]) {
    for line in lines {
        eprintln!("    {line}");
    }
}

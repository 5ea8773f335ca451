//! Lines on standard error, in addition to the answer.

use crate::terminal::note;
use ghostgpu_rehearse::Prepared;
use ghostgpu_text::human;

/// Says what is done on which card, so that a rehearsal is never mistaken for a real run.
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

/// Shows the end of a script's output after a failure.
pub fn show_last_lines(lines: &[String]) {
    for line in lines {
        eprintln!("    {line}");
    }
}

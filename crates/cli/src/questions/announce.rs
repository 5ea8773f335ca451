//! Lines beside the answer, on standard error.

use ghostgpu_rehearse::Prepared;
use ghostgpu_text::human;

/// The line that keeps a rehearsal from passing for the real thing: says on which card what is done, and what else is to be known before.
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
    eprintln!("ghostgpu: {doing} on {name}: {promise}");
    for remark in &prepared.remarks {
        eprintln!("ghostgpu: note: {remark}");
    }
}

/// The end of what a script printed, for the reader of a failure.
pub fn show_last_lines(lines: &[String]) {
    for line in lines {
        eprintln!("    {line}");
    }
}

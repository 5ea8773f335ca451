//! Requests that failed.

use ghostgpu_ledger::CardLedger;
use ghostgpu_text::{Sheet, grouped, human};

/// Adds the last of them; nothing if none failed.
pub(super) fn add(sheet: &mut Sheet, ledger: &CardLedger) {
    let card = ledger.card();
    let Some((event, last)) = card.failed_requests().next_back() else {
        return;
    };
    let mut text = format!(
        "a request for {} failed at event {}",
        human(last.requested_bytes),
        grouped(event.into())
    );
    if let Some(bytes) = last.driver_free_bytes {
        text.push_str(&format!(", when the driver had {}", human(bytes)));
    }
    if card.failures.len() > 1 {
        text.push_str(&format!(
            "; {} requests failed in all",
            grouped(card.failures.len() as u64)
        ));
    }
    sheet.paragraph("out of memory", &text);
}

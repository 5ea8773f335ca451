//! The rule of thumb compared with the exact figures.

use ghostgpu_ledger::RuleOfThumb;
use ghostgpu_text::{Sheet, human};

const MOST_DIFFERENCES: usize = 3;

pub(super) fn add(sheet: &mut Sheet, rule: &RuleOfThumb) {
    let mut largest: Vec<_> = rule.differences.iter().collect();
    largest.sort_by_key(|one| std::cmp::Reverse(one.bytes.unsigned_abs()));
    let reasons: Vec<String> = largest
        .iter()
        .take(MOST_DIFFERENCES)
        .map(|one| {
            let sign = if one.bytes < 0 { "-" } else { "+" };
            format!("{sign}{} ({})", human(one.bytes.unsigned_abs()), one.reason)
        })
        .collect();
    let text = format!(
        "parameters × {}, as for {}, + outputs × 2 = {}, and {} are on the card. Mostly: {}.",
        rule.optimizer.copies(),
        rule.optimizer.title(),
        human(rule.rule_bytes),
        human(rule.exact_bytes),
        reasons.join(", "),
    );
    sheet.paragraph("rule of thumb", &text);
}

//! What changed between two snapshots.

use std::collections::BTreeMap;

use ghostgpu_ledger::{By, CardLedger, Moment};
use ghostgpu_text::{Table, grouped, human, signed_change};
use serde_json::{Value, json};

use super::top::{fitting, others};
use crate::style::{Detail, Style};

/// Adding a field keeps the version; `docs/snapshot-json.md` describes them.
const SCHEMA: &str = "ghostgpu.snapshot.diff/1";

/// Two sides, at the same moment of both.
#[derive(Debug)]
pub struct Difference {
    pub before: Side,
    pub after: Side,
    /// The moment in words.
    pub when: String,
    /// How many holders are listed.
    pub most: usize,
}

/// One side of the comparison.
#[derive(Debug)]
pub struct Side {
    live_bytes: u64,
    reserved_bytes: u64,
    peak_live_bytes: u64,
    peak_reserved_bytes: u64,
    /// Bytes and allocations of every holder.
    holders: BTreeMap<String, (u64, u64)>,
    warnings: Vec<String>,
}

impl Side {
    /// The holders at a moment of a snapshot; `warnings` say what its file lacks.
    pub fn of(ledger: &CardLedger, moment: Moment, by: By, warnings: Vec<String>) -> Self {
        let found = ledger.held_by(moment, by);
        let mut holders: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for holder in &found.holders {
            let sum = holders.entry(holder.label.clone()).or_default();
            sum.0 = sum.0.saturating_add(holder.requested_bytes);
            sum.1 += holder.count;
        }
        Self {
            live_bytes: found.requested_bytes,
            reserved_bytes: ledger.reserved_bytes(moment),
            peak_live_bytes: ledger.peak().requested_bytes,
            peak_reserved_bytes: ledger.peak_reserved().reserved_bytes,
            holders,
            warnings,
        }
    }

    fn json(&self) -> Value {
        json!({
            "bytes": self.live_bytes,
            "reserved_bytes": self.reserved_bytes,
            "peak_bytes": self.peak_live_bytes,
            "peak_reserved_bytes": self.peak_reserved_bytes,
            "warnings": self.warnings,
        })
    }
}

impl Difference {
    pub fn text(&self, style: Style) -> String {
        let (before, after) = (&self.before, &self.after);
        let mut sheet = style.sheet();
        if style.detail == Detail::Quiet {
            let (old, new) = (before.live_bytes, after.live_bytes);
            let change = signed_change(old, new);
            let text = format!("{} → {} ({change}), {}", human(old), human(new), self.when);
            sheet.section("live", [text]);
            return sheet.render();
        }
        let mut figures = Table::new(&["", ">before", ">after", ">change"]);
        for (name, old, new) in [
            ("live", before.live_bytes, after.live_bytes),
            ("reserved", before.reserved_bytes, after.reserved_bytes),
            ("peak live", before.peak_live_bytes, after.peak_live_bytes),
            (
                "peak reserved",
                before.peak_reserved_bytes,
                after.peak_reserved_bytes,
            ),
        ] {
            figures.push(vec![
                name.to_owned(),
                human(old),
                human(new),
                signed_change(old, new),
            ]);
        }
        sheet.table(&self.when, &figures);
        let (differing, same) = changes(before, after);
        sheet.section(
            "holders",
            [format!(
                "{} changed, {} did not",
                grouped(differing.len() as u64),
                grouped(same as u64)
            )],
        );
        if !differing.is_empty() {
            sheet.table("changed most", &table(&differing, self.most, style));
        }
        for (name, side) in [("before", before), ("after", after)] {
            sheet.list(name, &side.warnings);
        }
        sheet.render()
    }

    pub fn json(&self) -> Value {
        let (differing, same) = changes(&self.before, &self.after);
        let holders: Vec<Value> = differing.iter().take(self.most).map(Change::json).collect();
        json!({
            "schema": SCHEMA,
            "before": self.before.json(),
            "after": self.after.json(),
            "changed_count": differing.len(),
            "unchanged_count": same,
            "holders": holders,
        })
    }
}

struct Change<'a> {
    label: &'a str,
    old: (u64, u64),
    new: (u64, u64),
}

impl Change<'_> {
    fn json(&self) -> Value {
        json!({
            "label": self.label,
            "before_bytes": self.old.0,
            "after_bytes": self.new.0,
            "before_count": self.old.1,
            "after_count": self.new.1,
        })
    }
}

/// The holders of either side that changed, the largest change of bytes first, and how many did not.
fn changes<'a>(before: &'a Side, after: &'a Side) -> (Vec<Change<'a>>, usize) {
    let mut labels: Vec<&String> = before.holders.keys().chain(after.holders.keys()).collect();
    labels.sort();
    labels.dedup();
    let of = |side: &'a Side, label: &String| side.holders.get(label).copied().unwrap_or_default();
    let mut changes: Vec<Change> = labels
        .into_iter()
        .map(|label| Change {
            label,
            old: of(before, label),
            new: of(after, label),
        })
        .collect();
    let all = changes.len();
    changes.retain(|change| change.old != change.new);
    let same = all - changes.len();
    // The stable sort keeps equal changes in the order of their names.
    changes.sort_by_key(|change| std::cmp::Reverse(change.old.0.abs_diff(change.new.0)));
    (changes, same)
}

/// Width of the figures of a change, with the gaps around them.
const FIGURES_WIDTH: usize = 38;
/// The same of the numbers of blocks, for which a narrow terminal has no room beside the holder.
const BLOCKS_WIDTH: usize = 12;

fn table(changes: &[Change], most: usize, style: Style) -> Table {
    let has_blocks = style.detail == Detail::Everything;
    let mut titles = vec![">change", ">before", ">after", "holder"];
    if has_blocks {
        titles.insert(3, ">blocks");
    }
    let width = FIGURES_WIDTH + if has_blocks { BLOCKS_WIDTH } else { 0 };
    let mut table = Table::new(&titles);
    for change in changes.iter().take(most) {
        let mut row = vec![
            signed_change(change.old.0, change.new.0),
            human(change.old.0),
            human(change.new.0),
            fitting(change.label, width, style),
        ];
        if has_blocks {
            let blocks = format!("{} → {}", grouped(change.old.1), grouped(change.new.1));
            row.insert(3, blocks);
        }
        table.push(row);
    }
    if changes.len() > most {
        let mut row = vec![String::new(); titles.len() - 1];
        row.push(others(changes.len() - most));
        table.push(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(holders: &[(&str, u64)]) -> Side {
        Side {
            live_bytes: 0,
            reserved_bytes: 0,
            peak_live_bytes: 0,
            peak_reserved_bytes: 0,
            holders: holders
                .iter()
                .map(|&(label, bytes)| (label.to_owned(), (bytes, 1)))
                .collect(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn holders_of_either_side_are_compared_and_the_largest_change_comes_first() {
        let before = with(&[("kept", 5), ("grew", 10), ("gone", 30)]);
        let after = with(&[("kept", 5), ("grew", 100), ("new", 40)]);
        let (changes, same) = changes(&before, &after);
        let found: Vec<(&str, u64, u64)> = changes
            .iter()
            .map(|change| (change.label, change.old.0, change.new.0))
            .collect();
        assert_eq!(found, [("grew", 10, 100), ("new", 0, 40), ("gone", 30, 0)]);
        assert_eq!(same, 1);
    }
}

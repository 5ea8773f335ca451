//! `ghostgpu snapshot diff`: what changed between two snapshots.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ghostgpu_ledger::By;
use ghostgpu_recording::Recording;

use super::moment::At;
use super::opened::{ledger, open};
use super::top::{ByWhat, others};
use crate::output::print_all;
use ghostgpu_text::{Table, grouped, human, signed_change};

/// Say what changed from one snapshot to another
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Holders are told apart by where they allocated, not by address, so the snapshots may be from
different runs. All that differ are counted; those that changed most are listed.

Examples:
  ghostgpu snapshot diff before.pickle after.pickle
  ghostgpu snapshot diff step10.pickle step100.pickle --by stack --at peak")]
pub(super) struct Arguments {
    /// The snapshot before
    #[arg(value_name = "BEFORE")]
    before: PathBuf,

    /// The snapshot after
    #[arg(value_name = "AFTER")]
    after: PathBuf,

    /// The moment of both: `peak`, `end` or the number of an event
    #[arg(long, value_name = "WHEN", default_value = "end")]
    at: At,

    /// What to add memory up by
    #[arg(long, value_name = "WHAT", default_value = "line")]
    by: ByWhat,

    /// How many holders to list
    #[arg(long, value_name = "N", default_value_t = 15)]
    top: usize,

    /// The device [default: the only one]
    #[arg(long, value_name = "N")]
    device: Option<usize>,
}

/// One side of the comparison.
struct Side {
    live_bytes: u64,
    reserved_bytes: u64,
    peak_live_bytes: u64,
    peak_reserved_bytes: u64,
    /// Bytes and allocations of every holder.
    holders: BTreeMap<String, (u64, u64)>,
    warnings: Vec<String>,
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let read = |path: &PathBuf| -> anyhow::Result<Side> {
        let (recording, warnings) = open(path)?;
        Ok(side(&recording, warnings, arguments)?)
    };
    let (before, after) = (read(&arguments.before)?, read(&arguments.after)?);
    let mut sheet = crate::terminal::sheet();
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
    sheet.table(&arguments.at.words(), &figures);
    let changes = changes(&before, &after);
    let same = changes
        .iter()
        .filter(|change| change.old == change.new)
        .count();
    sheet.section(
        "holders",
        [format!(
            "{} changed, {} did not",
            grouped((changes.len() - same) as u64),
            grouped(same as u64)
        )],
    );
    let differing: Vec<&Change> = changes
        .iter()
        .filter(|change| change.old != change.new)
        .collect();
    if !differing.is_empty() {
        sheet.table("changed most", &table(&differing, arguments.top));
    }
    for (name, side) in [("before", &before), ("after", &after)] {
        sheet.list(name, &side.warnings);
    }
    print_all(&sheet.render())?;
    Ok(0)
}

fn side(
    recording: &Recording,
    warnings: Vec<String>,
    arguments: &Arguments,
) -> Result<Side, crate::failure::Failure> {
    let (_, ledger) = ledger(recording, arguments.device)?;
    let moment = arguments.at.of(&ledger)?;
    let found = ledger.held_by(moment, By::from(arguments.by));
    let mut holders: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for holder in &found.holders {
        let sum = holders.entry(holder.label.clone()).or_default();
        sum.0 = sum.0.saturating_add(holder.requested_bytes);
        sum.1 += holder.count;
    }
    Ok(Side {
        live_bytes: found.requested_bytes,
        reserved_bytes: ledger.reserved_bytes(moment),
        peak_live_bytes: ledger.peak().requested_bytes,
        peak_reserved_bytes: ledger.peak_reserved().reserved_bytes,
        holders,
        warnings,
    })
}

struct Change<'a> {
    label: &'a str,
    old: (u64, u64),
    new: (u64, u64),
}

/// Every holder of either side, the largest change of bytes first.
fn changes<'a>(before: &'a Side, after: &'a Side) -> Vec<Change<'a>> {
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
    // Stable, so that equal changes stay in the order of their names.
    changes.sort_by_key(|change| std::cmp::Reverse(change.old.0.abs_diff(change.new.0)));
    changes
}

fn table(changes: &[&Change], most: usize) -> Table {
    let mut table = Table::new(&[">change", ">before", ">after", ">blocks", "holder"]);
    for change in changes.iter().take(most) {
        table.push(vec![
            signed_change(change.old.0, change.new.0),
            human(change.old.0),
            human(change.new.0),
            format!("{} → {}", grouped(change.old.1), grouped(change.new.1)),
            change.label.to_owned(),
        ]);
    }
    if changes.len() > most {
        table.push(vec![
            String::new(),
            String::new(),
            String::new(),
            String::new(),
            others(changes.len() - most),
        ]);
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
        let found: Vec<(&str, u64, u64)> = changes(&before, &after)
            .iter()
            .map(|change| (change.label, change.old.0, change.new.0))
            .collect::<Vec<_>>();
        assert_eq!(
            found,
            [
                ("grew", 10, 100),
                ("new", 0, 40),
                ("gone", 30, 0),
                ("kept", 5, 5)
            ]
        );
    }
}

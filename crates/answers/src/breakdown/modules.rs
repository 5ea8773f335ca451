//! The modules that hold most at the peak, compared with the rule of thumb.
//!
//! Modules that differ only in a number (the layers of a transformer) share one row. Starting with the outermost modules,
//! the largest row is replaced by the modules inside it as long as there is room; all small modules share one row.

use std::collections::{BTreeMap, BTreeSet};

use ghostgpu_ledger::{CardLedger, RuleOfThumb};

use super::made_of::percent;
use ghostgpu_text::{Sheet, Table, human, shortened};

const MOST_ROWS: usize = 7;

/// A module is small if it has less than one part in this many of all bytes.
const SMALL_MODULE: u64 = 100;

/// Width of the columns next to a module's name in the table.
const BESIDE_NAME: usize = 37;

/// Modules of one pattern, with everything inside them.
#[derive(Clone, Debug, Default)]
struct Pattern {
    exact_bytes: u64,
    rule_bytes: u64,
    /// What belongs to these modules themselves, without those inside.
    own: (u64, u64),
    /// The paths of these modules.
    paths: BTreeSet<String>,
}

#[derive(Clone, Debug)]
struct Row {
    label: String,
    pattern: String,
    exact_bytes: u64,
    rule_bytes: u64,
    /// Whether it may be replaced by what is inside.
    is_open: bool,
}

pub(super) fn add(sheet: &mut Sheet, ledger: &CardLedger, rule: Option<&RuleOfThumb>) {
    let peak = ledger.peak().moment;
    let held: Vec<(String, u64, u64)> = match rule {
        Some(rule) => rule
            .layers
            .iter()
            .map(|layer| {
                (
                    layer.path.clone(),
                    layer.exact.requested_bytes(),
                    layer.rule_bytes,
                )
            })
            .collect(),
        None => ledger
            .by_module(peak)
            .nodes
            .into_iter()
            .map(|node| (node.path, node.own.requested_bytes(), 0))
            .collect(),
    };
    // One row would only repeat the total.
    if held.iter().filter(|(path, ..)| !path.is_empty()).count() == 0 {
        return;
    }
    let total = held.iter().map(|(_, bytes, _)| bytes).sum();
    let rows = rows(&patterns(&held), total);
    let mut headings = vec!["module", ">at the peak", ">"];
    if rule.is_some() {
        headings.push(">rule of thumb");
    }
    let mut table = Table::new(&headings);
    let width = sheet.text_width().saturating_sub(BESIDE_NAME);
    for row in rows {
        let mut cells = vec![
            shortened(&row.label, width, 0),
            human(row.exact_bytes),
            percent(row.exact_bytes, total),
        ];
        if rule.is_some() {
            cells.push(human(row.rule_bytes));
        }
        table.push(cells);
    }
    sheet.table("where", &table);
}

/// Sums by pattern, and by every prefix of it.
fn patterns(held: &[(String, u64, u64)]) -> BTreeMap<String, Pattern> {
    let mut all: BTreeMap<String, Pattern> = BTreeMap::new();
    for (path, exact_bytes, rule_bytes) in held {
        let (mut pattern, mut real) = (String::new(), String::new());
        // Deeper parts of a path are not distinguished.
        let parts: Vec<&str> = path.splitn(16, '.').collect();
        for (at, part) in parts.iter().enumerate() {
            for (text, part) in [
                (&mut pattern, if at > 0 { starred(part) } else { part }),
                (&mut real, *part),
            ] {
                if at > 0 {
                    text.push('.');
                }
                text.push_str(part);
            }
            let sum = all.entry(pattern.clone()).or_default();
            sum.exact_bytes = sum.exact_bytes.saturating_add(*exact_bytes);
            sum.rule_bytes = sum.rule_bytes.saturating_add(*rule_bytes);
            sum.paths.insert(real.clone());
            if at + 1 == parts.len() {
                sum.own.0 = sum.own.0.saturating_add(*exact_bytes);
                sum.own.1 = sum.own.1.saturating_add(*rule_bytes);
            }
        }
    }
    all
}

fn starred(part: &str) -> &str {
    let is_number = !part.is_empty() && part.bytes().all(|one| one.is_ascii_digit());
    if is_number { "*" } else { part }
}

/// The rows to show, the largest first; the small modules come last.
fn rows(patterns: &BTreeMap<String, Pattern>, total: u64) -> Vec<Row> {
    let is_small = |row: &Row| row.exact_bytes < total / SMALL_MODULE;
    let mut rows = below(patterns, "");
    if let Some(outside) = patterns.get("") {
        rows.push(Row {
            label: "outside any module".to_owned(),
            ..row("", outside, false)
        });
    }
    let mut small: Vec<Row> = rows.extract_if(.., |row| is_small(row)).collect();
    loop {
        sort(&mut rows);
        let Some(at) = rows.iter().position(|row| row.is_open) else {
            break;
        };
        let mut inside = below(patterns, &rows[at].pattern);
        let own = patterns
            .get(&rows[at].pattern)
            .map_or((0, 0), |one| one.own);
        if inside.is_empty() {
            rows[at].is_open = false;
            continue;
        }
        inside.push(Row {
            exact_bytes: own.0,
            rule_bytes: own.1,
            label: format!("{} itself", rows[at].label),
            is_open: false,
            ..rows[at].clone()
        });
        let small_inside: Vec<Row> = inside.extract_if(.., |row| is_small(row)).collect();
        if inside.is_empty() || rows.len() - 1 + inside.len() > MOST_ROWS {
            rows[at].is_open = false;
            continue;
        }
        rows.swap_remove(at);
        rows.extend(inside);
        small.extend(small_inside);
    }
    small.extend(rows.split_off(MOST_ROWS.min(rows.len())));
    small.retain(|row| row.exact_bytes > 0);
    if !small.is_empty() {
        let sum = |bytes: fn(&Row) -> u64| small.iter().map(bytes).sum();
        rows.push(Row {
            label: "all others".to_owned(),
            pattern: String::new(),
            exact_bytes: sum(|row| row.exact_bytes),
            rule_bytes: sum(|row| row.rule_bytes),
            is_open: false,
        });
    }
    rows
}

fn sort(rows: &mut [Row]) {
    rows.sort_by(|one, other| {
        let by_bytes = other.exact_bytes.cmp(&one.exact_bytes);
        by_bytes.then_with(|| one.label.cmp(&other.label))
    });
}

/// The patterns directly inside `parent`; the outermost ones if it is empty.
fn below(patterns: &BTreeMap<String, Pattern>, parent: &str) -> Vec<Row> {
    let beginning = match parent {
        "" => String::new(),
        parent => format!("{parent}."),
    };
    let all = patterns.range(beginning.clone()..);
    all.take_while(|(pattern, _)| pattern.starts_with(&beginning))
        .filter(|(pattern, _)| {
            let rest = &pattern[beginning.len()..];
            !rest.is_empty() && !rest.contains('.')
        })
        .map(|(pattern, sum)| row(pattern, sum, true))
        .collect()
}

fn row(pattern: &str, sum: &Pattern, is_open: bool) -> Row {
    let label = match sum.paths.first() {
        // A single path is shown with its number.
        Some(only) if sum.paths.len() == 1 => only.clone(),
        _ => format!("{pattern} ×{}", sum.paths.len()),
    };
    Row {
        label,
        pattern: pattern.to_owned(),
        exact_bytes: sum.exact_bytes,
        rule_bytes: sum.rule_bytes,
        is_open,
    }
}

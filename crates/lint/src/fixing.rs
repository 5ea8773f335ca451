//! Applies fixes to a file, and nothing else.
//!
//! Fixes that do not touch are applied together, then the file is checked again, until none is left.
//! A fix that would leave a syntax error, or that does not remove its finding, is not applied.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{Diagnostic, Origin, examine};
use crate::finding::{Edit, Fix, Safety};
use crate::settings::Settings;
use crate::source::{Source, Unreadable};

/// Fixes can lead to further fixes; more passes than this mean a cycle.
const MOST_ROUNDS: usize = 20;

/// A file after its fixes.
pub struct Fixed {
    pub source: Source,
    /// The remaining diagnostics.
    pub diagnostics: Vec<Diagnostic>,
    /// How many findings were fixed.
    pub count: usize,
    /// Rules whose fixes were not applied, and why.
    pub left_out: Vec<String>,
}

/// Which fixes to apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    Safe,
    All,
}

impl Wanted {
    pub fn takes(self, fix: &Fix) -> bool {
        self == Self::All || fix.safety == Safety::Safe
    }
}

/// Applies the selected fixes. A file with syntax errors is left unchanged.
pub fn fix(source: Source, settings: &Settings, wanted: Wanted) -> Result<Fixed, Unreadable> {
    let diagnostics = examine(&source, settings);
    let mut state = Fixed {
        source,
        diagnostics,
        count: 0,
        left_out: Vec::new(),
    };
    let has_errors = |remarks: &[Diagnostic]| remarks.iter().any(|it| it.origin == Origin::Syntax);
    if has_errors(&state.diagnostics) {
        return Ok(state);
    }
    let mut banned: BTreeSet<&'static str> = BTreeSet::new();
    for _ in 0..MOST_ROUNDS {
        let chosen = choose(&state.source, &state.diagnostics, wanted, &banned);
        if chosen.is_empty() {
            break;
        }
        let next = apply(&state.source, &chosen.edits)?;
        let remarks = examine(&next, settings);
        let faults = match has_errors(&remarks) {
            true => breaking(&state.source, &chosen, settings)?,
            false => ineffective(&state, &remarks, &chosen, settings)?,
        };
        if faults.is_empty() {
            state.count += chosen.findings.len();
            state.source = next;
            state.diagnostics = remarks;
            continue;
        }
        for (rule, reason) in faults {
            if banned.insert(rule) {
                state.left_out.push(format!("the fix for {rule} {reason}"));
            }
        }
    }
    Ok(state)
}

/// Applies a single fix to preview it; `None` if that leaves a syntax error.
pub fn fix_alone(source: &Source, fix: &Fix) -> Result<Option<Source>, Unreadable> {
    let edits = own_line_ends(source, fix);
    if !fits(source, &edits) {
        return Ok(None);
    }
    let fixed = apply(source, &edits)?;
    Ok(is_python(&fixed).then_some(fixed))
}

/// Fixes that can be applied together.
#[derive(Default)]
struct Chosen<'a> {
    /// In order, not overlapping.
    edits: Vec<Edit>,
    /// The findings they fix, each with its rule.
    findings: Vec<(&'static str, &'a Fix)>,
}

impl Chosen<'_> {
    fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// The first edit that does not begin before `edit`.
    fn place(&self, edit: &Edit) -> usize {
        self.edits
            .partition_point(|other| other.range.start < edit.range.start)
    }

    /// Whether an edit does not conflict, or is already made (an import that two fixes need). One that
    /// touches another waits for the next pass.
    fn takes(&self, edit: &Edit) -> bool {
        let at = self.place(edit);
        let before = at.checked_sub(1).and_then(|index| self.edits.get(index));
        let mut neighbours = before.into_iter().chain(self.edits.get(at));
        self.edits.get(at) == Some(edit) || !neighbours.any(|other| touch(edit, other))
    }

    fn add(&mut self, edit: Edit) {
        let at = self.place(&edit);
        if self.edits.get(at) != Some(&edit) {
            self.edits.insert(at, edit);
        }
    }
}

fn choose<'a>(
    source: &Source,
    diagnostics: &'a [Diagnostic],
    wanted: Wanted,
    banned: &BTreeSet<&'static str>,
) -> Chosen<'a> {
    let mut chosen = Chosen::default();
    for remark in diagnostics {
        let rule = remark.origin.name();
        let Some(fix) = remark.fix.as_ref().filter(|fix| wanted.takes(fix)) else {
            continue;
        };
        let edits = own_line_ends(source, fix);
        if banned.contains(rule) || edits.is_empty() || !fits(source, &edits) {
            continue;
        }
        if edits.iter().all(|edit| chosen.takes(edit)) {
            edits.into_iter().for_each(|edit| chosen.add(edit));
            chosen.findings.push((rule, fix));
        }
    }
    chosen
}

/// Whether two edits overlap or touch.
fn touch(first: &Edit, second: &Edit) -> bool {
    first.range.start <= second.range.end && second.range.start <= first.range.end
}

/// Whether the edits of one fix can be applied.
fn fits(source: &Source, edits: &[Edit]) -> bool {
    let in_order = |pair: &[Edit]| pair[0].range.end <= pair[1].range.start;
    edits.iter().all(|edit| source.takes(edit)) && edits.windows(2).all(in_order)
}

/// The fix with the line endings of the file.
fn own_line_ends(source: &Source, fix: &Fix) -> Vec<Edit> {
    let text = source.text();
    let end = match text.find(['\n', '\r']) {
        Some(at) if text[at..].starts_with("\r\n") => "\r\n",
        Some(at) if text[at..].starts_with('\r') => "\r",
        _ => "\n",
    };
    let convert = |edit: &Edit| match end {
        "\n" => edit.clone(),
        _ => Edit::replace(
            edit.range.clone(),
            edit.text.replace("\r\n", "\n").replace('\n', end),
        ),
    };
    fix.edits.iter().map(convert).collect()
}

fn apply(source: &Source, edits: &[Edit]) -> Result<Source, Unreadable> {
    source.reread(&source.with_edits(edits))
}

/// The rules whose fixes alone cause a syntax error; all of them if it takes several.
fn breaking(
    source: &Source,
    chosen: &Chosen<'_>,
    settings: &Settings,
) -> Result<BTreeMap<&'static str, String>, Unreadable> {
    let reason = || "would leave a syntax error".to_owned();
    let mut guilty = BTreeMap::new();
    for (rule, fix) in &chosen.findings {
        let alone = apply(source, &own_line_ends(source, fix))?;
        let errors = examine(&alone, settings);
        if errors.iter().any(|it| it.origin == Origin::Syntax) {
            guilty.insert(*rule, reason());
        }
    }
    if guilty.is_empty() {
        guilty.extend(chosen.findings.iter().map(|(rule, _)| (*rule, reason())));
    }
    Ok(guilty)
}

/// The rules whose findings remain although their fixes were applied.
fn ineffective(
    state: &Fixed,
    after: &[Diagnostic],
    chosen: &Chosen<'_>,
    settings: &Settings,
) -> Result<BTreeMap<&'static str, String>, Unreadable> {
    let count = |remarks: &[Diagnostic], rule: &str| {
        let of_rule = |it: &&Diagnostic| it.origin.name() == rule;
        remarks.iter().filter(of_rule).count()
    };
    let rules: BTreeSet<&'static str> = chosen.findings.iter().map(|(rule, _)| *rule).collect();
    let mut guilty = BTreeMap::new();
    for &rule in &rules {
        let own = chosen.findings.iter().filter(|(other, _)| *other == rule);
        let expected = count(&state.diagnostics, rule).saturating_sub(own.clone().count());
        if count(after, rule) <= expected {
            continue;
        }
        // Another rule's fix may have created this finding: check the fix alone.
        let mut edits: Vec<Edit> = own
            .flat_map(|(_, fix)| own_line_ends(&state.source, fix))
            .collect();
        edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
        edits.dedup();
        let alone = apply(&state.source, &edits)?;
        let again = examine(&alone, settings);
        let written = regions(&edits);
        let is_again = |remark: &Diagnostic| {
            let fix = remark.fix.as_ref().filter(|_| remark.origin.name() == rule);
            let mut edits = fix.iter().flat_map(|fix| &fix.edits);
            edits.any(|edit| written.iter().any(|region| touch(edit, region)))
        };
        if again.iter().any(is_again) {
            guilty.insert(rule, "does not remove its finding".to_owned());
        }
    }
    Ok(guilty)
}

/// Where the inserted texts are after all edits.
fn regions(edits: &[Edit]) -> Vec<Edit> {
    let mut shift = 0isize;
    edits
        .iter()
        .map(|edit| {
            let start = edit.range.start.saturating_add_signed(shift);
            shift += edit.text.len() as isize - edit.range.len() as isize;
            Edit::delete(start..start + edit.text.len())
        })
        .collect()
}

fn is_python(source: &Source) -> bool {
    crate::check(source, |_| false).errors.is_empty()
}

#[cfg(test)]
mod tests;

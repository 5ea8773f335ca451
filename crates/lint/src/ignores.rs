//! Comments that suppress findings.
//!
//! - `# ghostgpu: ignore[rule]` or `# ghostgpu: ignore[rule-a, rule-b]`, at the end of the line of a
//!   finding, at the first or last line of the statement it is in, or alone on the line before;
//! - `# ghostgpu: ignore`: the same for every rule;
//! - `# ghostgpu: ignore-file[rule]`, `# ghostgpu: ignore-file`: anywhere, for the whole file.
//!
//! Text after it may give the reason. A family's name stands for its rules.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::diagnostic::{Diagnostic, Origin};
use crate::finding::{Finding, Severity};
use crate::names;
use crate::rules::Rule;
use crate::settings::Settings;
use crate::source::Source;
use crate::{Checked, all_rules};

/// One such comment.
#[derive(Debug, PartialEq, Eq)]
struct Ignore {
    /// The comment from `ghostgpu:` to the closing bracket.
    range: Range<usize>,
    is_for_file: bool,
    /// The names, each with its place; `None` for every rule.
    names: Option<Vec<(String, Range<usize>)>>,
}

/// The comments of one file.
pub struct Ignores {
    comments: Vec<Ignore>,
    /// Line of code to the comments (by index) that apply to it.
    by_line: BTreeMap<usize, Vec<usize>>,
    /// The comments (by index) that apply to the whole file.
    for_file: Vec<usize>,
    /// Comments that were not closed.
    broken: Vec<Range<usize>>,
    /// Statements (for a loop, its header) that span several lines, in order.
    long_lines: Vec<Range<usize>>,
}

impl Ignores {
    /// Finds the ignore comments of a file.
    pub fn read(source: &Source, checked: &Checked) -> Self {
        let comments = &checked.comments;
        let mut found = Self {
            comments: Vec::new(),
            by_line: BTreeMap::new(),
            for_file: Vec::new(),
            broken: Vec::new(),
            long_lines: checked.long_lines.clone(),
        };
        if !source.text().contains("ghostgpu:") {
            return found;
        }
        let alone: Vec<usize> = comments
            .iter()
            .filter(|comment| is_alone(source, comment))
            .map(|comment| source.row(comment.start))
            .collect();
        let alone = blocks(&alone);
        for comment in comments {
            let ignore = match parse(source.text(), comment) {
                Parsed::Nothing => continue,
                Parsed::Unclosed(range) => {
                    found.broken.push(range);
                    continue;
                }
                Parsed::Ignore(ignore) => ignore,
            };
            let index = found.comments.len();
            if ignore.is_for_file {
                found.for_file.push(index);
            } else {
                let row = source.row(comment.start);
                let below = line_below(&alone, row);
                found.by_line.entry(below).or_default().push(index);
            }
            found.comments.push(ignore);
        }
        found
    }

    /// The remaining findings, and diagnostics about unused comments.
    pub fn apply(
        &self,
        source: &Source,
        findings: Vec<Finding>,
        settings: &Settings,
    ) -> (Vec<Finding>, Vec<Diagnostic>) {
        if self.comments.is_empty() && self.broken.is_empty() {
            return (findings, Vec::new());
        }
        let mut used: BTreeSet<(usize, &'static str)> = BTreeSet::new();
        let kept = findings
            .into_iter()
            .filter(|finding| {
                let covering: Vec<usize> = self
                    .speaking_of(source, finding.range.start)
                    .filter(|&index| self.comments[index].covers(finding.rule))
                    .collect();
                used.extend(covering.iter().map(|&index| (index, finding.rule.name)));
                covering.is_empty()
            })
            .collect();
        (kept, self.remarks(&used, settings))
    }

    /// The comments (by index) that apply to the code at a byte.
    fn speaking_of(&self, source: &Source, byte: usize) -> impl Iterator<Item = usize> {
        let statement = self.statement_at(byte);
        let cell = source.position(byte).cell;
        let rows: BTreeSet<usize> = [byte, statement.start, statement.end]
            .map(|byte| source.row(byte))
            .into();
        let nearby = rows
            .into_iter()
            .filter_map(|row| self.by_line.get(&row))
            .flatten()
            .copied()
            .filter(move |&index| source.position(self.comments[index].range.start).cell == cell);
        nearby.chain(self.for_file.iter().copied())
    }

    /// The lines of the statement, from first to last.
    fn statement_at(&self, byte: usize) -> Range<usize> {
        let after = self.long_lines.partition_point(|line| line.start <= byte);
        match after.checked_sub(1).map(|index| &self.long_lines[index]) {
            Some(line) if byte <= line.end => line.clone(),
            _ => byte..byte,
        }
    }

    fn remarks(
        &self,
        used: &BTreeSet<(usize, &'static str)>,
        settings: &Settings,
    ) -> Vec<Diagnostic> {
        let mut remarks: Vec<Diagnostic> = self
            .broken
            .iter()
            .map(|range| {
                let message = "this comment has no effect: its bracket is not closed".to_owned();
                remark(Origin::UnusedIgnore, range, message, "close it with `]`")
            })
            .collect();
        for (index, comment) in self.comments.iter().enumerate() {
            let is_used = |rule: &Rule| used.contains(&(index, rule.name));
            let Some(listed) = &comment.names else {
                let was_used = used.iter().any(|(used, _)| *used == index);
                if !was_used && all_rules().all(|rule| settings.was_asked_as_usual(rule)) {
                    remarks.push(unused(&comment.range, "this comment suppresses no finding"));
                }
                continue;
            };
            if listed.is_empty() {
                remarks.push(unused(&comment.range, "this comment names no rule"));
            }
            for (name, range) in listed {
                let Some(rules) = names::rules_called(name) else {
                    remarks.push(unknown(name, range));
                    continue;
                };
                // A rule that did not run might have found something.
                let were_asked = rules.iter().all(|rule| settings.was_asked_as_usual(rule));
                if were_asked && !rules.iter().any(|rule| is_used(rule)) {
                    let message = format!("`{name}` reports nothing here");
                    remarks.push(unused(range, &message));
                }
            }
        }
        remarks
    }
}

impl Ignore {
    fn covers(&self, rule: &Rule) -> bool {
        let Some(listed) = &self.names else {
            return true;
        };
        let is_meant = |name: &str| names::rules_called(name).is_some_and(|it| it.contains(&rule));
        listed.iter().any(|(name, _)| is_meant(name))
    }
}

fn unused(range: &Range<usize>, message: &str) -> Diagnostic {
    remark(Origin::UnusedIgnore, range, message.to_owned(), "remove it")
}

fn unknown(name: &str, range: &Range<usize>) -> Diagnostic {
    let help = match names::closest(name) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "`ghostgpu lint --rules` lists the rules".to_owned(),
    };
    let message = format!("unknown rule `{name}`");
    remark(Origin::UnknownRule, range, message, &help)
}

fn remark(origin: Origin, range: &Range<usize>, message: String, help: &str) -> Diagnostic {
    Diagnostic {
        origin,
        severity: Severity::Note,
        message,
        help: help.to_owned(),
        range: range.clone(),
        fix: None,
    }
}

/// Blocks of comment-only lines: the first line of each block to its last.
fn blocks(rows: &[usize]) -> BTreeMap<usize, usize> {
    let mut blocks: BTreeMap<usize, usize> = BTreeMap::new();
    for &row in rows {
        match blocks.last_entry() {
            Some(mut block) if *block.get() + 1 == row => *block.get_mut() = row,
            _ => {
                blocks.insert(row, row);
            }
        }
    }
    blocks
}

/// The line itself, or the one below the block of comments that it is in.
fn line_below(blocks: &BTreeMap<usize, usize>, row: usize) -> usize {
    match blocks.range(..=row).next_back() {
        Some((_, &last)) if row <= last => last + 1,
        _ => row,
    }
}

/// Whether only whitespace precedes a comment on its line.
fn is_alone(source: &Source, comment: &Range<usize>) -> bool {
    let line = source.whole_lines(&(comment.start..comment.start));
    source.text()[line.start..comment.start].trim().is_empty()
}

enum Parsed {
    Nothing,
    Unclosed(Range<usize>),
    Ignore(Ignore),
}

/// Reads one comment. It may contain others too: `# noqa: E501  # ghostgpu: ignore`.
fn parse(text: &str, comment: &Range<usize>) -> Parsed {
    const MARK: &str = "ghostgpu:";
    let words = &text[comment.clone()];
    let is_ours = |at: usize| words[..at].trim_end_matches([' ', '\t']).ends_with('#');
    let Some((at, _)) = words.match_indices(MARK).find(|(at, _)| is_ours(*at)) else {
        return Parsed::Nothing;
    };
    let start = comment.start + at;
    let rest = words[at + MARK.len()..].trim_start_matches([' ', '\t']);
    let Some(rest) = rest.strip_prefix("ignore") else {
        return Parsed::Nothing;
    };
    let (is_for_file, rest) = match rest.strip_prefix("-file") {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    // The end of the comment is the end of `rest`: positions are counted back from there.
    let byte_of = |piece: &str| comment.end - piece.len();
    let Some(list) = rest.strip_prefix('[') else {
        let goes_on = |letter: char| letter.is_alphanumeric() || "-_".contains(letter);
        if rest.starts_with(goes_on) {
            return Parsed::Nothing;
        }
        return Parsed::Ignore(Ignore {
            range: start..byte_of(rest),
            is_for_file,
            names: None,
        });
    };
    let Some(length) = list.find(']') else {
        return Parsed::Unclosed(start..comment.end);
    };
    let mut names = Vec::new();
    let mut at = byte_of(list);
    for piece in list[..length].split(',') {
        let name = piece.trim();
        let begin = at + (piece.len() - piece.trim_start().len());
        if !name.is_empty() {
            names.push((name.to_owned(), begin..begin + name.len()));
        }
        at += piece.len() + 1;
    }
    Parsed::Ignore(Ignore {
        range: start..byte_of(&list[length + 1..]),
        is_for_file,
        names: Some(names),
    })
}

#[cfg(test)]
mod tests;

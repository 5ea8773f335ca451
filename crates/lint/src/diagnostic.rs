//! The diagnostics of one file: findings after comments and settings are applied, and syntax errors.

use std::ops::Range;

use crate::finding::{Finding, Fix, Severity};
use crate::ignores::Ignores;
use crate::python::SyntaxError;
use crate::rules::Rule;
use crate::settings::Settings;
use crate::source::Source;
use crate::{Checked, check};

/// The most syntax errors shown per file.
const MOST_ERRORS: usize = 5;

/// A message about one place in a file.
#[derive(Debug, Clone)]
pub struct Diagnostic {
    pub origin: Origin,
    pub severity: Severity,
    pub message: String,
    /// What to do about it; may be empty.
    pub help: String,
    /// Bytes of the source text.
    pub range: Range<usize>,
    pub fix: Option<Fix>,
}

/// Where a diagnostic comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Origin {
    Rule(&'static Rule),
    /// The parser.
    Syntax,
    /// An ignore comment names an unknown rule.
    UnknownRule,
    /// An ignore comment suppresses nothing.
    UnusedIgnore,
}

impl Origin {
    /// The name of the rule, or one like it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rule(rule) => rule.name,
            Self::Syntax => "syntax-error",
            Self::UnknownRule => "unknown-rule",
            Self::UnusedIgnore => "unused-ignore",
        }
    }

    /// One line that describes such diagnostics.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Rule(rule) => rule.summary,
            Self::Syntax => "a syntax error",
            Self::UnknownRule => "an ignore comment names an unknown rule",
            Self::UnusedIgnore => "an ignore comment suppresses nothing",
        }
    }
}

/// Everything about one file.
#[derive(Default)]
pub struct FileReport {
    /// As the user gave it, or as found below a given folder.
    pub path: String,
    /// Kept if there is something to show.
    pub source: Option<Source>,
    /// In order of position.
    pub diagnostics: Vec<Diagnostic>,
    /// Why the file could not be checked, or not be fixed.
    pub problem: Option<String>,
    /// How many fixes were applied, or would be.
    pub fixed: usize,
}

impl FileReport {
    /// Whether the file, or part of it, could not be read.
    pub fn is_broken(&self) -> bool {
        let is_syntax = |remark: &Diagnostic| remark.origin == Origin::Syntax;
        self.problem.is_some() || self.diagnostics.iter().any(is_syntax)
    }
}

/// Checks a file and applies its comments and the settings for it.
pub fn examine(source: &Source, settings: &Settings) -> Vec<Diagnostic> {
    let checked = check(source, |rule| settings.selects(rule));
    let ignores = Ignores::read(source, &checked);
    let Checked {
        findings, errors, ..
    } = checked;
    let mut diagnostics = syntax_errors(&errors);
    let (kept, mut remarks) = ignores.apply(source, findings, settings);
    if !errors.is_empty() {
        // A rule may find in the whole file what it misses in half of it.
        remarks.retain(|remark| remark.origin != Origin::UnusedIgnore);
    }
    diagnostics.append(&mut remarks);
    diagnostics.extend(kept.into_iter().map(|finding| of_rule(finding, settings)));
    if !errors.is_empty() {
        // A file with syntax errors is not fixed.
        diagnostics.iter_mut().for_each(|remark| remark.fix = None);
    }
    diagnostics.sort_by(|a, b| place(a).cmp(&place(b)));
    diagnostics
}

/// The first few: one mistake causes many, and a file in another language has nothing else.
fn syntax_errors(errors: &[SyntaxError]) -> Vec<Diagnostic> {
    let remark = |error: &SyntaxError| Diagnostic {
        origin: Origin::Syntax,
        severity: Severity::Error,
        message: error.message.clone(),
        help: String::new(),
        range: error.range.clone(),
        fix: None,
    };
    let mut shown: Vec<Diagnostic> = errors.iter().take(MOST_ERRORS).map(remark).collect();
    if let (Some(last), more @ 1..) = (
        shown.last_mut(),
        errors.len() - errors.len().min(MOST_ERRORS),
    ) {
        last.help = format!("{more} more syntax errors in this file");
    }
    shown
}

fn of_rule(finding: Finding, settings: &Settings) -> Diagnostic {
    Diagnostic {
        origin: Origin::Rule(finding.rule),
        severity: settings.severity(finding.rule, finding.severity),
        message: finding.message,
        help: finding.help,
        range: finding.range,
        fix: finding.fix,
    }
}

fn place(remark: &Diagnostic) -> (usize, usize, &'static str) {
    (remark.range.start, remark.range.end, remark.origin.name())
}

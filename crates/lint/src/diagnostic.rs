//! What is said about one file: the rules' findings after comments and settings had their say, and
//! what could not be read.

use std::ops::Range;

use crate::finding::{Finding, Fix, Severity};
use crate::ignores::Ignores;
use crate::python::SyntaxError;
use crate::rules::Rule;
use crate::settings::Settings;
use crate::source::Source;
use crate::{Checked, check};

/// More syntax errors of one file are not shown.
const MOST_ERRORS: usize = 5;

/// One remark about one place.
#[derive(Debug, Clone)]
pub struct Diagnostic {
    pub origin: Origin,
    pub severity: Severity,
    pub message: String,
    /// What to do about it; empty where nothing is to be said.
    pub help: String,
    /// Bytes of the source text.
    pub range: Range<usize>,
    pub fix: Option<Fix>,
}

/// Who made a remark.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Origin {
    Rule(&'static Rule),
    /// The parser.
    Syntax,
    /// An ignoring comment names a rule that there is not.
    UnknownRule,
    /// An ignoring comment ignores nothing.
    UnusedIgnore,
}

impl Origin {
    /// The name of the rule, or one in the same style.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rule(rule) => rule.name,
            Self::Syntax => "syntax-error",
            Self::UnknownRule => "unknown-rule",
            Self::UnusedIgnore => "unused-ignore",
        }
    }

    /// What such remarks are about, in one line.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Rule(rule) => rule.summary,
            Self::Syntax => "text that is not Python",
            Self::UnknownRule => "a comment ignores a rule that there is not",
            Self::UnusedIgnore => "a comment ignores nothing",
        }
    }
}

/// Everything about one file.
#[derive(Default)]
pub struct FileReport {
    /// As the user named it, or as it was found below a folder that was named.
    pub path: String,
    /// Kept where there is something to show of it.
    pub source: Option<Source>,
    /// In order of position.
    pub diagnostics: Vec<Diagnostic>,
    /// Why the file could not be checked, or not be fixed.
    pub problem: Option<String>,
    /// How many fixes were applied, or would be.
    pub fixed: usize,
}

impl FileReport {
    /// Whether something of the file could not be read.
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
        // What a rule does not see in half a file, it may see in the whole.
        remarks.retain(|remark| remark.origin != Origin::UnusedIgnore);
    }
    diagnostics.append(&mut remarks);
    diagnostics.extend(kept.into_iter().map(|finding| of_rule(finding, settings)));
    if !errors.is_empty() {
        // Nothing is mended in a file that is not Python as a whole.
        diagnostics.iter_mut().for_each(|remark| remark.fix = None);
    }
    diagnostics.sort_by(|a, b| place(a).cmp(&place(b)));
    diagnostics
}

/// The first of them: one mistake brings many, and a file of another kind has nothing else.
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
        last.help = format!("{more} more places of this file are not Python");
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

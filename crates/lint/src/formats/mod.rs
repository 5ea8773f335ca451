//! The output formats: for people, for programs, for code hosts. Returns text; prints nothing.

pub mod github;
pub mod json;
pub mod sarif;
mod snippet;
pub mod text;

use crate::diagnostic::{Diagnostic, FileReport, Origin};
use crate::finding::{Safety, Severity};

/// Totals over all files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Totals {
    pub files: usize,
    pub errors: usize,
    pub warnings: usize,
    pub notes: usize,
    /// Remaining findings that `--fix` would fix.
    pub fixable: usize,
    /// Remaining findings that only `--unsafe-fixes` would fix.
    pub unsafely_fixable: usize,
    pub fixed: usize,
    /// Files that could not be read, parsed or fixed.
    pub broken_files: usize,
}

impl Totals {
    pub fn of(reports: &[FileReport]) -> Self {
        let mut totals = Self {
            files: reports.len(),
            ..Self::default()
        };
        for report in reports {
            totals.fixed += report.fixed;
            totals.broken_files += usize::from(report.is_broken());
            for remark in report.diagnostics.iter().filter(|it| is_finding(it)) {
                match remark.severity {
                    Severity::Error => totals.errors += 1,
                    Severity::Warning => totals.warnings += 1,
                    Severity::Note => totals.notes += 1,
                }
                match remark.fix.as_ref().map(|fix| fix.safety) {
                    Some(Safety::Safe) => totals.fixable += 1,
                    Some(Safety::Unsafe) => totals.unsafely_fixable += 1,
                    None => {}
                }
            }
        }
        totals
    }

    pub fn findings(&self) -> usize {
        self.errors + self.warnings + self.notes
    }
}

/// Whether a diagnostic is a finding; syntax errors are counted per file.
pub fn is_finding(remark: &Diagnostic) -> bool {
    remark.origin != Origin::Syntax
}

#[cfg(test)]
mod tests;

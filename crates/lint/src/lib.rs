//! Finds memory mistakes in PyTorch code before it runs.
//!
//! A file goes through three steps, each one module:
//!
//! 1. [`python`] parses it (ruff's parser);
//! 2. [`facts`] describes what the code does: which name is a model, which tensor still has its graph,
//!    which calls happen in which loop under which conditions, within and across the functions of the
//!    file;
//! 3. [`rules`] query those facts, one rule per file, and report [`Finding`]s with their fixes.
//!
//! Nothing here reads files or prints.

pub mod catalogue;
pub mod config;
pub mod diagnostic;
pub mod diff;
mod encoding;
pub mod facts;
pub mod finding;
pub mod fixing;
pub mod formats;
pub mod ignores;
#[cfg(test)]
mod made_up;
pub mod names;
mod notebook;
pub mod pattern;
pub mod python;
pub mod rules;
pub mod settings;
pub mod source;
mod syntax;

pub use config::{Config, ConfigError};
pub use diagnostic::{Diagnostic, FileReport, examine};
pub use finding::{Edit, Finding, Fix, Safety, Severity};
pub use python::SyntaxError;
pub use rules::{Family, RULES, Rule};
pub use settings::{FailOn, Settings};
pub use source::{Position, Source, Unreadable};

use facts::Facts;
use python::Tree;
use rules::Report;

/// The rules, and in this crate's own tests a few made-up ones.
fn all_rules() -> impl Iterator<Item = &'static Rule> {
    let rules = RULES.iter().copied();
    #[cfg(test)]
    let rules = rules.chain(made_up::RULES.iter().copied());
    rules
}

/// The result of checking one file.
pub struct Checked {
    /// In order of position, then of the rules' names.
    pub findings: Vec<Finding>,
    /// Syntax errors; the findings concern the rest.
    pub errors: Vec<SyntaxError>,
    /// The comments, which can suppress findings.
    pub comments: Vec<std::ops::Range<usize>>,
    /// Statements (for a loop or definition, its header) that span several lines.
    pub long_lines: Vec<std::ops::Range<usize>>,
}

/// Checks a file with the rules that `selected` accepts.
pub fn check(source: &Source, selected: impl Fn(&Rule) -> bool) -> Checked {
    let levels = python::levels(source.text(), source.dialect());
    python::with_stack_for(levels, || check_tree(source, levels, selected))
}

fn check_tree(source: &Source, levels: usize, selected: impl Fn(&Rule) -> bool) -> Checked {
    let tree = Tree::parse_measured(source.text(), source.dialect(), levels);
    let facts = Facts::of(source, &tree);
    let mut findings = Vec::new();
    let is_other = facts.imports.is_for_another_framework();
    for rule in all_rules().filter(|rule| !is_other && selected(rule)) {
        (rule.check)(
            &facts,
            &mut Report {
                rule,
                findings: &mut findings,
            },
        );
    }
    findings.sort_by(|a, b| {
        (a.range.start, a.range.end, a.rule.name).cmp(&(b.range.start, b.range.end, b.rule.name))
    });
    Checked {
        findings,
        errors: tree.errors().to_vec(),
        comments: tree.comments().to_vec(),
        long_lines: tree.long_lines().to_vec(),
    }
}

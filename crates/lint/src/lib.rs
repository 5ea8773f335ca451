//! Finds memory mistakes in PyTorch code before it runs.
//!
//! A file goes through three steps, each one module:
//!
//! 1. [`python`] parses it (ruff's parser);
//! 2. [`facts`] says what the code does: which name is a model, which tensor still hangs on its
//!    graph, which calls happen in which loop under which conditions, within a function and
//!    across the functions of the file;
//! 3. [`rules`] ask those facts, one rule per file, and report [`Finding`]s with their fixes.
//!
//! Nothing here reads files or prints.

pub mod facts;
pub mod finding;
pub mod python;
pub mod rules;
pub mod source;

pub use finding::{Edit, Finding, Fix, Safety, Severity};
pub use python::SyntaxError;
pub use rules::{Family, RULES, Rule};
pub use source::{Position, Source, Unreadable};

use facts::Facts;
use python::Tree;
use rules::Report;

/// What was seen in one file.
pub struct Checked {
    /// In order of position, then of the rules' names.
    pub findings: Vec<Finding>,
    /// What could not be parsed; the findings are about the rest.
    pub errors: Vec<SyntaxError>,
    /// The comments, by which findings can be switched off.
    pub comments: Vec<std::ops::Range<usize>>,
}

/// Checks a file with the rules that `selected` accepts.
pub fn check(source: &Source, selected: impl Fn(&Rule) -> bool) -> Checked {
    let tree = Tree::parse(source.text(), source.dialect());
    let facts = Facts::of(source, &tree);
    let mut findings = Vec::new();
    for rule in RULES.iter().copied().filter(|rule| selected(rule)) {
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
    }
}

//! Reports for programs: one JSON document, described in `docs/lint-json.md`.

use serde::Serialize;

use super::{Totals, is_finding};
use crate::diagnostic::{Diagnostic, FileReport, Origin};
use crate::finding::{Fix, Safety};
use crate::names;
use crate::source::{Position, Source};

/// Raised when a field is removed or changes its meaning.
const SCHEMA: &str = "ghostgpu.lint/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    ghostgpu: &'static str,
    summary: Totals,
    findings: Vec<Finding<'a>>,
    problems: Vec<Problem<'a>>,
}

#[derive(Serialize)]
struct Finding<'a> {
    file: &'a str,
    start: Option<Place>,
    end: Option<Place>,
    rule: &'static str,
    family: Option<String>,
    severity: &'static str,
    message: &'a str,
    help: Option<&'a str>,
    fix: Option<FixDocument<'a>>,
}

/// What could not be read.
#[derive(Serialize)]
struct Problem<'a> {
    file: &'a str,
    start: Option<Place>,
    end: Option<Place>,
    message: &'a str,
}

#[derive(Serialize)]
struct Place {
    cell: Option<usize>,
    line: usize,
    column: usize,
}

#[derive(Serialize)]
struct FixDocument<'a> {
    title: &'a str,
    safety: &'static str,
    edits: Vec<EditDocument<'a>>,
}

#[derive(Serialize)]
struct EditDocument<'a> {
    start: Option<Place>,
    end: Option<Place>,
    text: &'a str,
}

impl From<Position> for Place {
    fn from(position: Position) -> Self {
        Self {
            cell: position.cell,
            line: position.line,
            column: position.column,
        }
    }
}

/// The document, with a line ending.
pub fn render(reports: &[FileReport]) -> String {
    let document = Document {
        schema: SCHEMA,
        ghostgpu: env!("CARGO_PKG_VERSION"),
        summary: Totals::of(reports),
        findings: reports.iter().flat_map(findings).collect(),
        problems: reports.iter().flat_map(problems).collect(),
    };
    serde_json::to_string_pretty(&document).expect("plain values") + "\n"
}

fn findings(report: &FileReport) -> impl Iterator<Item = Finding<'_>> {
    let source = report.source.as_ref();
    report
        .diagnostics
        .iter()
        .filter(|it| is_finding(it))
        .map(move |remark| {
            let (start, end) = ends(source, remark);
            Finding {
                file: &report.path,
                start,
                end,
                rule: remark.origin.name(),
                family: match remark.origin {
                    Origin::Rule(rule) => Some(names::of_family(rule.family)),
                    _ => None,
                },
                severity: remark.severity.as_str(),
                message: &remark.message,
                help: (!remark.help.is_empty()).then_some(remark.help.as_str()),
                fix: remark.fix.as_ref().map(|fix| fix_document(source, fix)),
            }
        })
}

fn problems(report: &FileReport) -> impl Iterator<Item = Problem<'_>> {
    let of_file = report.problem.iter().map(|problem| Problem {
        file: &report.path,
        start: None,
        end: None,
        message: problem,
    });
    let syntax = report.diagnostics.iter().filter(|it| !is_finding(it));
    let syntax = syntax.map(|remark| {
        let (start, end) = ends(report.source.as_ref(), remark);
        Problem {
            file: &report.path,
            start,
            end,
            message: &remark.message,
        }
    });
    of_file.chain(syntax)
}

fn ends(source: Option<&Source>, remark: &Diagnostic) -> (Option<Place>, Option<Place>) {
    let place = |byte| source.map(|source| source.position(byte).into());
    (place(remark.range.start), place(remark.range.end))
}

fn fix_document<'a>(source: Option<&Source>, fix: &'a Fix) -> FixDocument<'a> {
    let place = |byte| source.map(|source| source.position(byte).into());
    FixDocument {
        title: &fix.title,
        safety: match fix.safety {
            Safety::Safe => "safe",
            Safety::Unsafe => "unsafe",
        },
        edits: fix
            .edits
            .iter()
            .map(|edit| EditDocument {
                start: place(edit.range.start),
                end: place(edit.range.end),
                text: &edit.text,
            })
            .collect(),
    }
}

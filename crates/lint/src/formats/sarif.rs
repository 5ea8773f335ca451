//! Reports as SARIF 2.1.0, which code hosts and editors read.

use serde_json::{Value, json};

use super::is_finding;
use crate::all_rules;
use crate::diagnostic::{Diagnostic, FileReport, Origin};
use crate::finding::{Fix, Severity};
use crate::names;
use crate::source::Source;

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The document, with a line ending.
pub fn render(reports: &[FileReport]) -> String {
    let origins: Vec<Origin> = all_rules()
        .map(Origin::Rule)
        .chain([Origin::UnknownRule, Origin::UnusedIgnore])
        .collect();
    let results: Vec<Value> = reports
        .iter()
        .flat_map(|report| {
            report
                .diagnostics
                .iter()
                .map(move |remark| (report, remark))
        })
        .filter(|(_, remark)| is_finding(remark))
        .map(|(report, remark)| result(report, remark, &origins))
        .collect();
    let notifications: Vec<Value> = reports.iter().flat_map(notifications).collect();
    let document = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "ghostgpu lint",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": origins.iter().map(|origin| rule(*origin)).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "originalUriBaseIds": {"SRCROOT": {
                "description": {"text": "the folder in which ghostgpu ran"},
            }},
            "invocations": [{
                "executionSuccessful": notifications.is_empty(),
                "toolExecutionNotifications": notifications,
            }],
            "results": results,
        }],
    });
    serde_json::to_string_pretty(&document).expect("plain values") + "\n"
}

fn rule(origin: Origin) -> Value {
    let mut value = json!({
        "id": origin.name(),
        "shortDescription": {"text": capitalised(origin.summary())},
        "defaultConfiguration": {"level": level(match origin {
            Origin::Rule(rule) => rule.severity,
            Origin::Syntax => Severity::Error,
            Origin::UnknownRule | Origin::UnusedIgnore => Severity::Note,
        })},
    });
    if let Origin::Rule(rule) = origin {
        value["properties"] = json!({"tags": ["gpu-memory", names::of_family(rule.family)]});
        if !rule.docs.is_empty() {
            value["help"] = json!({"text": rule.docs, "markdown": rule.docs});
        }
    }
    value
}

fn result(report: &FileReport, remark: &Diagnostic, origins: &[Origin]) -> Value {
    let name = remark.origin.name();
    let mut text = capitalised(&remark.message);
    if !remark.help.is_empty() {
        text.push_str(&format!(" ({})", remark.help));
    }
    let mut value = json!({
        "ruleId": name,
        "level": level(remark.severity),
        "message": {"text": text},
        "locations": [location(report, Some(remark))],
    });
    if let Some(index) = origins.iter().position(|origin| origin.name() == name) {
        value["ruleIndex"] = json!(index);
    }
    // SARIF describes edits of the file, and a notebook's file is its JSON.
    let is_script = |source: &&Source| !source.is_notebook();
    if let (Some(fix), Some(source)) = (&remark.fix, report.source.as_ref().filter(is_script)) {
        value["fixes"] = json!([fix_value(&report.path, source, fix)]);
    }
    value
}

fn fix_value(path: &str, source: &Source, fix: &Fix) -> Value {
    let replacements: Vec<Value> = fix
        .edits
        .iter()
        .map(|edit| {
            json!({
                "deletedRegion": region(source, &edit.range),
                "insertedContent": {"text": edit.text},
            })
        })
        .collect();
    json!({
        "description": {"text": fix.title},
        "artifactChanges": [{
            "artifactLocation": artifact(path),
            "replacements": replacements,
        }],
    })
}

/// What could not be read.
fn notifications(report: &FileReport) -> Vec<Value> {
    let notification = |message: &str, remark: Option<&Diagnostic>| {
        json!({
            "level": "error",
            "message": {"text": capitalised(message)},
            "locations": [location(report, remark)],
        })
    };
    let of_file = report.problem.iter().map(|it| notification(it, None));
    let syntax = report.diagnostics.iter().filter(|it| !is_finding(it));
    let syntax = syntax.map(|it| notification(&it.message, Some(it)));
    of_file.chain(syntax).collect()
}

fn location(report: &FileReport, remark: Option<&Diagnostic>) -> Value {
    let mut physical = json!({"artifactLocation": artifact(&report.path)});
    let mut value = json!({});
    if let (Some(source), Some(remark)) = (&report.source, remark) {
        physical["region"] = region(source, &remark.range);
        let position = source.position(remark.range.start);
        if let Some(cell) = position.cell {
            value["message"] = json!({"text": format!("cell {cell}, line {}", position.line)});
        }
    }
    value["physicalLocation"] = physical;
    value
}

/// In the file as it is on disk: of a notebook, in its JSON.
fn region(source: &Source, range: &std::ops::Range<usize>) -> Value {
    let (start_line, start_column) = source.place_in_file(range.start);
    let (end_line, end_column) = source.place_in_file(range.end);
    json!({
        "startLine": start_line,
        "startColumn": start_column,
        "endLine": end_line,
        "endColumn": end_column,
    })
}

fn artifact(path: &str) -> Value {
    match path.starts_with('/') {
        true => json!({"uri": format!("file://{}", escaped(path))}),
        false => json!({"uri": escaped(path), "uriBaseId": "SRCROOT"}),
    }
}

/// A path as part of a URI.
fn escaped(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

fn level(severity: Severity) -> &'static str {
    severity.as_str()
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

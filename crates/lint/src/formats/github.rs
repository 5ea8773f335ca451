//! Reports as GitHub workflow commands, which become annotations on a pull request.

use super::snippet::tame;
use crate::diagnostic::{Diagnostic, FileReport};
use crate::finding::Severity;

/// One line per diagnostic and per unreadable file.
pub fn render(reports: &[FileReport]) -> String {
    let mut text = String::new();
    for report in reports {
        for remark in &report.diagnostics {
            text.push_str(&command(report, remark));
            text.push('\n');
        }
        if let Some(problem) = &report.problem {
            let file = property(&report.path);
            let message = data(&tame(problem));
            text.push_str(&format!("::error file={file},title=ghostgpu::{message}\n"));
        }
    }
    text
}

fn command(report: &FileReport, remark: &Diagnostic) -> String {
    let word = match remark.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    };
    let mut properties = format!("file={}", property(&report.path));
    let mut message = tame(&remark.message);
    if let Some(source) = &report.source {
        // Lines of the file as it is in the repository: of a notebook, of its JSON.
        let (line, column) = source.place_in_file(remark.range.start);
        let (end_line, end_column) = source.place_in_file(remark.range.end);
        properties.push_str(&format!(",line={line},endLine={end_line}"));
        // GitHub accepts columns only within a single line.
        if line == end_line {
            properties.push_str(&format!(",col={column},endColumn={end_column}"));
        }
        let position = source.position(remark.range.start);
        if let Some(cell) = position.cell {
            message = format!("cell {cell}, line {}: {message}", position.line);
        }
    }
    if !remark.help.is_empty() {
        message.push_str(&format!("\n{}", tame(&remark.help)));
    }
    let title = property(&format!("ghostgpu: {}", remark.origin.name()));
    format!("::{word} {properties},title={title}::{}", data(&message))
}

/// Text after the second `::`.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// The value of a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

//! Reports for a terminal.

use super::Totals;
use super::snippet::{snippet, tame};
use crate::diagnostic::{Diagnostic, FileReport};
use crate::finding::{Safety, Severity};
use crate::source::Position;

/// All reports, and a summary line.
pub fn render(reports: &[FileReport], has_colour: bool) -> String {
    let paint = Paint { has_colour };
    let mut text = String::new();
    for report in reports {
        for remark in &report.diagnostics {
            text.push_str(&show(report, remark, &paint));
            text.push('\n');
        }
        if let Some(problem) = &report.problem {
            let name = paint.bold(&tame(&report.path));
            let word = paint.severity(Severity::Error, "error");
            text.push_str(&format!("{name}: {word}: {}\n\n", tame(problem)));
        }
    }
    text.push_str(&summary(&Totals::of(reports)));
    text.push('\n');
    text
}

/// `train.py:3:5`, of a notebook `train.ipynb:cell 2:3:5`.
pub fn place(path: &str, position: &Position) -> String {
    let Position { cell, line, column } = position;
    match cell {
        Some(cell) => format!("{path}:cell {cell}:{line}:{column}"),
        None => format!("{path}:{line}:{column}"),
    }
}

fn show(report: &FileReport, remark: &Diagnostic, paint: &Paint) -> String {
    let path = tame(&report.path);
    let word = paint.severity(remark.severity, remark.severity.as_str());
    let message = tame(&remark.message);
    let name = remark.origin.name();
    let mark = match remark.fix.as_ref().map(|fix| fix.safety) {
        Some(Safety::Safe) => " [*]",
        Some(Safety::Unsafe) => " [unsafe *]",
        None => "",
    };
    let Some(source) = &report.source else {
        return format!("{path}: {word}: {message} [{name}]{mark}\n");
    };
    let position = source.position(remark.range.start);
    let place = paint.bold(&place(&path, &position));
    let mut text = format!("{place}: {word}: {message} [{name}]{mark}\n");
    let (line, carets) = snippet(source, &remark.range);
    let number = position.line.to_string();
    let margin = " ".repeat(number.len());
    let carets = paint.severity(remark.severity, &carets);
    text.push_str(&format!(
        "{margin} |\n{number} | {line}\n{margin} | {carets}\n"
    ));
    if !remark.help.is_empty() {
        text.push_str(&format!("{margin} = help: {}\n", tame(&remark.help)));
    }
    if let Some(fix) = &remark.fix {
        text.push_str(&format!("{margin} = fix: {}\n", tame(&fix.title)));
    }
    text
}

/// One line about all files.
pub fn summary(totals: &Totals) -> String {
    let mut text = match totals.findings() {
        0 => format!("no findings in {}", counted(totals.files, "file")),
        count => {
            let parts: Vec<String> = [
                (totals.errors, "error"),
                (totals.warnings, "warning"),
                (totals.notes, "note"),
            ]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| counted(count, word))
            .collect();
            format!(
                "{} in {}: {}",
                counted(count, "finding"),
                counted(totals.files, "file"),
                parts.join(", ")
            )
        }
    };
    if totals.fixed > 0 {
        text.push_str(&format!("; {} fixed", totals.fixed));
    }
    match (totals.fixable, totals.unsafely_fixable) {
        (0, 0) => {}
        (safe, 0) => text.push_str(&format!("; {safe} fixable with --fix")),
        (0, risky) => text.push_str(&format!("; {risky} fixable with --unsafe-fixes")),
        (safe, risky) => text.push_str(&format!(
            "; {safe} fixable with --fix, {risky} more with --unsafe-fixes"
        )),
    }
    if totals.broken_files > 0 {
        text.push_str(&format!(
            "; {} could not be read in full",
            counted(totals.broken_files, "file")
        ));
    }
    text
}

fn counted(count: usize, word: &str) -> String {
    ghostgpu_text::counted(count as u64, word, &format!("{word}s"))
}

/// Colours, if enabled.
struct Paint {
    has_colour: bool,
}

impl Paint {
    fn bold(&self, text: &str) -> String {
        self.with("1", text)
    }

    fn severity(&self, severity: Severity, text: &str) -> String {
        let code = match severity {
            Severity::Error => "1;31",
            Severity::Warning => "1;33",
            Severity::Note => "1;36",
        };
        self.with(code, text)
    }

    fn with(&self, code: &str, text: &str) -> String {
        match self.has_colour {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }
}

//! Properties that hold for any text checked as Python. A test of `crates/lint` also runs them over mutated
//! programs.

use ghostgpu_lint::fixing::{Wanted, fix};
use ghostgpu_lint::{Diagnostic, FileReport, Settings, Source, examine, formats};

/// The bytes as a script, as a notebook, and as the code of a notebook.
/// Returns whether they are text.
pub fn check_lint(bytes: &[u8]) -> bool {
    if let Ok(notebook) = Source::notebook(bytes) {
        check_source(notebook);
    }
    let Ok(script) = Source::script(bytes) else {
        return false;
    };
    let code = script.text().to_owned();
    check_source(script);
    // Two cells, one as a string and one as lines.
    let middle = (0..=code.len() / 2)
        .rev()
        .find(|at| code.is_char_boundary(*at));
    let (first, second) = code.split_at(middle.unwrap_or(0));
    let lines: Vec<&str> = second.split_inclusive('\n').collect();
    let cell = |source: serde_json::Value| {
        serde_json::json!({"cell_type": "code", "metadata": {}, "outputs": [],
            "execution_count": null, "source": source})
    };
    let json = serde_json::json!({"cells": [cell(first.into()), cell(lines.into())],
        "metadata": {}, "nbformat": 4, "nbformat_minor": 4});
    if let Ok(notebook) = Source::notebook(json.to_string().as_bytes()) {
        check_source(notebook);
    }
    true
}

/// Checking ends; findings are inside the text; fixes can be applied, leave valid Python and terminate; every
/// format shows them.
fn check_source(source: Source) {
    let settings = Settings::default();
    let before = source.contents();
    let remarks = examine(&source, &settings);
    remarks
        .iter()
        .for_each(|remark| check_remark(&source, remark));
    let is_python = !remarks.iter().any(|it| it.origin.name() == "syntax-error");
    let again = source.reread(&before).expect("read before");
    assert_eq!(
        again.contents(),
        before,
        "reading and writing changes nothing"
    );
    show(source, remarks);
    let fixed = fix(again, &settings, Wanted::All).expect("still text");
    if !is_python {
        assert_eq!(fixed.source.contents(), before, "half a file is not mended");
        return;
    }
    let left = examine(&fixed.source, &settings);
    assert!(
        !left.iter().any(|it| it.origin.name() == "syntax-error"),
        "what was Python stays Python"
    );
    let count = fixed.count;
    let contents = fixed.source.contents();
    if count == 0 {
        assert_eq!(contents, before);
    }
}

fn check_remark(source: &Source, remark: &Diagnostic) {
    let text = source.text();
    let range = &remark.range;
    assert!(
        range.start <= range.end && range.end <= text.len(),
        "{remark:?}"
    );
    assert!(
        text.is_char_boundary(range.start) && text.is_char_boundary(range.end),
        "{remark:?}"
    );
    assert!(!remark.message.is_empty());
    for byte in [range.start, range.end] {
        let position = source.position(byte);
        assert!(position.line >= 1 && position.column >= 1);
        let (line, column) = source.place_in_file(byte);
        assert!(line >= 1 && column >= 1);
    }
    let edits = remark.fix.iter().flat_map(|fix| &fix.edits);
    let mut end = 0;
    for edit in edits {
        assert!(edit.range.start >= end, "edits are in order: {remark:?}");
        end = edit.range.end;
        assert!(end <= text.len(), "{remark:?}");
        assert!(
            text.is_char_boundary(edit.range.start) && text.is_char_boundary(end),
            "{remark:?}"
        );
    }
}

fn show(source: Source, diagnostics: Vec<Diagnostic>) {
    let report = FileReport {
        path: "x.py".to_owned(),
        source: Some(source),
        diagnostics,
        ..FileReport::default()
    };
    let reports = [report];
    let text = formats::text::render(&reports, false);
    let is_tame = |letter: char| letter == '\n' || !letter.is_control();
    assert!(text.chars().all(is_tame), "nothing steers the terminal");
    formats::json::render(&reports);
    formats::sarif::render(&reports);
    let commands = formats::github::render(&reports);
    assert!(
        commands.lines().all(|line| line.starts_with("::")),
        "one line each"
    );
}

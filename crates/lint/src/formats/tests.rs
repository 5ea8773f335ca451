//! Every format over the same files.

use super::*;
use crate::examine;
use crate::settings::Settings;
use crate::source::Source;

const NOTEBOOK: &str = "{\n \"cells\": [\n  {\n   \"cell_type\": \"markdown\",\n   \"metadata\": {},\n   \
    \"source\": \"x\"\n  },\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \
    \"metadata\": {},\n   \"outputs\": [],\n   \"source\": [\n    \"%matplotlib inline\\n\",\n    \
    \"é = noisy\"\n   ]\n  }\n ],\n \"metadata\": {},\n \"nbformat\": 4,\n \"nbformat_minor\": 4\n}\n";

fn report(path: &str, source: Source) -> FileReport {
    let diagnostics = examine(&source, &Settings::default());
    FileReport {
        path: path.to_owned(),
        source: Some(source),
        diagnostics,
        ..FileReport::default()
    }
}

/// A script, a notebook, half a script, an unreadable file, and a file without findings.
fn reports() -> Vec<FileReport> {
    let script = "def train():\n    for x in 文:\n        noisy(x, '100%, a:b')\n    quiet()  # ghostgpu: ignore[nosiy]\n";
    let unread = FileReport {
        path: "ünread, 100%.py".to_owned(),
        problem: Some("not UTF-8 text".to_owned()),
        ..FileReport::default()
    };
    vec![
        report(
            "src/train.py",
            Source::script(script.as_bytes()).expect("text"),
        ),
        report(
            "look at.ipynb",
            Source::notebook(NOTEBOOK.as_bytes()).expect("a notebook"),
        ),
        report(
            "half.py",
            Source::script(b"math.pi = (\nnoisy").expect("text"),
        ),
        unread,
        FileReport {
            path: "good.py".to_owned(),
            ..FileReport::default()
        },
    ]
}

#[test]
fn as_text() {
    insta::assert_snapshot!(text::render(&reports(), false));
}

#[test]
fn as_text_with_colours() {
    let shown = text::render(&reports()[..1], true);
    insta::assert_snapshot!(shown.replace('\u{1b}', "ESC"));
}

#[test]
fn as_json() {
    insta::assert_snapshot!(json::render(&reports()));
}

#[test]
fn as_sarif() {
    // The real rules change; the structure around them does not.
    let shown = sarif::render(&reports());
    let mut document: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    let run = &mut document["runs"][0];
    let rules = run["tool"]["driver"]["rules"]
        .as_array()
        .cloned()
        .expect("rules");
    for result in run["results"].as_array_mut().expect("results") {
        let index = result["ruleIndex"].as_u64().expect("an index") as usize;
        assert_eq!(rules[index]["id"], result["ruleId"]);
        result["ruleIndex"] = "checked".into();
    }
    run["tool"]["driver"]["rules"] = "left out".into();
    insta::assert_snapshot!(serde_json::to_string_pretty(&document).expect("plain values"));
}

#[test]
fn as_annotations_for_github() {
    insta::assert_snapshot!(github::render(&reports()));
}

#[test]
fn the_summary_counts_everything() {
    let totals = |errors, fixable, unsafely_fixable, fixed, broken_files| Totals {
        files: 2,
        errors,
        fixable,
        unsafely_fixable,
        fixed,
        broken_files,
        ..Totals::default()
    };
    let cases = [
        (totals(0, 0, 0, 0, 0), "no findings in 2 files"),
        (
            totals(1, 1, 0, 0, 0),
            "1 finding in 2 files: 1 error; 1 fixable with --fix",
        ),
        (
            totals(2, 1, 1, 3, 1),
            "2 findings in 2 files: 2 errors; 3 fixed; 1 fixable with --fix, 1 more with --unsafe-fixes; 1 file could not be read in full",
        ),
        (
            totals(2, 0, 1, 0, 0),
            "2 findings in 2 files: 2 errors; 1 fixable with --unsafe-fixes",
        ),
    ];
    for (totals, expected) in cases {
        assert_eq!(text::summary(&totals), expected);
    }
}

//! Edits of a notebook's code change its lines in the JSON and nothing else.

use crate::finding::Edit;
use crate::source::Source;

fn notebook(source: &str) -> String {
    format!(
        "{{\n  \"nbformat\": 4, \"metadata\": {{\"a\": [1.50, \"\\u00e9\"]}},\n  \"cells\": [\n    \
         {{\"cell_type\": \"markdown\", \"metadata\": {{}}, \"source\": \"x\"}},\n    \
         {{\"cell_type\": \"code\", \"outputs\": [], \"execution_count\": null, \"metadata\": {{}},\n     \
         \"source\": {source}}}\n  ],\n  \"nbformat_minor\": 4}}"
    )
}

/// The notebook's JSON after replacing a word in its code.
fn after(source: &str, word: &str, new: &str) -> String {
    let json = notebook(source);
    let notebook = Source::notebook(json.as_bytes()).expect("a notebook");
    let start = notebook.text().find(word).expect("the word");
    notebook.with_edits(&[Edit::replace(start..start + word.len(), new)])
}

#[test]
fn only_changed_lines_are_rewritten() {
    let cases = [
        // One string for all, with escapes of its own kind.
        (
            r#""a = 1\nb = \"\u00e9\"\nnoisy""#,
            "noisy",
            "calm",
            r#""a = 1\nb = \"\u00e9\"\ncalm""#,
        ),
        (
            r#""a\/b\nnoisy\n""#,
            "noisy",
            "a\n\"é\"",
            r#""a\/b\na\n\"\u00e9\"\n""#,
        ),
        // Lists, in the style of each.
        (
            r#"["a = '\u00e9'\n", "noisy\n", "b"]"#,
            "noisy",
            "calm",
            r#"["a = '\u00e9'\n", "calm\n", "b"]"#,
        ),
        (
            "[\n      \"noisy\\n\",\n      \"b\\/\"\n   ]",
            "noisy",
            "calm\nagain",
            "[\n      \"calm\\n\",\n      \"again\\n\",\n      \"b\\/\"\n   ]",
        ),
        (
            "[\n  \"noisy\"]",
            "noisy",
            "a\nb",
            "[\n  \"a\\n\",\n  \"b\"]",
        ),
        (r#"["noisy"]"#, "noisy", "a\nb", r#"["a\n", "b"]"#),
        (
            r#"["a\n","noisy\n","b\n", "c"]"#,
            "noisy\nb\n",
            "",
            r#"["a\n","c"]"#,
        ),
        (r#"["noisy\n"]"#, "noisy\n", "", "[]"),
    ];
    for (source, word, new, expected) in cases {
        assert_eq!(after(source, word, new), notebook(expected), "{source}");
    }
}

#[test]
fn deleting_the_last_line_deletes_its_line_ending_too() {
    let json = notebook(r#"["a\n", "noisy"]"#);
    let source = Source::notebook(json.as_bytes()).expect("a notebook");
    assert_eq!(source.text(), "a\nnoisy\n");
    let written = source.with_edits(&[Edit::delete(2..8)]);
    let again = Source::notebook(written.as_bytes()).expect("a notebook");
    assert_eq!(again.text(), "a\n\n");
}

#[test]
fn edits_of_several_cells_end_up_in_the_right_cells() {
    let json = r#"{"cells": [
 {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": 1, "source": ["x\n", "y\n", "z"]},
 {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": 1, "source": "%%bash\nls"},
 {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": 1, "source": []},
 {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": 1, "source": "w"}
], "metadata": {}, "nbformat": 4, "nbformat_minor": 2}
"#;
    let source = Source::notebook(json.as_bytes()).expect("a notebook");
    assert_eq!(source.text(), "x\ny\nz\n\nw\n");
    let written = source.with_edits(&[
        Edit::insert(0, "import a\n"),
        Edit::replace(2..3, "yy"),
        Edit::insert(5, "!"),
        Edit::insert(6, "pass"),
        Edit::replace(7..8, "ww"),
    ]);
    let expected = json
        .replace(
            r#"["x\n", "y\n", "z"]"#,
            r#"["import a\n", "x\n", "yy\n", "z!"]"#,
        )
        .replace("\"source\": []", "\"source\": [\"pass\"]")
        .replace("\"w\"", "\"ww\"");
    assert_eq!(written, expected);
    assert!(source.takes(&Edit::delete(4..6)));
    assert!(!source.takes(&Edit::delete(4..7)));
}

#[test]
fn a_position_is_mapped_to_the_file() {
    let json = notebook("[\n\"a = '\\u00e9'\\n\",\n\"noisy\"]");
    let source = Source::notebook(json.as_bytes()).expect("a notebook");
    let byte = source.text().find("noisy").expect("there");
    let line = json
        .lines()
        .position(|line| line.contains("noisy"))
        .expect("there")
        + 1;
    assert_eq!(source.position(byte).line, 2);
    assert_eq!(
        (source.place_in_file(byte).0, source.place_in_file(byte).1),
        (line, 2)
    );
}

#[test]
fn keys_of_other_tools_are_ignored_and_kept() {
    let json = notebook("[\"noisy\\n\", \"x = 1\"]")
        .replace("{\"cell_type\"", "{\"idx_\": 3, \"cell_type\"")
        .replace("\"nbformat\"", "\"path_\": \"a.ipynb\", \"nbformat\"");
    let read = Source::notebook(json.as_bytes()).expect("Jupyter opens it");
    assert_eq!(read.text(), "noisy\nx = 1\n");
    let edited = read.with_edits(&[Edit::replace(0..5, "calm")]);
    assert_eq!(edited, json.replace("noisy", "calm"));
}

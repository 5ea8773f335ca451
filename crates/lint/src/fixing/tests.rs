//! Fixes change what they should, and nothing else.

use super::*;
use crate::made_up;

fn fixed_source(contents: &[u8], wanted: Wanted) -> Fixed {
    let source = Source::script(contents).expect("text");
    fix(source, &Settings::default(), wanted).expect("still text")
}

fn fixed(text: &str, wanted: Wanted) -> (String, usize) {
    let fixed = fixed_source(text.as_bytes(), wanted);
    (fixed.source.contents(), fixed.count)
}

#[test]
fn safe_fixes_are_applied_and_unsafe_ones_on_request() {
    let text = "x = noisy  # as it was\ny =  quiet ;z=[1,\n 2]\n";
    let safe = "x = calm  # as it was\ny =  quiet ;z=[1,\n 2]\n";
    let all = "x = calm  # as it was\ny =  calm ;z=[1,\n 2]\n";
    assert_eq!(fixed(text, Wanted::Safe), (safe.to_owned(), 1));
    // The unsafe fix creates a finding for the safe one: a second pass.
    assert_eq!(fixed(text, Wanted::All), (all.to_owned(), 3));
}

#[test]
fn line_endings_marks_and_a_missing_last_line_ending_are_kept() {
    let cases = [
        ("\u{feff}noisy", "\u{feff}calm"),
        ("a = 1\r\nnoisy\r\n", "a = 1\r\ncalm\r\n"),
        ("a = 1\rnoisy\r", "a = 1\rcalm\r"),
        ("a = 1\r\nmath.pi", "import math\r\na = 1\r\nmath.pi"),
        ("\tnoisy".trim_start(), "calm"),
        ("é = '文'; noisy  \n\n\n", "é = '文'; calm  \n\n\n"),
    ];
    for (before, after) in cases {
        assert_eq!(fixed(before, Wanted::Safe).0, after, "{before:?}");
    }
}

#[test]
fn an_import_that_several_fixes_need_is_added_once() {
    let text = "math.pi\nmath.e\nnoisy\n";
    let after = "import math\nmath.pi\nmath.e\ncalm\n";
    assert_eq!(fixed(text, Wanted::Safe), (after.to_owned(), 3));
}

#[test]
fn ignored_findings_are_not_fixed() {
    let text = "noisy  # ghostgpu: ignore[made-up-noisy]\n";
    assert_eq!(fixed(text, Wanted::All), (text.to_owned(), 0));
}

#[test]
fn a_file_that_is_not_python_is_left_alone() {
    let text = "def (:\nnoisy\n";
    let fixed = fixed_source(text.as_bytes(), Wanted::All);
    assert_eq!(fixed.source.contents(), text);
    assert!(
        fixed
            .diagnostics
            .iter()
            .any(|it| it.origin == Origin::Syntax)
    );
}

#[test]
fn fixes_that_break_the_file_or_fix_nothing_are_skipped_and_named() {
    let text = "broken_fix\nnoisy\nuseless_fix\n";
    let fixed = fixed_source(text.as_bytes(), Wanted::Safe);
    assert_eq!(fixed.source.contents(), "broken_fix\ncalm\nuseless_fix\n");
    assert_eq!(fixed.count, 1);
    assert_eq!(
        fixed.left_out,
        [
            "the fix for made-up-broken would leave a syntax error",
            "the fix for made-up-useless does not remove its finding"
        ]
    );
}

#[test]
fn a_notebook_is_fixed_in_its_cells() {
    let json = r#"{"cells":[{"cell_type":"code","source":["noisy\n","math.pi"],"metadata":{},"outputs":[],"execution_count":2}],"metadata":{},"nbformat":4,"nbformat_minor":2}"#;
    let source = Source::notebook(json.as_bytes()).expect("a notebook");
    let fixed = fix(source, &Settings::default(), Wanted::Safe).expect("a notebook");
    let expected = json.replace(
        r#"["noisy\n","math.pi"]"#,
        r#"["import math\n","calm\n","math.pi"]"#,
    );
    assert_eq!(fixed.source.contents(), expected);
}

#[test]
fn a_single_fix_leaves_the_others_alone() {
    let source = Source::script(b"noisy\nnoisy\n").expect("text");
    let remarks = examine(&source, &Settings::default());
    assert_eq!(remarks[1].origin, Origin::Rule(&made_up::NOISY));
    let alone = fix_alone(&source, remarks[1].fix.as_ref().expect("a fix"));
    let alone = alone.expect("text").expect("Python");
    assert_eq!(alone.contents(), "noisy\ncalm\n");
}

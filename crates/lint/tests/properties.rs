//! Properties that hold for any text, checked with programs that are cut, doubled and mixed.

#[path = "../../../fuzz/src/lint.rs"]
mod checks;

use std::path::Path;

use checks::check_lint;
use ghostgpu_lint::RULES;
use proptest::prelude::*;

/// Text fragments that break programs.
const SPLINTERS: [&str; 22] = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ":",
    "\n",
    "    ",
    "\t",
    "\"\"\"",
    "'",
    "\\\n",
    "f\"{",
    "#",
    " ghostgpu: ignore[",
    "文",
    "\r\n",
    "lambda: ",
    "for x in ",
    "else:\n",
    ".backward()",
];

/// The programs of the corpus, of the rules' cases and of their documentation.
fn programs() -> Vec<String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut programs: Vec<String> = RULES
        .iter()
        .flat_map(|rule| rule.docs.split("```").skip(1).step_by(2))
        .map(|block| block.trim_start_matches("python\n").to_owned())
        .collect();
    for folder in ["tests/cases", "../../fuzz/corpus/lint"] {
        let mut paths: Vec<_> = std::fs::read_dir(here.join(folder))
            .expect("a folder of programs")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        paths.sort();
        let read = |path| std::fs::read_to_string(path).expect("text");
        programs.extend(paths.into_iter().map(read));
    }
    programs
}

/// One change of a program.
#[derive(Debug, Clone)]
enum Change {
    Cut(f64, f64),
    Double(f64, f64),
    Insert(f64, usize),
    Move(f64, f64, f64),
}

fn change() -> impl Strategy<Value = Change> {
    let place = || 0.0..1.0f64;
    prop_oneof![
        (place(), 0.0..0.1f64).prop_map(|(at, length)| Change::Cut(at, length)),
        (place(), 0.0..0.1f64).prop_map(|(at, length)| Change::Double(at, length)),
        (place(), 0..SPLINTERS.len()).prop_map(|(at, index)| Change::Insert(at, index)),
        (place(), 0.0..0.1f64, place()).prop_map(|(at, length, to)| Change::Move(at, length, to)),
    ]
}

fn changed(text: &str, change: &Change) -> String {
    let byte = |text: &str, part: f64| {
        let wanted = (text.len() as f64 * part) as usize;
        let mut boundaries = (0..=wanted.min(text.len())).rev();
        boundaries
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(0)
    };
    let piece = |at: f64, length: f64| byte(text, at)..byte(text, (at + length).min(1.0));
    let mut new = text.to_owned();
    match *change {
        Change::Cut(at, length) => new.replace_range(piece(at, length), ""),
        Change::Double(at, length) => {
            let range = piece(at, length);
            new.insert_str(range.end, &text[range.clone()]);
        }
        Change::Insert(at, index) => new.insert_str(byte(text, at), SPLINTERS[index]),
        Change::Move(at, length, to) => {
            let range = piece(at, length);
            new.replace_range(range.clone(), "");
            let to = byte(&new, to);
            new.insert_str(to, &text[range]);
        }
    }
    new
}

#[test]
fn the_unchanged_programs_have_the_properties() {
    for program in programs() {
        assert!(check_lint(program.as_bytes()), "{program}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn broken_programs_hold(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec(change(), 1..6),
    ) {
        let programs = programs();
        let mut text = programs[which.index(programs.len())].clone();
        for change in &changes {
            text = changed(&text, change);
        }
        check_lint(text.as_bytes());
    }

    #[test]
    fn any_text_holds(text in "\\PC{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check_lint(text.as_bytes());
        check_lint(&bytes);
    }
}

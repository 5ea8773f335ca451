//! However a message was wrapped, quoted, typed off or escaped, the same figures are read from it, and the
//! same situation.

mod common;

use common::{corpus, heldout, read};
use ghostgpu_explain::{FigureValue, Figures, Kind, Situation, explain};

/// What must not change: names may be in another case.
type Essence = Option<(Kind, Figures, Option<Situation>)>;

fn essence(bytes: &[u8]) -> Essence {
    let mut found = explain(&read(bytes, usize::MAX))?;
    for figure in &mut found.finding.figures.more {
        if let FigureValue::Text(text) = &mut figure.value {
            *text = text.to_lowercase();
        }
    }
    let situation = found.situations.first().map(|main| main.situation);
    Some((found.finding.kind, found.finding.figures, situation))
}

/// A way in which messages are changed before somebody pastes them.
struct Mangling {
    name: &'static str,
    mangle: fn(&str) -> String,
    /// Tracebacks do not survive it: only messages of one line are tried.
    is_for_one_line: bool,
}

const fn any(name: &'static str, mangle: fn(&str) -> String) -> Mangling {
    Mangling {
        name,
        mangle,
        is_for_one_line: false,
    }
}

const fn one_line(name: &'static str, mangle: fn(&str) -> String) -> Mangling {
    Mangling {
        name,
        mangle,
        is_for_one_line: true,
    }
}

const MANGLINGS: [Mangling; 29] = [
    one_line("wrapped at 24 columns", |text| wrapped(text, 24).join("\n")),
    one_line("wrapped at 38 columns", |text| wrapped(text, 38).join("\n")),
    one_line("wrapped at 60 columns", |text| wrapped(text, 60).join("\n")),
    one_line("wrapped at 79 columns", |text| wrapped(text, 79).join("\n")),
    one_line("indented and wrapped", |text| {
        wrapped(text, 50).join("\n        ")
    }),
    one_line("a quoted mail", |text| quoted(&wrapped(text, 70), "> ")),
    one_line("a mail quoted twice", |text| {
        quoted(&wrapped(text, 66), ">> ")
    }),
    one_line("a quoted mail, one sign after the other", |text| {
        quoted(&wrapped(text, 66), "> > ")
    }),
    one_line("a cell of a table", |text| {
        let lines = wrapped(text, 30);
        let lines = lines.iter().map(|line| format!("| {line:<30} |"));
        lines.collect::<Vec<_>>().join("\n")
    }),
    one_line("a cell with breaks", |text| wrapped(text, 30).join("<br>")),
    one_line("a box", |text| {
        let lines = wrapped(text, 46);
        let lines = lines.iter().map(|line| format!("│ {line:<46} │"));
        lines.collect::<Vec<_>>().join("\n")
    }),
    one_line("a code span", |text| format!("I get `{text}` here")),
    one_line("a code span of its own", |text| format!("`{text}`")),
    one_line("bold", |text| format!("**{text}**")),
    one_line("a list item", |text| format!("- {text}")),
    one_line("a list item in bold", |text| format!("* **{text}**")),
    one_line("a heading", |text| format!("## {text}")),
    one_line("double quotes", |text| format!("\"{text}\"")),
    one_line("typographic quotes", |text| format!("“{text}”")),
    one_line("lower case", str::to_lowercase),
    one_line("upper case", str::to_uppercase),
    one_line("full-width punctuation", full_width),
    one_line("a list cut at the end", |text| format!("{text}…")),
    any("a fenced block", |text| format!("```\n{text}\n```")),
    any("a fenced block in a quotation", |text| {
        let lines: Vec<&str> = text.lines().collect();
        quoted(
            &["```python-traceback"]
                .into_iter()
                .chain(lines)
                .map(str::to_owned)
                .collect::<Vec<_>>(),
            "> ",
        )
    }),
    any("non-breaking spaces", |text| text.replace(' ', "\u{A0}")),
    any("a page of HTML", |text| {
        let text = text
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        format!("<pre><code>{}</code></pre>", text.replace('"', "&quot;"))
    }),
    any("a JSON log", |text| {
        let text = serde_json::to_string(text).expect("JSON");
        format!("{{\"level\": \"error\", \"message\": {text}}}")
    }),
    any("JSON inside JSON", |text| {
        let text = serde_json::to_string(text).expect("JSON");
        let text = serde_json::to_string(&text).expect("JSON");
        format!("{{\"level\": \"error\", \"message\": {text}}}")
    }),
];

/// At blanks only; a word that is longer than a line keeps its length.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn quoted(lines: &[String], sign: &str) -> String {
    let lines: Vec<String> = lines.iter().map(|line| format!("{sign}{line}")).collect();
    lines.join("\n")
}

/// As an input method writes it; full stops inside numbers and names stay.
fn full_width(text: &str) -> String {
    let mut found = text
        .replace("; ", "；")
        .replace(" (", "（")
        .replace(") ", "）");
    found = found
        .replace(": ", "：")
        .replace(", ", "，")
        .replace(". ", "．");
    found
}

fn check(only: impl Fn(&Mangling) -> bool) {
    let mut failures = Vec::new();
    let mut tried = 0;
    for message in corpus().into_iter().chain(heldout()) {
        let plain = essence(message.text.as_bytes());
        let is_one_line = message.text.lines().count() == 1;
        for mangling in MANGLINGS.iter().filter(|mangling| only(mangling)) {
            if mangling.is_for_one_line && !is_one_line {
                continue;
            }
            // One word within a sentence is a word, not a message.
            let is_short = message.text.split(' ').count() < 6;
            if is_short && mangling.name == "a code span" {
                continue;
            }
            tried += 1;
            let mangled = (mangling.mangle)(&message.text);
            let found = essence(mangled.as_bytes());
            if found != plain {
                failures.push(format!(
                    "{} as {}:\n{mangled}\n  {found:?}\n  instead of {plain:?}",
                    message.source, mangling.name
                ));
            }
        }
    }
    assert!(tried > 100);
    assert!(
        failures.is_empty(),
        "{} of {tried}:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn messages_of_one_line_survive_wrapping_quoting_and_typing() {
    check(|mangling| mangling.is_for_one_line);
}

#[test]
fn whole_logs_survive_markdown_html_and_json() {
    check(|mangling| !mangling.is_for_one_line);
}

/// What is left of a message that was cut off must agree with the whole one.
#[test]
fn a_message_that_is_cut_off_gives_no_other_figures() {
    let mut failures = Vec::new();
    for message in corpus() {
        let Some((kind, whole, _)) = essence(message.text.as_bytes()) else {
            continue;
        };
        if message.text.lines().count() > 1 || !kind.is_caching_allocator() {
            continue;
        }
        let ends = message
            .text
            .char_indices()
            .filter(|(_, character)| *character == ' ');
        for (end, _) in ends {
            let Some((_, part, _)) = essence(&message.text.as_bytes()[..end]) else {
                continue;
            };
            let pairs = [
                (part.requested, whole.requested),
                (part.total, whole.total),
                (part.free, whole.free),
                (part.allocated, whole.allocated),
                (part.this_process, whole.this_process),
            ];
            if pairs
                .iter()
                .any(|(part, whole)| part.is_some() && part != whole)
            {
                failures.push(format!("{}\n  {part:?}", &message.text[..end]));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

//! Consoles, launchers and chunking do not change what is found in a log.

mod common;

use common::{corpus, read};
use ghostgpu_explain::{Figures, Kind, Log, Writer, explain};
use proptest::prelude::*;

/// What must not change: kinds and figures, in order.
fn essence(log: &Log) -> Vec<(Kind, Figures)> {
    let findings = log.findings.iter();
    findings
        .map(|finding| (finding.kind, finding.figures.clone()))
        .collect()
}

fn expected(text: &str) -> Vec<(Kind, Figures)> {
    essence(&read(text.as_bytes(), usize::MAX))
}

/// Applies `noise` to every text and compares.
fn check(what: &str, noise: impl Fn(&str) -> Vec<u8>) {
    let mut failures = Vec::new();
    for message in corpus() {
        let found = essence(&read(&noise(&message.text), usize::MAX));
        let wanted = expected(&message.text);
        if found != wanted {
            failures.push(format!(
                "{}: {found:?}\n  instead of {wanted:?}",
                message.source
            ));
        }
    }
    assert!(failures.is_empty(), "{what}:\n{}", failures.join("\n"));
}

fn each_line(text: &str, change: impl Fn(&str) -> String) -> Vec<u8> {
    let lines: Vec<String> = text.lines().map(change).collect();
    lines.join("\n").into_bytes()
}

#[test]
fn windows_line_endings_change_nothing() {
    check("CRLF", |text| text.replace('\n', "\r\n").into_bytes());
}

#[test]
fn colours_change_nothing() {
    check("colours", |text| {
        let coloured = text
            .replace(' ', "\x1b[0m \x1b[1;31m")
            .replace("memory", "mem\x1b[4mory");
        format!("\x1b[31m{coloured}\x1b[0m").into_bytes()
    });
}

#[test]
fn utf_16_changes_nothing() {
    check("UTF-16 with a mark", |text| {
        let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect()
    });
}

#[test]
fn a_rank_prefix_changes_only_the_name() {
    check("[rank3]:", |text| {
        each_line(text, |line| format!("[rank3]: {line}"))
    });
    check("[1,2]<stderr>:", |text| {
        each_line(text, |line| format!("[1,2]<stderr>:{line}"))
    });
    check("(Worker pid=7)", |text| {
        each_line(text, |line| {
            format!("(RayTrainWorker pid=7, ip=10.0.0.1) {line}")
        })
    });
}

#[test]
fn a_progress_bar_in_front_changes_nothing() {
    check("progress", |text| {
        let bar = " 10%|#         | 1/10 [00:01<00:09,  1.00it/s]\r 20%|##        | 2/10 [00:02<00:08,  1.00it/s]\r";
        format!("{bar}\n{text}").into_bytes()
    });
}

#[test]
fn surrounding_text_changes_nothing() {
    check("around", |text| {
        let around = "loss 0.53 lr 0.001 a line of an ordinary training log\n".repeat(40);
        format!("{around}{text}\n{around}").into_bytes()
    });
}

/// Single-line messages, which terminals wrap.
#[test]
fn wrapping_lines_changes_nothing() {
    for width in [44, 79, 80, 100, 119, 120, 133] {
        let mut failures = Vec::new();
        for message in corpus() {
            // Kills and short calls fit on one line of any real console.
            let is_long = message.text.lines().count() == 1 && message.asked.is_some();
            if !is_long {
                continue;
            }
            let characters: Vec<char> = message.text.chars().collect();
            let cut: Vec<String> = characters
                .chunks(width)
                .map(|line| line.iter().collect())
                .collect();
            let found = essence(&read(cut.join("\n").as_bytes(), usize::MAX));
            if found != expected(&message.text) {
                failures.push(format!("{} at {width}: {found:?}", message.source));
            }
        }
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }
}

#[test]
fn chunks_of_any_size_give_the_same_log() {
    let all: String = corpus()
        .iter()
        .map(|message| message.text.clone() + "\n\n")
        .collect();
    let whole = read(all.as_bytes(), usize::MAX);
    for chunk in [1, 2, 3, 7, 64, 1000, 4095, 4096, 4097, 65536] {
        assert_eq!(read(all.as_bytes(), chunk), whole, "{chunk}");
    }
}

#[test]
fn ranks_that_write_concurrently_are_kept_apart() {
    let messages: Vec<_> = corpus()
        .into_iter()
        .filter(|message| message.kind == "cuda-allocator")
        .collect();
    let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    let first = lines(&messages[3].text);
    let second: Vec<String> = [
        "Traceback (most recent call last):",
        "  File \"b.py\", line 7, in train",
        "    loss.backward()",
        &messages[4].text,
    ]
    .iter()
    .map(|line| (*line).to_owned())
    .collect();
    let mut mixed = String::new();
    for index in 0..first.len().max(second.len()) {
        for (rank, lines) in [(0, &first), (5, &second)] {
            if let Some(line) = lines.get(index) {
                mixed.push_str(&format!("[rank{rank}]: {line}\n"));
            }
        }
    }
    let log = read(mixed.as_bytes(), usize::MAX);
    let mut writers: Vec<Writer> = log
        .findings
        .iter()
        .map(|finding| finding.writer.clone())
        .collect();
    writers.sort();
    assert_eq!(writers, [Writer::Rank(0), Writer::Rank(5)]);
    let ranks = explain(&log)
        .and_then(|answer| answer.ranks)
        .expect("two ranks");
    assert!(ranks.differ);
    let fifth = log
        .findings
        .iter()
        .find(|finding| finding.writer == Writer::Rank(5))
        .expect("rank 5");
    let place = fifth
        .traceback
        .as_ref()
        .and_then(|traceback| traceback.place());
    assert_eq!(place.map(|frame| frame.line), Some(7));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..4000), chunk in 1usize..4000) {
        let whole = read(&bytes, usize::MAX);
        prop_assert_eq!(&read(&bytes, chunk), &whole);
        let _ = explain(&whole);
    }

    /// Parsers break on pieces of real messages, cut anywhere and mixed.
    #[test]
    fn no_mixture_of_messages_makes_it_panic(
        pieces in proptest::collection::vec((any::<prop::sample::Index>(), 0usize..400, 0usize..400, 0u8..6), 0..12),
        chunk in 1usize..600,
    ) {
        let corpus = corpus();
        let mut bytes = Vec::new();
        for (index, from, length, glue) in pieces {
            let text = index.get(&corpus).text.as_bytes();
            let from = from.min(text.len());
            let to = (from + length).min(text.len());
            bytes.extend_from_slice(&text[from..to]);
            bytes.extend_from_slice([&b"\n"[..], b"\r", b"", b"\x1b[31m", b"\xC4\xE3", b"\n[rank1]: "][usize::from(glue)]);
        }
        let whole = read(&bytes, usize::MAX);
        prop_assert_eq!(&read(&bytes, chunk), &whole);
        let _ = explain(&whole);
    }
}

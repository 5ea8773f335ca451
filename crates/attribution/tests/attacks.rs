//! Every hostile file of `attacks/` is answered with its sentence, or opens and adds up.
//!
//! Each is read on a thread with a small stack, so that recursion which a file could drive would end the
//! test, and with a small limit of memory, so that what would grow without end is stopped early.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ghostgpu_attribution::recording_of_snapshot;
use ghostgpu_ledger::{By, CardLedger, Groups};
use ghostgpu_snapshot::{Limits, open_with};

const STACK_BYTES: usize = 512 * 1024;
const LIMITS: Limits = Limits {
    memory_bytes: 32 << 20,
};

fn attacks() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../attacks")
}

/// What is said about a file: an error's sentence, or that it opens, and what follows from it.
fn answer_to(path: &Path) -> String {
    let mut snapshot = match open_with(path, LIMITS) {
        Ok(snapshot) => snapshot,
        Err(error) => return error.to_string(),
    };
    let mut copy = Vec::new();
    ghostgpu_snapshot::write_snapshot(&snapshot, &mut copy).unwrap();
    let recording = recording_of_snapshot(&mut snapshot);
    assert_eq!(recording.check(), Ok(()));
    let groups = Groups::of(&recording);
    for card in &recording.cards {
        let ledger = CardLedger::new(&recording, card);
        let holders = ledger.held_by(ledger.peak().moment, By::Line);
        let sum = holders.holders.iter().fold(0u64, |sum, holder| {
            sum.saturating_add(holder.requested_bytes)
        });
        assert_eq!(sum, holders.requested_bytes);
        assert!(ledger.overview(&groups, 10).stretches.len() <= 10);
    }
    "opens".to_string()
}

#[test]
fn every_hostile_file_gets_its_sentence_in_little_stack_and_memory() {
    let table = std::fs::read_to_string(attacks().join("expected.tsv")).unwrap();
    let mut failures = Vec::new();
    let mut count = 0;
    for line in table.lines().skip(1) {
        let [name, expected, _tries] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("a line of expected.tsv: {line}");
        };
        count += 1;
        let path = attacks().join(name);
        let began = Instant::now();
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let answer = thread.spawn(move || answer_to(&path)).unwrap().join();
        let answer = answer.unwrap_or_else(|_| "a panic".to_string());
        if !answer.contains(expected) {
            failures.push(format!(
                "{name}: expected `{expected}`, and was told: {answer}"
            ));
        }
        if answer.contains(char::is_control) || answer.len() > 500 {
            failures.push(format!("{name}: no sentence for a terminal: {answer:?}"));
        }
        // Generous, for an unoptimised build on a busy machine: what is quadratic takes hours.
        if began.elapsed() > Duration::from_secs(60) {
            failures.push(format!("{name}: took {:?}", began.elapsed()));
        }
    }
    assert!(count > 70, "only {count} attacks were found");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_file_of_the_folder_is_listed() {
    let table = std::fs::read_to_string(attacks().join("expected.tsv")).unwrap();
    for file in std::fs::read_dir(attacks()).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let is_attack = !["expected.tsv", "make.py", "README.md"].contains(&name.as_str());
        let is_listed = table
            .lines()
            .any(|line| line.split('\t').next() == Some(name.as_str()));
        assert_eq!(is_attack, is_listed, "{name}");
    }
}

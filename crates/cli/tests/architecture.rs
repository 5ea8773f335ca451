//! What the crates of a rehearsal must not know, read off their sources.

use std::path::{Path, PathBuf};

/// Every source file below a folder of the workspace, with its text up to its unit tests.
fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let mut open = vec![
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .join(folder),
    ];
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("folder").flatten() {
            let path = entry.path();
            let is_test = path.ends_with("tests.rs") || path.ends_with("made_up.rs");
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") && !is_test {
                let text = std::fs::read_to_string(&path).expect("text");
                let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
                found.push((path, code.to_owned()));
            }
        }
    }
    assert!(!found.is_empty(), "{folder} has sources");
    found
}

#[track_caller]
fn assert_without(folder: &str, words: &[&str]) {
    for (path, text) in sources(folder) {
        for word in words {
            assert!(!text.contains(word), "{} has `{word}`", path.display());
        }
    }
}

#[test]
fn planning_knows_neither_processes_nor_files_nor_terminals() {
    let words = [
        "std::process",
        "std::fs",
        "std::io",
        "std::thread",
        "std::env",
        "println!",
        "WholeRuns",
    ];
    assert_without("plan/src", &words);
}

#[test]
fn answers_know_neither_arguments_nor_processes_nor_files_nor_terminals() {
    let words = [
        "clap",
        "anyhow",
        "std::env",
        "std::fs",
        "std::io",
        "std::process",
        "std::thread",
        "IsTerminal",
        "terminal_size",
        "println!",
        "eprint!",
        "WholeRuns",
    ];
    assert_without("answers/src", &words);
}

#[test]
fn rehearsing_prints_nothing_and_knows_no_arguments() {
    assert_without(
        "rehearse/src",
        &["println!", "eprint!", "clap", "IsTerminal"],
    );
}

/// The commands, as the program itself lists them: one module each, with an `execute`.
fn commands() -> Vec<String> {
    let list =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands/mod.rs"))
            .expect("the list of commands");
    let before_call = |line: &str| {
        Some(
            line.split_once("=> ")?
                .1
                .split_once("::execute(")?
                .0
                .to_owned(),
        )
    };
    list.lines().filter_map(before_call).collect()
}

#[test]
fn no_command_knows_another() {
    let commands = commands();
    assert!(commands.len() > 10, "{commands:?}");
    let folder = sources("cli/src/commands").into_iter();
    for (path, text) in folder.filter(|(path, _)| !path.ends_with("commands/mod.rs")) {
        for command in &commands {
            let is_top = path.ends_with(format!("commands/{command}.rs"));
            let is_below = path
                .components()
                .any(|part| part.as_os_str() == command.as_str());
            for from in ["commands", "super"] {
                let named = [
                    format!("{from}::{command}::"),
                    format!("{from}::{command};"),
                ];
                let knows = named.iter().any(|named| text.contains(named));
                assert!(
                    is_top || is_below || !knows,
                    "{} knows the command {command}",
                    path.display()
                );
            }
        }
    }
    // What commands share must not lead back to one of them.
    for (path, text) in sources("cli/src/questions") {
        for command in &commands {
            let named = format!("commands::{command}::");
            assert!(!text.contains(&named), "{} knows `{named}`", path.display());
        }
    }
}

/// Anything beyond arguments, a job and rendering belongs in another crate.
#[test]
fn the_command_line_stays_small() {
    const MOST_LINES: usize = 7_000;
    let lines: usize = sources("cli/src")
        .iter()
        .map(|(_, text)| text.lines().count())
        .sum();
    assert!(lines < MOST_LINES, "{lines} lines without tests");
}

/// Documents for programs have a versioned name, and a page of the book describes each.
#[test]
fn every_schema_is_described_in_the_book() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let pages = std::fs::read_dir(docs).expect("the book").flatten();
    let book: String = pages
        .filter_map(|page| std::fs::read_to_string(page.path()).ok())
        .collect();
    let mut found = 0;
    for folder in ["answers/src", "cli/src", "lint/src", "report/src"] {
        for (path, text) in sources(folder) {
            for part in text.split("\"ghostgpu.").skip(1) {
                let name = part.split('"').next().unwrap_or_default();
                let is_schema = name.split_once('/').is_some_and(|(_, version)| {
                    !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit())
                });
                if is_schema {
                    found += 1;
                    let schema = format!("`ghostgpu.{name}`");
                    assert!(book.contains(&schema), "{}: {schema}", path.display());
                }
            }
        }
    }
    assert!(found > 15, "{found}");
}

/// Reasons and advice follow from facts: only reading compares the words of a message.
#[test]
fn advice_is_not_decided_by_the_words_of_a_message() {
    let words = [".text.contains(", ".text.to_", ".text.starts_with("];
    assert_without("explain/src/situation", &words);
    assert_without("explain/src/advice", &words);
}

#[test]
fn an_interrupt_is_told_in_one_place() {
    for (path, text) in sources("cli/src") {
        let tells = text.contains("ghostgpu: interrupted");
        assert_eq!(tells, path.ends_with("failure.rs"), "{}", path.display());
    }
}

/// Programs call CUDA while their threads end. Thread-local values with a destructor are gone by then, and accessing them
/// other than through `with_threads_own` ends the program.
#[test]
fn what_a_thread_owns_in_the_stand_in_library_may_be_gone() {
    let mut owned = 0;
    for (path, text) in sources("cuda/src") {
        let names = text.lines().filter_map(|line| {
            let (name, kind) = line.trim().strip_prefix("static ")?.split_once(": ")?;
            kind.starts_with("RefCell<").then_some(name)
        });
        for name in names {
            owned += 1;
            for line in text.lines().filter(|line| line.contains(name)) {
                let is_safe = line.contains(&format!("static {name}: "))
                    || line.contains(&format!("with_threads_own(&{name},"));
                assert!(is_safe, "{}: {line}", path.display());
            }
        }
    }
    assert!(owned > 3, "{owned}");
}

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

#[test]
fn no_command_knows_another() {
    let commands = [
        "cards",
        "completions",
        "doctor",
        "estimate",
        "explain",
        "gpus",
        "lint",
        "max_batch",
        "calibrate",
        "replay",
        "report",
        "run",
        "snapshot",
        "sweep",
    ];
    for (path, text) in sources("cli/src/commands") {
        if path.ends_with("commands/mod.rs") {
            continue;
        }
        for command in commands {
            let is_top = path.ends_with(format!("commands/{command}.rs"));
            let is_below = path.components().any(|part| part.as_os_str() == command);
            let named = format!("commands::{command}");
            assert!(
                is_top || is_below || !text.contains(&named),
                "{} knows `{named}`",
                path.display()
            );
        }
    }
}

#[test]
fn an_interrupt_is_told_in_one_place() {
    for (path, text) in sources("cli/src") {
        let tells = text.contains("ghostgpu: interrupted");
        assert_eq!(tells, path.ends_with("failure.rs"), "{}", path.display());
    }
}

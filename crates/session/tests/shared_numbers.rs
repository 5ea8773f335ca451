//! The agent's `shared_numbers.py` is written from this crate, so that no number exists twice.
//!
//! `GHOSTGPU_UPDATE=1 cargo test -p ghostgpu-session` writes it anew.

use std::fmt::Write as _;
use std::path::PathBuf;

use ghostgpu_recording::Stage;
use ghostgpu_session::SESSION_VARIABLE;
use ghostgpu_session::card_usage::{USAGE_BYTES, USAGE_FILE, USAGE_MAGIC};
use ghostgpu_session::files::{
    AGENT_REPORT_PREFIX, NOTES_PREFIX, PRELOAD_BLOCKED_FILE, RANK_BLOCKED_PREFIX,
    RANK_FAULT_PREFIX, RANK_LEFT_PREFIX, RANK_SPAWNED_PREFIX, RANK_STANDING_PREFIX,
    RANK_STARTED_PREFIX, RANK_WAITING_PREFIX, RANKS_FOLDER, RUN_FOLDER_PREFIX, SESSION_FILE,
    WRITTEN_FILES,
};
use ghostgpu_session::memory_log::{HISTORY_PREFIX, MEMORY_LOG_PREFIX, OwnerKind};

#[test]
fn the_agents_numbers_are_those_of_this_crate() {
    let path = agent_folder().join("shared_numbers.py");
    let expected = python_module();
    if std::env::var_os("GHOSTGPU_UPDATE").is_some() {
        std::fs::write(&path, &expected).expect("the agent's folder is writable");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        found, expected,
        "write it anew: GHOSTGPU_UPDATE=1 cargo test -p ghostgpu-session"
    );
}

/// It runs in every Python process and so imports nothing of the agent.
#[test]
fn the_start_of_the_agent_looks_for_the_same_variable() {
    let path = agent_folder().join("inject/sitecustomize.py");
    let text = std::fs::read_to_string(path).expect("part of the agent");
    assert!(text.contains(&format!("environ.get(\"{SESSION_VARIABLE}\")")));
}

fn agent_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../python/ghostgpu/agent")
}

fn python_module() -> String {
    let mut module = String::from(
        "\"\"\"Names and numbers that the agent shares with the library and the command line.\n\n\
         Written by a test of `crates/session` (`tests/shared_numbers.rs`); not edited by hand.\n\
         \"\"\"\n\nfrom __future__ import annotations\n",
    );
    let mut group = |comment: &str, lines: &[(String, String)]| {
        write!(module, "\n# {comment}\n").expect("text");
        for (name, value) in lines {
            writeln!(module, "{name} = {value}").expect("text");
        }
    };
    let text = |name: &str, value: &str| (name.to_owned(), format!("\"{value}\""));
    group(
        "Where a run's description is found.",
        &[
            text("SESSION_VARIABLE", SESSION_VARIABLE),
            text("SESSION_FILE", SESSION_FILE),
            text("RUN_FOLDER_PREFIX", RUN_FOLDER_PREFIX),
        ],
    );
    group(
        "Files in the run's folder.",
        &[
            text("AGENT_REPORT_PREFIX", AGENT_REPORT_PREFIX),
            text("NOTES_PREFIX", NOTES_PREFIX),
            text("WRITTEN_FILES", WRITTEN_FILES),
            text("PRELOAD_BLOCKED_FILE", PRELOAD_BLOCKED_FILE),
            text("MEMORY_LOG_PREFIX", MEMORY_LOG_PREFIX),
            text("HISTORY_PREFIX", HISTORY_PREFIX),
            text("RANKS_FOLDER", RANKS_FOLDER),
            text("RANK_LEFT_PREFIX", RANK_LEFT_PREFIX),
            text("RANK_BLOCKED_PREFIX", RANK_BLOCKED_PREFIX),
            text("RANK_STANDING_PREFIX", RANK_STANDING_PREFIX),
            text("RANK_STARTED_PREFIX", RANK_STARTED_PREFIX),
            text("RANK_SPAWNED_PREFIX", RANK_SPAWNED_PREFIX),
            text("RANK_WAITING_PREFIX", RANK_WAITING_PREFIX),
            text("RANK_FAULT_PREFIX", RANK_FAULT_PREFIX),
        ],
    );
    group(
        "The file that all processes of a run share.",
        &[
            text("USAGE_FILE", USAGE_FILE),
            ("USAGE_MAGIC".to_owned(), format!("0x{USAGE_MAGIC:X}")),
            ("USAGE_BYTES".to_owned(), USAGE_BYTES.to_string()),
        ],
    );
    let kinds: Vec<(String, String)> = OwnerKind::ALL
        .iter()
        .map(|&kind| (constant(&format!("{kind:?}")), (kind as u8).to_string()))
        .collect();
    group("`OwnerKind`: what memory is.", &kinds);
    let stages: Vec<(String, String)> = Stage::ALL
        .iter()
        .enumerate()
        .map(|(number, stage)| (constant(&format!("{stage:?}")), number.to_string()))
        .collect();
    group("`Stage`: what a script is doing.", &stages);
    module
}

/// `OptimizerState` as `OPTIMIZER_STATE`.
fn constant(name: &str) -> String {
    let mut words = String::new();
    for character in name.chars() {
        if character.is_ascii_uppercase() && !words.is_empty() {
            words.push('_');
        }
        words.push(character.to_ascii_uppercase());
    }
    words
}

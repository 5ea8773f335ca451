//! The oracle's process may crash, hang up or be missing: the asker must get an answer all the same.
//!
//! Small shell scripts stand in for the program that holds cuDNN.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ghostgpu_oracle::{Answer, Node, Oracle, OracleError, PlanAnswer, Question, Store};

fn script(folder: &Path, body: &str) -> PathBuf {
    let path = folder.join("oracle.sh");
    fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn oracle(program: PathBuf, cache: Option<&Path>) -> Oracle {
    let store = Store::new(cache, 91900, "sm90");
    Oracle::new(
        program,
        PathBuf::from("libcudnn.so.9"),
        "{}".to_owned(),
        store,
    )
}

fn graph(kind: i32) -> Node {
    Node {
        kind,
        attributes: Vec::new(),
    }
}

fn plan(engine: i64) -> Question {
    Question::Plan {
        engine,
        knobs: Vec::new(),
        sm_target: None,
    }
}

fn workspace(bytes: i64) -> Answer {
    Answer::Plan(PlanAnswer {
        status: 0,
        workspace_bytes: bytes,
    })
}

/// Greets, then answers every question with the same plan.
const STEADY: &str = r#"echo '{"Version":91900}'
while read line; do echo '{"plan":{"status":0,"workspace_bytes":4096}}'; done"#;

#[test]
fn an_answer_is_given_and_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let mut first = oracle(script(folder.path(), STEADY), Some(cache.path()));
    assert_eq!(first.ask(&graph(15), &plan(1)), Ok(workspace(4096)));
    // A later run finds the answer without any program.
    let mut later = oracle(PathBuf::from("/nowhere/oracle"), Some(cache.path()));
    assert_eq!(later.ask(&graph(15), &plan(1)), Ok(workspace(4096)));
}

#[test]
fn a_crash_is_an_answer_and_the_next_question_gets_a_new_process() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("crashed-once");
    let body = format!(
        "echo '{{\"Version\":91900}}'\nread line\nif [ ! -e {mark} ]; then touch {mark}; kill -SEGV $$; fi\n\
         echo '{{\"plan\":{{\"status\":0,\"workspace_bytes\":8}}}}'\nread line",
        mark = mark.display()
    );
    let mut oracle = oracle(script(folder.path(), &body), None);
    assert_eq!(oracle.ask(&graph(15), &plan(1)), Ok(Answer::Crashed));
    assert_eq!(oracle.ask(&graph(15), &plan(2)), Ok(workspace(8)));
    // The question that crashed is not asked again in this run.
    assert_eq!(oracle.ask(&graph(15), &plan(1)), Ok(Answer::Crashed));
}

#[test]
fn a_crash_is_not_remembered_for_later_runs() {
    let folder = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let crashing = script(
        folder.path(),
        "echo '{\"Version\":91900}'\nread line\nkill -SEGV $$",
    );
    let mut first = oracle(crashing, Some(cache.path()));
    assert_eq!(first.ask(&graph(15), &plan(1)), Ok(Answer::Crashed));
    let other = tempfile::tempdir().unwrap();
    let mut later = oracle(script(other.path(), STEADY), Some(cache.path()));
    assert_eq!(later.ask(&graph(15), &plan(1)), Ok(workspace(4096)));
}

#[test]
fn a_missing_program_is_named() {
    let mut oracle = oracle(PathBuf::from("/nowhere/oracle"), None);
    let error = oracle.ask(&graph(15), &plan(1)).unwrap_err();
    assert!(error.to_string().contains("/nowhere/oracle"), "{error}");
}

#[test]
fn a_program_that_cannot_open_cudnn_gives_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let failing = script(folder.path(), "echo '{\"Failed\":\"no such library\"}'");
    let mut oracle = oracle(failing, None);
    let expected = OracleError::Library("no such library".to_owned());
    assert_eq!(oracle.ask(&graph(15), &plan(1)), Err(expected));
}

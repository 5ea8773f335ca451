//! `ghostgpu launch`: what reaches the program that it becomes, and what is refused before.

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn launch(words: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ghostgpu"))
        .arg("launch")
        .args(words)
        .env("PYTHONPATH", "/project")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut input = child.stdin.take().expect("a pipe");
    // A program that reads nothing has closed it.
    let _ = input.write_all(b"typed\n");
    drop(input);
    child.wait_with_output().expect("ended")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn without_options_environment_input_and_exit_code_are_the_programs_own() {
    let shell = "read line; echo \"$line $PYTHONPATH ${GHOSTGPU_TRICKS-none}\"; exit 7";
    let done = launch(&["--", "sh", "-c", shell]);
    assert_eq!(done.status.code(), Some(7));
    assert_eq!(text(&done.stdout), "typed /project none\n");
    assert_eq!(text(&done.stderr), "");
}

#[test]
fn tricks_reach_every_python_through_the_environment() {
    let shell = "echo \"$PYTHONPATH\"; echo \"$GHOSTGPU_TRICKS\"";
    let done = launch(&["--inplace", "--checkpoint", "3", "--", "sh", "-c", shell]);
    let told = text(&done.stdout);
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[0].ends_with("tricks/inject:/project"), "{told}");
    assert_eq!(
        lines[1],
        r#"[{"name":"checkpointing","options":{"blocks":"3"}},{"name":"inplace-activations"}]"#
    );
}

#[test]
fn a_signal_ends_the_program_and_not_something_around_it() {
    use std::os::unix::process::ExitStatusExt;
    let done = launch(&["--", "sh", "-c", "kill -TERM $$"]);
    assert_eq!(done.status.signal(), Some(15));
}

#[test]
fn what_cannot_be_right_is_refused_before_anything_runs() {
    for (words, reason) in [
        (&["--amp", "bf16", "--pure-bf16"][..], "exclude each other"),
        (&["--optimizer", "lion"], "is no value of --optimizer"),
        (&["--chunks", "0"], "a whole number from 1 on"),
        (&["--plan", "/does/not/exist.toml"], "cannot be read"),
    ] {
        let done = launch(&[words, &["--", "sh", "-c", "echo ran"]].concat());
        assert_eq!(done.status.code(), Some(2), "{words:?}");
        assert_eq!(text(&done.stdout), "", "{words:?}");
        assert!(
            text(&done.stderr).contains(reason),
            "{}",
            text(&done.stderr)
        );
    }
}

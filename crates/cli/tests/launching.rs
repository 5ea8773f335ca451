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
    // A program that reads nothing may have closed it.
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

/// A folder with files in it.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, contents) in files {
        std::fs::write(folder.path().join(name), contents).expect("written");
    }
    folder
}

fn launch_in(folder: &std::path::Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ghostgpu"))
        .arg("launch")
        .args(words)
        .current_dir(folder)
        .output()
        .expect("ended")
}

const LOOP: &str = "\
import torch

model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    loss = model(torch.randn(4, 8).cuda()).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
";

#[test]
fn a_patch_is_written_instead_of_launching() {
    let files = folder(&[("train.py", LOOP)]);
    let words = [
        "--patch",
        "fix.diff",
        "--amp",
        "bf16",
        "--optimizer",
        "fused",
        "train.py",
        "--lr",
        "1",
    ];
    let done = launch_in(files.path(), &words);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert_eq!(text(&done.stdout), "");
    let told = text(&done.stderr);
    assert!(
        told.contains("optimizer-form: `fused=True` for SGD"),
        "{told}"
    );
    assert!(
        told.contains("apply it with: patch -p0 < fix.diff"),
        "{told}"
    );
    let diff = std::fs::read_to_string(files.path().join("fix.diff")).expect("a diff");
    assert!(diff.starts_with("--- train.py\n+++ train.py\n"), "{diff}");
    assert_eq!(
        std::fs::read_to_string(files.path().join("train.py")).expect("there"),
        LOOP
    );
}

#[test]
fn configuration_files_of_the_command_are_part_of_the_patch() {
    let json =
        "{\n  \"train_micro_batch_size_per_gpu\": 8,\n  \"zero_optimization\": {\"stage\": 2}\n}\n";
    let files = folder(&[("train.py", LOOP), ("ds.json", json)]);
    let words = [
        "--patch",
        "-",
        "--optimizer",
        "offload",
        "--",
        "deepspeed",
        "train.py",
        "--deepspeed",
        "ds.json",
    ];
    let done = launch_in(files.path(), &words);
    let diff = text(&done.stdout);
    assert!(
        diff.starts_with("--- ds.json\n"),
        "{diff} {}",
        text(&done.stderr)
    );
    assert!(
        diff.contains("\"offload_optimizer\": {\"device\": \"cpu\"}"),
        "{diff}"
    );
}

#[test]
fn what_cannot_be_patched_is_refused_with_the_way_that_works() {
    let files = folder(&[
        ("train.py", LOOP),
        ("book.ipynb", "{}"),
        ("bad.py", "for\n"),
    ]);
    for (words, reason, hint) in [
        (
            &["--inplace", "train.py"][..],
            "proved on the running model",
            "`ghostgpu launch` applies it",
        ),
        (&["train.py"], "none was asked for", "--amp bf16"),
        (
            &["--inplace", "book.ipynb"],
            "a notebook cannot be patched",
            "without a change to it",
        ),
        (
            &["--inplace", "bad.py"],
            "bad.py: line 1:",
            "Python can read",
        ),
        (&["--inplace", "none.py"], "cannot read none.py", ""),
        (
            &["--inplace", "-m", "pkg.train"],
            "no Python file",
            "train.py",
        ),
    ] {
        let done = launch_in(files.path(), &[&["--patch", "-"], words].concat());
        let told = text(&done.stderr);
        assert_eq!(
            (done.status.code(), text(&done.stdout)),
            (Some(2), String::new()),
            "{told}"
        );
        assert!(told.contains(reason) && told.contains(hint), "{told}");
    }
}

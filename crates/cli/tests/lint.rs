//! `ghostgpu lint` from outside: files, exit codes, configuration, fixes.

mod common;

use common::{Outcome, World};

/// Keeps every step's graph, on its line 9.
const SUMMED: &str = "\
import torch
from torch import nn

model = nn.Linear(4, 4).cuda()
total = 0
for inputs, targets in torch.utils.data.DataLoader(data):
    loss = nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    total += loss  # the sum
print(total)
";

/// Without a `backward()` every step's activations are kept, too.
const WORSE: &str = "\
import torch
from torch import nn

model = nn.Linear(4, 4).cuda()
total = 0
for inputs, targets in torch.utils.data.DataLoader(data):
    total += nn.functional.mse_loss(model(inputs), targets)
print(total)
";

fn world(files: &[(&str, &str)]) -> World {
    let world = World::new();
    for (name, text) in files {
        world.write(&format!("work/{name}"), text);
    }
    world
}

fn lint(world: &World, arguments: &[&str]) -> Outcome {
    world.run(&[&["lint"], arguments].concat())
}

/// Asks one rule only: the scripts here may have other faults.
fn ask_one(world: &World, arguments: &[&str]) -> Outcome {
    lint(world, &[&["--select", "summed-loss"], arguments].concat())
}

#[test]
fn the_exit_code_says_what_was_found() {
    let world = world(&[
        ("good.py", "x = 1\n"),
        ("bad.py", SUMMED),
        ("worse.py", WORSE),
        ("broken.py", "def (:\n"),
        ("noted.py", "x = 1  # ghostgpu: ignore\n"),
    ]);
    let cases: [(&[&str], i32); 11] = [
        (&["good.py"], 0),
        (&["bad.py"], 3),
        (&["--fail-on", "never", "bad.py"], 0),
        (&["noted.py"], 0),
        (&["--fail-on", "note", "noted.py"], 3),
        (&["--fail-on", "error", "bad.py"], 0),
        (&["--fail-on", "error", "worse.py"], 3),
        (&["broken.py"], 2),
        (&["bad.py", "broken.py"], 2),
        (&["--ignore", "summed-loss", "bad.py"], 0),
        (&["--fail-on", "sometimes", "bad.py"], 2),
    ];
    for (arguments, code) in cases {
        lint(&world, arguments).assert_code(code);
    }
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_checked() {
    let world = world(&[
        ("bad.py", SUMMED),
        ("broken.py", &format!("{SUMMED}def (:\n")),
        ("empty.py", ""),
        ("look.ipynb", "{"),
        ("folder.py/inner.py", "x = 1\n"),
    ]);
    std::fs::write(world.path("work/binary.py"), b"\x7fELF\xff\xfe\0\0").expect("file");
    std::os::unix::fs::symlink("nowhere.py", world.path("work/link.py")).expect("link");
    let outcome = ask_one(&world, &[".", "missing.py"]);
    outcome.assert_code(2);
    let expected = [
        "bad.py:9:5: warning: `total` keeps",
        "broken.py:9:5: warning: `total` keeps",
        "broken.py:11:5: error: ",
        "binary.py: error: not UTF-8 text",
        "look.ipynb: error: not a notebook: its JSON is broken",
        "link.py: error: cannot be read: a link to `nowhere.py`, which does not exist",
        "missing.py: error: does not exist",
        "2 findings in 8 files: 2 warnings",
        "5 files could not be read in full",
    ];
    for line in expected {
        assert!(
            outcome.stdout.contains(line),
            "`{line}` is not in {}",
            outcome.stdout
        );
    }
    assert!(!outcome.stdout.contains("empty.py"), "{}", outcome.stdout);
}

#[test]
fn hostile_nesting_is_refused_in_a_sentence_and_the_rest_goes_on() {
    let deep = 100_000;
    let world = world(&[
        ("attributes.py", &format!("x = a{}\n", ".b".repeat(500_000))),
        ("bad.py", SUMMED),
        ("brackets.py", &format!("x = {}\n", "[".repeat(deep))),
        (
            "lambdas.py",
            &format!("x = {}1\n", "lambda a, b: ".repeat(deep)),
        ),
        ("nots.py", &format!("x = {}1\n", "not ".repeat(deep))),
        (
            "parens.py",
            &format!("x = {}1{}\n", "(".repeat(deep), ")".repeat(deep)),
        ),
        ("pluses.py", &format!("x = a{}\n", "+a".repeat(500_000))),
        (
            "still_fine.py",
            &format!(
                "x = a{}\ny = {}1{}\n",
                ".b".repeat(4_000),
                "(".repeat(4_000),
                ")".repeat(4_000)
            ),
        ),
    ]);
    let outcome = ask_one(&world, &[]);
    outcome.assert_code(2);
    let refused = outcome
        .stdout
        .matches("nested more than 5000 levels deep")
        .count();
    assert_eq!(refused, 6, "{}", outcome.stdout);
    assert!(
        outcome.stdout.contains("1 finding in 8 files"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn a_folder_without_python_is_said_to_be_one() {
    let world = world(&[("notes/readme.txt", "")]);
    let outcome = lint(&world, &["notes"]);
    outcome.assert_failure("there is no Python file and no notebook in `notes`");
    outcome.assert_failure("there is nothing to check");
}

#[test]
fn the_nearest_configuration_decides() {
    let world = world(&[
        (
            "a/pyproject.toml",
            "[tool.ghostgpu.lint]\nignore = ['summed-loss']\n",
        ),
        ("a/x.py", SUMMED),
        ("a/deep/er/x.py", SUMMED),
        // A file without our section does not count.
        ("a/deep/pyproject.toml", "[project]\nname = 'deep'\n"),
        (
            "b/pyproject.toml",
            "[tool.ghostgpu.lint]\nexclude = ['old']\n[tool.ghostgpu.lint.severity]\nkept-graphs = 'note'\n[tool.ghostgpu.lint.per-file-ignores]\n'sub/*.py' = ['all']\n",
        ),
        ("b/x.py", SUMMED),
        ("b/old/x.py", SUMMED),
        ("b/sub/x.py", SUMMED),
        ("c/x.py", SUMMED),
    ]);
    let places = |outcome: &Outcome| -> Vec<String> {
        let lines = outcome.stdout.lines();
        let first = |line: &str| line.split(" `total`").next().map(str::to_owned);
        lines
            .filter(|line| line.contains("`total`"))
            .filter_map(first)
            .collect()
    };
    let outcome = lint(&world, &[]);
    outcome.assert_code(3);
    assert_eq!(
        places(&outcome),
        ["b/x.py:9:5: note:", "c/x.py:9:5: warning:"]
    );
    // The command line replaces the selection, and leaves out more.
    let outcome = lint(&world, &["--exclude", "c", "--config", "b/pyproject.toml"]);
    assert_eq!(
        places(&outcome),
        [
            "a/deep/er/x.py:9:5: note:",
            "a/x.py:9:5: note:",
            "b/x.py:9:5: note:"
        ]
    );
    // A file that is named is checked even if folders exclude it.
    let outcome = lint(&world, &["b/old/x.py"]);
    assert_eq!(places(&outcome), ["b/old/x.py:9:5: note:"]);
}

#[test]
fn a_wrong_configuration_is_an_error_with_a_hint() {
    let world = world(&[
        ("x.py", SUMMED),
        (
            "pyproject.toml",
            "[tool.ghostgpu.lint]\nselect = ['sumed-loss']\n",
        ),
    ]);
    let outcome = lint(&world, &["x.py"]);
    outcome.assert_failure("pyproject.toml: `select`: unknown rule `sumed-loss`");
    assert!(outcome.stderr.contains("hint: did you mean `summed-loss`?"));
    let outcome = lint(&world, &["--select", "keptgraphs", "x.py"]);
    outcome.assert_failure("`--select`: unknown rule `keptgraphs`");
    let outcome = lint(&world, &["--config", "nowhere.toml", "x.py"]);
    outcome.assert_failure("cannot read `nowhere.toml`");
}

#[test]
fn a_fix_changes_its_line_and_nothing_else() {
    let windows = format!("\u{feff}{}", SUMMED.trim_end().replace('\n', "\r\n"));
    let world = world(&[("unix.py", SUMMED), ("windows.py", &windows)]);
    let shown = ask_one(&world, &["--diff"]);
    shown.assert_code(3);
    assert!(
        shown
            .stdout
            .contains("-    total += loss  # the sum\n+    total += loss.")
    );
    assert!(
        shown
            .stderr
            .contains("2 would be fixed, nothing was written")
    );
    let read =
        |name: &str| std::fs::read_to_string(world.path(&format!("work/{name}"))).expect("file");
    assert_eq!(read("windows.py"), windows);
    let fixed = ask_one(&world, &["--fix"]);
    fixed.assert_code(0);
    assert_eq!(fixed.stdout, "no findings in 2 files; 2 fixed\n");
    let unix = read("unix.py");
    let changed: Vec<&str> = unix
        .lines()
        .filter(|line| !SUMMED.lines().any(|old| old == *line))
        .collect();
    assert_eq!(changed.len(), 1, "{unix}");
    assert!(changed[0].starts_with("    total += loss.") && changed[0].ends_with("  # the sum"));
    assert_eq!(
        read("windows.py"),
        format!("\u{feff}{}", unix.trim_end().replace('\n', "\r\n"))
    );
}

#[test]
fn a_comment_switches_a_finding_off() {
    let ignored = SUMMED.replace("# the sum", "# ghostgpu: ignore[summed-loss]");
    let world = world(&[("x.py", &ignored)]);
    let outcome = ask_one(&world, &["--fail-on", "note"]);
    outcome.assert_code(0);
    assert_eq!(outcome.stdout, "no findings in 1 file\n");
}

#[test]
fn rules_are_listed_and_explained() {
    let world = world(&[]);
    let outcome = lint(&world, &["--rules"]);
    outcome.assert_code(0);
    assert!(
        outcome.stdout.contains("\n  summed-loss"),
        "{}",
        outcome.stdout
    );
    assert!(
        outcome
            .stdout
            .lines()
            .all(|line| line.chars().count() <= 80),
        "{}",
        outcome.stdout
    );
    let outcome = lint(&world, &["--rules", "--json"]);
    outcome.assert_code(0);
    let document: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert_eq!(document["schema"], "ghostgpu.lint-rules/1");
    let outcome = lint(&world, &["--explain", "summed-loss"]);
    outcome.assert_code(0);
    assert!(
        outcome.stdout.starts_with("# summed-loss\n"),
        "{}",
        outcome.stdout
    );
    assert!(outcome.stdout.contains("## When it is fine"));
    let outcome = lint(&world, &["--explain", "summed_loss"]);
    outcome.assert_failure("unknown rule `summed_loss`");
    assert!(outcome.stderr.contains("did you mean `summed-loss`?"));
}

#[test]
fn a_script_on_standard_input_is_checked() {
    use std::io::Write;
    let world = world(&[]);
    let mut child = world
        .command(&["lint", "-"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(SUMMED.as_bytes()).expect("written");
    drop(input);
    let outcome = Outcome::from(child.wait_with_output().expect("the program ends"));
    outcome.assert_code(3);
    assert!(
        outcome.stdout.starts_with("-:9:5: warning:"),
        "{}",
        outcome.stdout
    );
}

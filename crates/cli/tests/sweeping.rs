//! `cards` and `sweep` with scripts that imitate rehearsals without torch.

mod common;

use common::World;

/// Needs 1 GiB for every sample of the batch, fails with a batch of 7, and writes down that it ran. It names an
/// argument that changes nothing.
const TRAINING: &str = r#"
import argparse
GIB = 1 << 30
parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--name", default="a")
options = parser.parse_args()
open("runs", "a").write(f"{options.batch_size} ")
if options.batch_size == 7:
    report(steps=0, exception="ValueError: seven is odd")
    sys.exit(1)
needed = options.batch_size * GIB
if needed > SESSION["devices"][0]["total_bytes"] and not SESSION["unlimited_memory"]:
    report(peaks=peaks(0, 0), ooms=[oom()], used_cuda=True)
    sys.exit(1)
peak_on_card(needed)
report(peaks=peaks(needed, needed), steps=3, used_cuda=True)
"#;

fn world() -> World {
    let world = World::new();
    world.script("train.py", TRAINING);
    // The executor's files are next to the agent, as in an installation.
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../python/ghostgpu/sweep_executors");
    for folder in ["sweep_executors", "tricks/inject"] {
        std::fs::create_dir_all(world.path(folder)).expect("folder");
    }
    for entry in std::fs::read_dir(source).expect("folder").flatten() {
        if entry.path().is_file() {
            let target = world.path("sweep_executors").join(entry.file_name());
            std::fs::copy(entry.path(), target).expect("file");
        }
    }
    world
}

fn runs(world: &World) -> usize {
    let text = std::fs::read_to_string(world.path("work/runs")).unwrap_or_default();
    text.split_whitespace().count()
}

fn read(world: &World, name: &str) -> String {
    std::fs::read_to_string(world.path(&format!("work/{name}"))).expect("a file")
}

#[test]
fn cards_are_told_and_the_smallest_is_named() {
    let world = world();
    let words = [
        "cards",
        "--gpu",
        "t4,a100,3060",
        "--csv",
        "out.csv",
        "train.py",
        "--batch-size",
        "13",
    ];
    let outcome = world.run(&words);
    outcome.assert_code(0);
    assert!(
        outcome.stdout.starts_with("smallest card  T4"),
        "{}",
        outcome.stdout
    );
    let lines = read(&world, "out.csv");
    let verdicts: Vec<&str> = lines
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(4).unwrap_or(""))
        .collect();
    assert_eq!(verdicts, ["fits", "fits", "does-not-fit"], "{lines}");
}

#[test]
fn a_script_that_fails_has_no_card_and_its_own_exit_code() {
    let outcome = world().run(&["cards", "train.py", "--batch-size", "7"]);
    outcome.assert_code(1);
    assert!(
        outcome.stdout.contains("ValueError: seven is odd"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn a_sweep_is_a_table_in_which_failures_are_rows_and_what_is_known_is_not_rehearsed_again() {
    let world = world();
    let words = [
        "sweep",
        "--gpu",
        "3060,a100",
        "--arg",
        "--batch-size=4,7,20",
        "--csv",
        "out.csv",
        "train.py",
    ];
    let outcome = world.run(&words);
    outcome.assert_code(0);
    let rows: Vec<String> = read(&world, "out.csv")
        .lines()
        .skip(1)
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            format!("{} {} {}", fields[0], fields[1], fields[3])
        })
        .collect();
    assert_eq!(
        rows,
        [
            "4 RTX 3060 12GB fits",
            "4 A100 SXM4 40GB fits",
            "7 RTX 3060 12GB script-failed",
            "7 A100 SXM4 40GB script-failed",
            "20 RTX 3060 12GB does-not-fit",
            "20 A100 SXM4 40GB fits",
        ]
    );
    assert!(
        outcome.stdout.contains("seven is odd"),
        "{}",
        outcome.stdout
    );
    let first = runs(&world);
    // Only failures are rehearsed again.
    world.run(&words).assert_code(0);
    assert_eq!(runs(&world), first + 1);
    let fresh: Vec<&str> = words[..5]
        .iter()
        .copied()
        .chain(["--fresh", "train.py"])
        .collect();
    world.run(&fresh).assert_code(0);
    assert_eq!(runs(&world), 2 * first + 1);
}

#[test]
fn an_argument_that_changes_nothing_is_told() {
    let outcome = world().run(&["sweep", "--gpu", "3060", "--arg", "--name=a,b", "train.py"]);
    outcome.assert_code(0);
    assert!(
        outcome.stdout.contains("no effect      --name"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn what_no_sweep_can_be_made_of_is_refused_before_anything_runs() {
    let world = world();
    for (words, sentence) in [
        (&["--gpu", "3060,409o"][..], "unknown card `409o`"),
        (
            &["--gpu", "3060", "--arg", "--batch-size="],
            "has no values",
        ),
        (&["--arg", "--batch-size=8"], "no card was named"),
        (
            &["--gpu", "3060", "--memory", "8GiB"],
            "--memory is about one card",
        ),
        (&["--gpu", "3060", "--jobs", "0"], "--jobs"),
        (
            &["--gpu", "3060", "--report", "missing/x.html"],
            "cannot write",
        ),
    ] {
        let words: Vec<&str> = [&["sweep"], words, &["train.py"]].concat();
        let outcome = world.run(&words);
        outcome.assert_code(2);
        assert!(
            outcome.stderr.contains(sentence),
            "{words:?}: {}",
            outcome.stderr
        );
    }
    assert_eq!(runs(&world), 0);
}

#[test]
fn an_engine_that_is_not_installed_is_named_with_the_way_to_install_it() {
    let world = world();
    let words = [
        "sweep",
        "--gpu",
        "3060",
        "--arg",
        "--batch-size=4",
        "--executor",
        "submitit",
        "train.py",
    ];
    let outcome = world.run(&words);
    // Where it is installed, it does what it should.
    if !outcome.stderr.contains("is not installed") {
        outcome.assert_code(0);
        return;
    }
    outcome.assert_code(2);
    assert!(
        outcome.stderr.contains("pip install submitit"),
        "{}",
        outcome.stderr
    );
    assert_eq!(runs(&world), 0);
}

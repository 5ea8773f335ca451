//! `ghostgpu lint --measure`: a script without its fixes and with them.

mod common;

use common::{Outcome, World};

/// Just enough of torch to keep a graph, and to lose it by `detach`.
const NN: &str = "
class Loss:
    def __init__(self, kept):
        self.kept = kept
    def detach(self):
        return Loss(0)
    def item(self):
        return Loss(0)
    def backward(self):
        pass
    def __radd__(self, other):
        return self + other
    def __add__(self, other):
        return Loss(self.kept + getattr(other, 'kept', 0))
class Optimizer:
    def step(self):
        pass
class Linear:
    def __init__(self, *_):
        pass
    def cuda(self):
        return self
    def __call__(self, inputs):
        return inputs
class functional:
    def mse_loss(output, target):
        return Loss(1 << 30)
";

/// Needs its folder, its neighbour, its arguments and its name; keeps 3 GiB twice.
const SCRIPT: &str = "
import torch
from torch import nn
import neighbour

assert __name__ == '__main__'
assert __file__ == os.path.abspath('train.py'), __file__
assert sys.argv == ['train.py', '--size', '7'], sys.argv
assert open('data.txt').read() == 'data'
assert '_run' not in globals()
model = nn.Linear(4, 4).cuda(); optimizer = nn.Optimizer()
total = 0
for inputs, targets in [(1, 2)] * 3:
    loss = nn.functional.mse_loss(model(inputs), targets)
    loss.backward(); optimizer.step()
    total += loss
SECOND
kept = total.kept + OTHER
peak_on_card(kept + (1 << 30))
report(peaks=peaks(kept, kept), steps=3, used_cuda=True)
";

const SECOND: &str = "
other = 0
for inputs, targets in [(1, 2)] * 3:
    loss = nn.functional.mse_loss(model(inputs), targets)
    loss.backward(); optimizer.step()
    other += loss
";

fn world(script: &str) -> World {
    let world = World::new();
    world.write("site/torch/nn.py", NN);
    world.write("work/neighbour.py", "");
    world.write("work/data.txt", "data");
    world.script("train.py", script);
    world
}

fn measure(world: &World, options: &[&str]) -> Outcome {
    let start = [
        "lint",
        "--measure",
        "--select",
        "summed-loss",
        "--gpu",
        "3060",
    ];
    world.run(&[&start, options, &["train.py", "--", "--size", "7"]].concat())
}

#[test]
fn one_fix_is_measured_against_the_script_as_it_is() {
    let world = world(&SCRIPT.replace("SECOND", "").replace("OTHER", "0"));
    let before = std::fs::read(world.path("work/train.py")).expect("the script");
    let outcome = measure(&world, &["--json", "out.json"]);
    outcome.assert_code(0);
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert!(
        lines[0].starts_with("fits           with the fix of summed-loss: needs 1.00 GiB"),
        "{outcome:#?}"
    );
    let shows = |words: &[&str]| {
        let is_it = |line: &&str| words.iter().all(|word| line.contains(word));
        assert!(lines.iter().any(is_it), "{words:?} {outcome:#?}");
    };
    shows(&["saves ", "3.00 GiB on the card"]);
    shows(&["as it is", "4.00 GiB", "fits"]);
    shows(&["with the fix of summed-loss", "1.00 GiB  3.00 GiB", "fits"]);
    let json = world.json("work/out.json");
    assert_eq!(json["runs"].as_array().map(Vec::len), Some(2));
    assert_eq!(json["runs"][1]["saved_device_bytes"], 3u64 << 30);
    assert_eq!(
        std::fs::read(world.path("work/train.py")).expect("the script"),
        before
    );
    world.assert_no_leftovers();
}

#[test]
fn several_fixes_are_measured_alone_and_together() {
    let script = SCRIPT
        .replace("SECOND", SECOND)
        .replace("OTHER", "other.kept");
    let world = world(&script);
    let outcome = measure(&world, &["--json", "-"]);
    outcome.assert_code(0);
    let json: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    let saved: Vec<(&str, u64)> = json["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .map(|run| {
            let variant = run["variant"].as_str().expect("a word");
            (
                variant,
                run["saved_allocated_bytes"].as_u64().expect("bytes") >> 30,
            )
        })
        .collect();
    assert_eq!(
        saved,
        [
            ("as-it-is", 0),
            ("one-fix", 3),
            ("one-fix", 3),
            ("all-fixes", 6)
        ]
    );
}

#[test]
fn what_does_not_fit_as_it_is_may_fit_with_its_fix() {
    let script = "
if total.kept and not SESSION['unlimited_memory']:
    peak_on_card(11 << 30)
    report(peaks=peaks(11 << 30, 11 << 30), ooms=[oom()], used_cuda=True)
    sys.exit(1)
";
    let script = SCRIPT.replace("SECOND", script).replace("OTHER", "0");
    let world = world(&script);
    let outcome = measure(&world, &[]);
    outcome.assert_code(0);
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert!(lines[0].starts_with("fits "), "{outcome:#?}");
    let is_before = |line: &&str| line.contains("as it is") && line.ends_with("does not fit");
    let is_after = |line: &&str| line.contains("3.00 GiB") && line.ends_with("  fits");
    assert!(lines.iter().any(is_before), "{outcome:#?}");
    assert!(lines.iter().any(is_after), "{outcome:#?}");
}

#[test]
fn a_script_that_fails_by_itself_is_said_to() {
    let world = world(
        &SCRIPT
            .replace("SECOND", "raise KeyError('x')")
            .replace("OTHER", "0"),
    );
    let outcome = measure(&world, &[]);
    outcome.assert_code(1);
    assert!(
        outcome.stderr.contains("the script failed as it is"),
        "{outcome:#?}"
    );
    assert!(outcome.stderr.contains("KeyError: 'x'"), "{outcome:#?}");
    world.assert_no_leftovers();
}

#[test]
fn what_cannot_be_measured_is_said_in_a_sentence() {
    let world = world("x = 1");
    measure(&world, &[]).assert_failure("there is no fix to measure");
    let cases: [(&[&str], &str); 5] = [
        (
            &["--measure", "--gpu", "3060"],
            "--measure takes one script",
        ),
        (
            &["--measure", "--gpu", "3060", "x.ipynb"],
            "is a notebook, and --measure takes a script",
        ),
        (
            &["--measure", "--gpu", "3060", "nowhere.py"],
            "does not exist",
        ),
        (
            &["--gpu", "3060", "train.py"],
            "`--gpu` belongs to --measure",
        ),
        (&["train.py", "--", "--size"], "`--` belongs to --measure"),
    ];
    for (arguments, sentence) in cases {
        let outcome = world.run(&[&["lint"], arguments].concat());
        outcome.assert_failure(sentence);
    }
}

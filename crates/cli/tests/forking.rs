//! Rehearsals in forks: a script that waits at its size point, played without torch.

mod common;

use common::{Outcome, World, send, start, wait_until};

/// Plays the agent at a size point: greets, and answers each request as a fork would, from `fork(batch)`.
///
/// A job that is not held takes its batch from the session. Needs 1 GiB and 2 GiB for every sample.
const SERVER: &str = r#"
import socket
GIB = 1 << 30
REQUEST = SESSION["size_point"]
POINT = {"is_found": True, "place": "the DataLoader at train.py:9", "batch": 4}
def outcome(batch, run_dir):
    global RUN_DIR
    RUN_DIR = run_dir
    needed = (1 + 2 * batch) * GIB
    if needed > 11 * GIB:
        report(peaks=peaks(11 * GIB, 11 * GIB), ooms=[oom()], size_point=POINT, used_cuda=True)
        return 1
    peak_on_card(needed)
    report(peaks=peaks(needed, needed), steps=3, size_point=POINT, used_cuda=True)
    return 0
def serve(fork):
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.connect(REQUEST["socket"])
    lines = line.makefile("rw")
    print(json.dumps(POINT), file=lines, flush=True)
    for request in lines:
        request = json.loads(request)
        open("forks", "a").write(f"{request['batch']} ")
        fork(request["batch"], request["run_dir"], lines)
    report(steps=0, size_point=POINT, stopped_by_step_limit=True)
def answer(batch, run_dir, lines):
    print(json.dumps({"status": outcome(batch, run_dir)}), file=lines, flush=True)
"#;

fn world(fork: &str) -> World {
    let world = World::new();
    let script = format!(
        "{SERVER}\n{fork}\nif REQUEST and REQUEST['socket']:\n    serve(fork)\nelse:\n    \
         open('runs', 'a').write(f\"{{REQUEST['batch']}} \")\n    \
         sys.exit(outcome(REQUEST['batch'], RUN_DIR))\n"
    );
    world.script("train.py", &script);
    world
}

fn max_batch(world: &World) -> Outcome {
    world.run(&[
        "max-batch",
        "--gpu",
        "3060",
        "--json",
        "out.json",
        "train.py",
    ])
}

fn written(world: &World, name: &str) -> Vec<u64> {
    let text = std::fs::read_to_string(world.path(&format!("work/{name}"))).unwrap_or_default();
    let numbers = text.split_whitespace().map(|word| word.parse());
    numbers.map(|number| number.expect("a number")).collect()
}

#[test]
fn the_largest_batch_is_found_in_forks_and_confirmed_by_one_whole_run() {
    let world = world("fork = answer");
    max_batch(&world).assert_code(0);
    let json = world.json("work/out.json");
    assert_eq!(json["largest_batch"], 5);
    assert_eq!(json["confirmation"], "equal");
    assert!(json["not_forked"].is_null());
    assert!(written(&world, "forks").contains(&6));
    assert_eq!(written(&world, "runs"), [5]);
    world.assert_no_leftovers();
}

#[test]
fn a_fork_that_ends_the_line_leads_to_whole_runs_with_the_reason() {
    let world = world("def fork(batch, run_dir, lines):\n    os._exit(0)");
    max_batch(&world).assert_code(0);
    let json = world.json("work/out.json");
    assert_eq!(json["largest_batch"], 5);
    assert_eq!(json["confirmation"], "found-by-runs");
    let because = json["not_forked"].as_str().expect("a reason");
    assert!(
        because.contains("the script ended in the middle of a rehearsal"),
        "{because}"
    );
    assert_eq!(written(&world, "forks"), [4]);
    assert_eq!(written(&world, "runs").first(), Some(&4));
    world.assert_no_leftovers();
}

#[test]
fn a_script_that_cannot_be_forked_is_searched_in_whole_runs() {
    let world = world("POINT['unforkable'] = 'the script runs threads'\nfork = answer");
    max_batch(&world).assert_code(0);
    let json = world.json("work/out.json");
    assert_eq!(json["largest_batch"], 5);
    assert_eq!(json["not_forked"], "since the script runs threads");
    assert!(written(&world, "forks").is_empty());
}

#[test]
fn an_interrupt_during_a_fork_ends_everything() {
    let world = world(
        "import time\ndef fork(batch, run_dir, lines):\n    open('ready', 'w')\n    time.sleep(600)",
    );
    let child = start(&world, &["max-batch", "--gpu", "3060", "train.py"]);
    wait_until("a fork is under way", || world.path("work/ready").exists());
    send(&child, libc::SIGINT);
    let outcome = Outcome::from(child.wait_with_output().expect("ends"));
    outcome.assert_code(130);
    assert!(
        outcome.stderr.contains("ghostgpu: interrupted"),
        "{outcome:#?}"
    );
    assert!(written(&world, "runs").is_empty(), "nothing came after it");
    world.assert_no_leftovers();
}

#[test]
fn a_time_limit_ends_the_search() {
    let world = world("import time\ndef fork(batch, run_dir, lines):\n    time.sleep(600)");
    let arguments = ["max-batch", "--gpu", "3060", "--timeout", "3s", "train.py"];
    let outcome = world.run(&arguments);
    outcome.assert_failure("the script did not end in time (--timeout)");
    assert!(written(&world, "runs").is_empty());
    world.assert_no_leftovers();
}

//! Time limits and Ctrl-C end everything that a script has started, and leave nothing behind.

mod common;

use std::time::{Duration, Instant};

use common::{Outcome, World, is_alive, send, start, wait_until};

/// Starts a grandchild in a session of its own, as `torchrun` does, and then hangs.
const HANGING: &str = r#"
import subprocess, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
                         start_new_session=True)
open("grandchild", "w").write(str(child.pid))
try:
    open("ready", "w")
    time.sleep(600)
finally:
    open("cleaned-up", "w")
"#;

#[track_caller]
fn assert_all_ended(world: &World) {
    let grandchild = world.path("work/grandchild");
    assert!(grandchild.exists(), "the script had started its child");
    wait_until("the grandchild ends", || !is_alive(&grandchild));
    world.assert_no_leftovers();
}

#[test]
fn a_script_that_hangs_is_ended_when_its_time_is_over() {
    let world = World::new();
    world.script("train.py", HANGING);
    let started = Instant::now();
    let outcome = world.rehearse(&["--timeout", "1500ms", "--json", "out.json", "train.py"]);
    outcome.assert_failure("the script did not end within 1.5 s (--timeout)");
    assert!(started.elapsed() < Duration::from_secs(15));
    assert!(world.path("work/cleaned-up").exists(), "`finally` was run");
    assert!(world.json("work/out.json")["fits"].is_null());
    assert_all_ended(&world);
}

#[test]
fn a_script_that_ignores_every_request_is_killed() {
    let world = World::new();
    world.script(
        "train.py",
        "import signal, time\n\
         for number in (signal.SIGINT, signal.SIGTERM): signal.signal(number, signal.SIG_IGN)\n\
         time.sleep(600)",
    );
    let started = Instant::now();
    world
        .rehearse(&["--timeout", "500ms", "train.py"])
        .assert_failure("did not end within 0.5 s");
    assert!(started.elapsed() < Duration::from_secs(20));
    world.assert_no_leftovers();
}

#[test]
fn an_interrupt_ends_everything_and_writes_no_result() {
    let world = World::new();
    world.script("train.py", HANGING);
    let child = start(
        &world,
        &["run", "--gpu", "3060", "--json", "out.json", "train.py"],
    );
    wait_until("the script is ready", || world.path("work/ready").exists());
    send(&child, libc::SIGINT);
    let outcome = Outcome::from(child.wait_with_output().expect("ends"));
    outcome.assert_code(130);
    assert!(
        outcome.stderr.contains("ghostgpu: interrupted"),
        "{}",
        outcome.stderr
    );
    assert!(world.path("work/cleaned-up").exists(), "`finally` was run");
    assert!(!world.path("work/out.json").exists());
    assert_all_ended(&world);
}

/// Runs out of memory on the card; with unlimited memory, says that it is there and hangs.
const HANGING_IN_NEED: &str = r#"
import time
open("starts", "a").write("x")
if not SESSION["unlimited_memory"]:
    peak_on_card(11 << 30)
    report(peaks=peaks(11 << 30, 11 << 30), ooms=[oom()], used_cuda=True)
    sys.exit(1)
open("ready", "w")
time.sleep(600)
"#;

/// Interrupts the command when the script is ready, and sees that nothing came after it.
#[track_caller]
fn assert_interrupt_ends_it(world: &World, arguments: &[&str], starts: usize) {
    let outcome = interrupted(world, arguments);
    assert_eq!(outcome.stdout, "");
    let started = std::fs::read_to_string(world.path("work/starts")).expect("starts");
    assert_eq!(started.len(), starts);
}

/// Interrupts the command when the script is ready; everything that was started has ended then.
#[track_caller]
fn interrupted(world: &World, arguments: &[&str]) -> Outcome {
    let child = start(world, arguments);
    wait_until("the script is ready", || world.path("work/ready").exists());
    send(&child, libc::SIGINT);
    let outcome = Outcome::from(child.wait_with_output().expect("ends"));
    outcome.assert_code(130);
    let sentence = "ghostgpu: interrupted: everything the script had started was ended";
    assert_eq!(outcome.stderr.matches(sentence).count(), 1, "{outcome:#?}");
    world.assert_no_leftovers();
    outcome
}

#[test]
fn an_interrupt_while_the_need_is_measured_ends_everything() {
    let world = World::new();
    world.script("train.py", HANGING_IN_NEED);
    let arguments = ["run", "--gpu", "3060", "--json", "out.json", "train.py"];
    assert_interrupt_ends_it(&world, &arguments, 2);
    assert!(!world.path("work/out.json").exists());
}

#[test]
fn an_interrupt_while_explain_measures_the_need_ends_everything() {
    let world = World::new();
    world.script("train.py", HANGING_IN_NEED);
    world.write(
        "work/error.log",
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a \
         total capacity of 11.63 GiB of which 1.66 GiB is free. Of the allocated memory 9.09 GiB is \
         allocated by PyTorch, and 0.84 GiB is reserved by PyTorch but unallocated.",
    );
    let arguments = [
        "explain",
        "error.log",
        "--gpu",
        "3060",
        "--script",
        "train.py",
    ];
    assert_interrupt_ends_it(&world, &arguments, 2);
}

#[test]
fn an_interrupt_while_lint_measures_ends_everything() {
    let world = World::new();
    // The script never reaches this code, but the linter finds it.
    let fixable = "
import torch
from torch import nn
model = nn.Linear(4, 4).cuda()
total = 0
for inputs, targets in loader:
    loss = nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    total += loss
";
    world.script("train.py", &format!("{HANGING_IN_NEED}{fixable}"));
    let arguments = [
        "lint",
        "--measure",
        "--select",
        "summed-loss",
        "--gpu",
        "3060",
        "train.py",
    ];
    assert_interrupt_ends_it(&world, &arguments, 2);
}

/// Completes with unlimited memory only. With tricks, says that it is there and hangs.
const HANGING_WITH_TRICKS: &str = r#"
import time
open("starts", "a").write("x")
if SESSION.get("tricks"):
    open("ready", "w")
    time.sleep(600)
if not SESSION["unlimited_memory"]:
    peak_on_card(11 << 30)
    report(peaks=peaks(11 << 30, 11 << 30), ooms=[oom()], used_cuda=True)
    sys.exit(1)
peak_on_card(14 << 30)
report(peaks=peaks(13 << 30, 13 << 30), steps=3, used_cuda=True)
"#;

#[test]
fn an_interrupt_of_a_plan_shows_what_is_known_and_starts_nothing_more() {
    let world = World::new();
    world.script("train.py", HANGING_WITH_TRICKS);
    let arguments = [
        "plan",
        "--gpu",
        "3060",
        "--json",
        "out.json",
        "--report",
        "page.html",
        "train.py",
    ];
    let outcome = interrupted(&world, &arguments);
    let known = "no plan        nothing found so far fits";
    assert!(outcome.stdout.contains(known), "{outcome:#?}");
    assert_eq!(world.json("work/out.json")["exit_code"], 130);
    // The page would take one more rehearsal.
    assert!(!world.path("work/page.html").exists());
}

#[test]
fn an_interrupt_while_explain_looks_for_a_plan_shows_what_the_log_means() {
    let world = World::new();
    world.script("train.py", HANGING_WITH_TRICKS);
    world.write(
        "work/error.log",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB.",
    );
    let arguments = [
        "explain",
        "error.log",
        "--gpu",
        "3060",
        "--script",
        "train.py",
    ];
    let outcome = interrupted(&world, &arguments);
    assert!(outcome.stdout.contains("3.00 GiB"), "{outcome:#?}");
}

#[test]
fn an_interrupt_of_a_comparison_of_cards_shows_the_cards_that_are_known() {
    let world = World::new();
    // The first card is the one with the most memory.
    world.script(
        "train.py",
        r#"
import time
open("starts", "a").write("x")
if len(open("starts").read()) > 1:
    open("ready", "w")
    time.sleep(600)
peak_on_card(1 << 30)
report(peaks=peaks(1 << 30, 1 << 30), steps=3, used_cuda=True)
"#,
    );
    let arguments = [
        "cards", "--gpu", "t4,a100", "--json", "out.json", "train.py",
    ];
    let outcome = interrupted(&world, &arguments);
    assert!(outcome.stdout.contains("A100"), "{outcome:#?}");
    let document = world.json("work/out.json");
    assert_eq!(document["exit_code"], 130);
    assert_eq!(document["not_rehearsed"][0], "T4");
}

#[test]
fn a_request_to_terminate_is_passed_on() {
    let world = World::new();
    world.script("train.py", HANGING);
    let child = start(&world, &["run", "--gpu", "3060", "train.py"]);
    wait_until("the script is ready", || world.path("work/ready").exists());
    send(&child, libc::SIGTERM);
    let outcome = Outcome::from(child.wait_with_output().expect("ends"));
    outcome.assert_code(143);
    assert_all_ended(&world);
}

#[test]
fn what_a_script_leaves_running_is_ended_with_it() {
    let world = World::new();
    world.script(
        "train.py",
        r#"
import subprocess
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
                         start_new_session=True, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
open("grandchild", "w").write(str(child.pid))
"#,
    );
    world.rehearse(&["train.py"]).assert_code(6);
    assert_all_ended(&world);
}

#[test]
fn the_script_gets_an_ordinary_signal_mask() {
    let world = World::new();
    world.script(
        "train.py",
        "import signal; print('blocked', sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))",
    );
    let outcome = world.rehearse(&["train.py"]);
    outcome.assert_code(6);
    assert!(
        outcome.stdout.starts_with("blocked []"),
        "{}",
        outcome.stdout
    );
}

/// Writes a checkpoint, says so in the run's list, and hangs.
const HANGING_AFTER_SAVING: &str = r#"
import time
with open(os.path.join(RUN_DIR, "written-files.jsonl"), "a") as listed:
    listed.write(json.dumps({"path": os.path.abspath("zeros.pt")}) + "\n")
open("zeros.pt", "w").close()
open("pid", "w").write(str(os.getpid()))
open("ready", "w")
time.sleep(600)
"#;

#[test]
fn what_a_killed_run_left_is_removed_by_the_next_start() {
    let world = World::new();
    world.script("train.py", HANGING_AFTER_SAVING);
    world.script("short.py", "");
    let mut killed = start(&world, &["run", "--gpu", "3060", "train.py"]);
    wait_until("the script is ready", || world.path("work/ready").exists());
    // While it runs, its files are not touched.
    world.rehearse(&["short.py"]);
    assert!(world.path("work/zeros.pt").exists());
    send(&killed, libc::SIGKILL);
    killed.wait().expect("it was started");
    wait_until("the script ends with it", || {
        !is_alive(&world.path("work/pid"))
    });
    assert!(
        std::fs::read_dir(world.path("tmp"))
            .expect("folder")
            .count()
            > 0
    );
    world.rehearse(&["short.py"]);
    world.assert_no_leftovers();
    assert!(!world.path("work/zeros.pt").exists());
}

//! Time limits and Ctrl-C end everything that a script has started, and leave nothing behind.

mod common;

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use common::{Outcome, World, is_alive, wait_until};

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

fn start(world: &World, arguments: &[&str]) -> Child {
    world
        .command(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

fn send(child: &Child, signal: i32) {
    // SAFETY: `kill` touches no memory, and the child has not been waited for.
    unsafe {
        libc::kill(child.id() as i32, signal);
    }
}

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
    world.rehearse(&["train.py"]).assert_code(0);
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
    outcome.assert_code(0);
    assert!(
        outcome.stdout.starts_with("blocked []"),
        "{}",
        outcome.stdout
    );
}

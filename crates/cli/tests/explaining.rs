//! `ghostgpu explain` from the outside.

mod common;

use std::io::Write;
use std::process::Stdio;

use common::{Outcome, World};

const ERROR: &str = "\
Using device cuda:0 (NVIDIA GeForce RTX 3060)
Traceback (most recent call last):
  File \"train.py\", line 82, in main
    loss.backward()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of \
11.63 GiB of which 1.00 GiB is free. Including non-PyTorch memory, this process has 10.50 GiB memory in \
use. Of the allocated memory 6.00 GiB is allocated by PyTorch, and 4.00 GiB is reserved by PyTorch but \
unallocated.
";

fn piped(world: &World, arguments: &[&str], input: &[u8]) -> Outcome {
    let mut command = world.command(arguments);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(input)
        .expect("written");
    Outcome::from(child.wait_with_output().expect("the program ends"))
}

#[test]
fn a_log_is_explained_from_a_file_and_from_a_pipe() {
    let world = World::new();
    world.write("work/error.log", ERROR);
    let from_file = world.run(&["explain", "error.log"]);
    from_file.assert_code(0);
    for expected in [
        "why            fragmentation",
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        "train.py:82 in main (backward)",
        "[####",
    ] {
        assert!(from_file.stdout.contains(expected), "{}", from_file.stdout);
    }
    assert!(from_file.stdout.lines().count() <= 24);
    let full = world.run(&["explain", "--verbose", "error.log"]);
    for expected in [
        "situation      fragmentation",
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python train.py",
        "torch.cuda.empty_cache(): PyTorch did this",
    ] {
        assert!(full.stdout.contains(expected), "{}", full.stdout);
    }
    assert!(full.stdout.is_ascii(), "{}", full.stdout);
    let quiet = world.run(&["explain", "--quiet", "error.log"]);
    assert_eq!(quiet.stdout.lines().count(), 1);
    assert_eq!(quiet.stderr, "");
    let from_pipe = piped(&world, &["explain"], ERROR.as_bytes());
    from_pipe.assert_code(0);
    assert_eq!(from_pipe.stdout, from_file.stdout);
    let with_dash = piped(&world, &["explain", "-"], ERROR.as_bytes());
    assert_eq!(with_dash.stdout, from_file.stdout);
}

#[test]
fn the_language_is_that_of_the_locale_unless_one_is_named() {
    let world = World::new();
    world.write("work/error.log", ERROR);
    let run = |arguments: &[&str], locale: &str| {
        let mut command = world.command(arguments);
        command.env("LC_ALL", locale);
        let outcome = Outcome::from(command.output().expect("the program runs"));
        outcome.assert_code(0);
        outcome.stdout
    };
    let english = run(&["explain", "error.log"], "C");
    assert!(english.contains("fragmentation"), "{english}");
    let chinese = run(&["explain", "error.log"], "zh_CN.UTF-8");
    assert!(chinese.contains("显存碎片"), "{chinese}");
    assert_eq!(run(&["explain", "error.log", "--lang", "zh"], "C"), chinese);
    assert_eq!(
        run(&["explain", "error.log", "--lang", "en"], "zh_CN.UTF-8"),
        english
    );
    let figures = |language: &str| {
        let json = run(&["explain", "--json", "--lang", language, "error.log"], "C");
        let json: serde_json::Value = serde_json::from_str(&json).expect("valid");
        (
            json["finding"].clone(),
            json["situations"][0]["situation"].clone(),
        )
    };
    assert_eq!(figures("en"), figures("zh"));
    world
        .run(&["explain", "error.log", "--lang", "fr"])
        .assert_code(2);
}

#[test]
fn the_explanation_is_available_as_json() {
    let world = World::new();
    world.write("work/error.log", ERROR);
    let outcome = world.run(&["explain", "error.log", "--json"]);
    outcome.assert_code(0);
    let json: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("valid");
    assert_eq!(json["finding"]["kind"], "cuda-allocator");
    assert_eq!(json["finding"]["figures"]["requested"]["bytes"], 3u64 << 29);
    assert_eq!(json["situations"][0]["situation"], "fragmentation");
    assert_eq!(json["account"]["adds_up"], true);
    assert_eq!(json["advice"][0]["candidate"], "expandable-segments");
    assert_eq!(
        json["log"]["environment"]["cards"][0],
        "NVIDIA GeForce RTX 3060"
    );
    assert_eq!(json["exit_code"], 0);
}

/// The libraries of a test build have more features than those of the program.
#[test]
fn every_family_is_recognised_by_the_program_itself() {
    let world = World::new();
    for (text, kind) in [
        ("RuntimeError: CUDA error: out of memory", "cuda-call"),
        (
            "RuntimeError: cuda runtime error (2) : out of memory at a.cu:58",
            "cuda-call",
        ),
        (
            "RuntimeError: no valid convolution algorithms available in CuDNN",
            "cudnn-no-algorithm",
        ),
        ("a NCCL WARN Cuda failure 'out of memory'", "nccl"),
        (
            "resource exhausted: oom when allocating tensor with shape[16,2] and type float",
            "tensor-flow",
        ),
        (
            "RuntimeError: DataLoader worker (pid 3) is killed by signal: Bus error.",
            "shared-memory",
        ),
        ("Killed", "host-kill-likely"),
        (
            "MPS backend out of memory (MPS allocated: 5.56 GB)",
            "mps-allocator",
        ),
        (
            "ValueError: No available memory for the cache blocks.",
            "vllm-no-cache",
        ),
        (
            "out of resource: shared memory, Required: 13, Hardware limit: 10.",
            "kernel-shared-memory",
        ),
    ] {
        let outcome = piped(&world, &["explain", "--json"], text.as_bytes());
        outcome.assert_code(0);
        let json: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("valid");
        assert_eq!(json["finding"]["kind"], kind, "{text}");
    }
}

#[test]
fn what_is_not_recognised_is_said_with_exit_code_2() {
    let world = World::new();
    world.write("work/fine.log", "epoch 1 loss 0.5\n");
    world.write("work/empty.log", "");
    world
        .run(&["explain", "fine.log"])
        .assert_failure("`fine.log` has no message about memory that ran out");
    world
        .run(&["explain", "empty.log"])
        .assert_failure("`empty.log` is empty");
    world
        .run(&["explain", "missing.log"])
        .assert_failure("cannot read `missing.log`");
    world
        .run(&["explain", "."])
        .assert_failure("`.` is a folder, not a log");
    piped(&world, &["explain"], &[0, 159, 146, 150, 0, 255])
        .assert_failure("standard input has no message");
    world
        .run(&["explain", "fine.log", "--gpu", "3060"])
        .assert_code(2);
}

const FITS_WITH_A_SETTING: &str = r#"
if SESSION["unlimited_memory"]:
    peak_on_card(15_000_000_000)
    report(steps=3, stopped_by_step_limit=True, peaks=peaks(7_000, 8_000))
elif "expandable_segments" in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "") or "--amp" in sys.argv:
    peak_on_card(9_000_000_000)
    report(steps=3, stopped_by_step_limit=True, peaks=peaks(5_000_000_000, 6_000_000_000))
elif SESSION["devices"][0]["total_bytes"] > 15_000_000_000:
    peak_on_card(15_100_000_000)
    report(steps=3, stopped_by_step_limit=True, peaks=peaks(5_000_000_000, 6_000_000_000))
else:
    report(steps=0, peaks=peaks(1_000, 2_000), ooms=[oom()], exception="OutOfMemoryError: CUDA")
    sys.exit(1)
# parser.add_argument("--amp", action="store_true")
"#;

#[test]
fn advice_is_tried_with_the_script_and_only_what_works_is_shown() {
    let world = World::new();
    world.write("work/error.log", ERROR);
    world.script("train.py", FITS_WITH_A_SETTING);
    let outcome = world.run(&[
        "explain",
        "error.log",
        "--script",
        "train.py",
        "--",
        "--batch-size",
        "64",
    ]);
    outcome.assert_code(0);
    for expected in [
        "as it is       on a virtual NVIDIA GeForce RTX 3060 (11.63 GiB): out of memory",
        "works          1. expandable segments (same results): 8.38 GiB",
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        "the script's own --amp (changes the precision)",
        "did not help   a limit on block splitting",
    ] {
        assert!(
            outcome.stdout.contains(expected),
            "{expected}\n{}",
            outcome.stdout
        );
    }
    assert!(!outcome.stdout.contains("do first"), "{}", outcome.stdout);
    assert!(outcome.stdout.lines().count() <= 24, "{}", outcome.stdout);
    world.assert_no_leftovers();
}

#[test]
fn a_script_that_nothing_helps_is_the_answer_no() {
    let world = World::new();
    world.write("work/error.log", ERROR);
    world.script(
        "train.py",
        "report(steps=0, peaks=peaks(1_000, 2_000), ooms=[oom()], exception='OutOfMemoryError: CUDA')\nsys.exit(1)",
    );
    let outcome = world.run(&["explain", "error.log", "--json", "--script", "train.py"]);
    outcome.assert_code(3);
    let json: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("valid");
    assert_eq!(json["rehearsed"]["works"], serde_json::json!([]));
    assert_eq!(json["exit_code"], 3);
    world.assert_no_leftovers();
}

#[test]
fn a_log_without_a_card_needs_one_for_trying() {
    let world = World::new();
    world.write(
        "work/error.log",
        "RuntimeError: CUDA error: out of memory\n",
    );
    world.script("train.py", "report(steps=1, peaks=peaks(1, 2))");
    world
        .run(&["explain", "error.log", "--script", "train.py"])
        .assert_failure("the log says neither which card it was nor how much memory it had");
    let outcome = world.run(&[
        "explain",
        "error.log",
        "--gpu",
        "t4",
        "--script",
        "train.py",
    ]);
    outcome.assert_code(0);
    assert!(
        outcome.stdout.contains("it fits on an empty"),
        "{}",
        outcome.stdout
    );
}

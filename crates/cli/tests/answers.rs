//! `ghostgpu run` from the outside: what it answers, and with which exit code.

mod common;

use common::World;

const FITTING: &str = r#"
print("hello from the script", sys.argv[1:])
peak_on_card(3_000_000_000)
report(steps=3, stopped_by_step_limit=True, peaks=peaks(1_000, 2_000), torch_cuda="13.0",
       step_peaks=[{"step": 1, "devices": peaks(900, 2_000)}], assumptions=["a sentence"])
"#;

/// The exit code of a script that puts nothing on the card.
const CARD_NOT_USED: i32 = 6;

const TOO_LARGE: &str = r#"
print("hello from the script")
if SESSION["unlimited_memory"]:
    peak_on_card(15_000_000_000)
    report(steps=3, stopped_by_step_limit=True, peaks=peaks(7_000, 8_000))
else:
    peak_on_card(11_000_000_000)
    report(steps=0, peaks=peaks(1_000, 2_000), ooms=[oom()], exception="OutOfMemoryError: CUDA")
    sys.exit(1)
"#;

#[test]
fn a_script_that_fits_is_reported_and_written_as_json() {
    let world = World::new();
    world.script("train.py", FITTING);
    let outcome = world.rehearse(&["--json", "out.json", "train.py", "--gpu", "x", "--steps=9"]);
    outcome.assert_code(0);
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(
        lines[0], "hello from the script ['--gpu', 'x', '--steps=9']",
        "the script's own output comes first, with all of its arguments"
    );
    assert!(lines[1].starts_with("fits           needs "));
    assert!(
        outcome
            .stderr
            .starts_with("ghostgpu: running on a virtual NVIDIA GeForce RTX 3060 (11.63 GiB): nothing is computed"),
        "{}",
        outcome.stderr
    );
    let json = world.json("work/out.json");
    assert_eq!(json["fits"], true);
    assert_eq!(json["peak_allocated_bytes"], 1_000);
    assert_eq!(json["peak_reserved_bytes"], 2_000);
    assert_eq!(json["peak_device_bytes"], 3_000_000_000u64);
    assert_eq!(json["needed_device_bytes"], 3_000_000_000u64);
    assert_eq!(json["steps"], 3);
    assert_eq!(json["oom"], serde_json::Value::Null);
    assert_eq!(json["gpu"]["name"], "NVIDIA GeForce RTX 3060");
    assert_eq!(json["gpu"]["capability"], "8.6");
    assert_eq!(json["gpu"]["count"], 1);
    assert_eq!(json["torch"], "2.11.0+cu130");
    assert_eq!(json["step_peaks"][0]["step"], 1);
    assert!(
        json["assumptions"]
            .as_array()
            .expect("a list")
            .contains(&"a sentence".into())
    );
    assert_eq!(json["exit_code"], 0);
    world.assert_no_leftovers();
}

#[test]
fn a_script_that_does_not_fit_is_run_again_unseen_to_find_its_need() {
    let world = World::new();
    world.script("train.py", TOO_LARGE);
    let outcome = world.rehearse(&["--json", "out.json", "train.py"]);
    outcome.assert_code(3);
    assert_eq!(outcome.stdout.matches("hello from the script").count(), 1);
    assert!(
        outcome
            .stdout
            .contains("does not fit   needs 13.97 GiB, GeForce RTX 3060 has")
    );
    assert!(outcome.stdout.contains(" in step 1 (forward)\n"));
    assert!(outcome.stdout.contains(" train.py:41 in forward\n"));
    assert!(
        outcome
            .stdout
            .contains("\nnext           ghostgpu plan --gpu 3060 "),
        "{}",
        outcome.stdout
    );
    assert!(outcome.stdout.contains("x = self.attn(x)"));
    let json = world.json("work/out.json");
    assert_eq!(json["fits"], false);
    assert_eq!(json["peak_device_bytes"], 11_000_000_000u64);
    assert_eq!(json["needed_device_bytes"], 15_000_000_000u64);
    assert_eq!(json["needed_allocated_bytes"], 7_000);
    assert_eq!(json["oom"]["requested_bytes"], 1_610_612_736);
    assert_eq!(json["oom"]["message"], "CUDA out of memory. Tried");
    assert_eq!(json["oom"]["stack"][0]["line"], 41);
    assert_eq!(json["oom"]["stage"], "forward");
    world.assert_no_leftovers();
}

#[test]
fn no_retry_leaves_the_need_unknown() {
    let world = World::new();
    world.script("train.py", TOO_LARGE);
    let outcome = world.rehearse(&["--no-retry", "--json", "out.json", "train.py"]);
    outcome.assert_code(3);
    assert!(outcome.stdout.contains("the need is unknown: it was not"));
    assert!(world.json("work/out.json")["needed_device_bytes"].is_null());
}

#[test]
fn a_failed_second_run_leaves_the_need_unknown_and_says_why() {
    let world = World::new();
    world.script(
        "train.py",
        r#"
if SESSION["unlimited_memory"]:
    report(exception="KeyError: 'x'")
    sys.exit(1)
report(ooms=[oom()])
sys.exit(1)
"#,
    );
    let outcome = world.rehearse(&["train.py"]);
    outcome.assert_code(3);
    assert!(
        outcome.stdout.contains("ended with KeyError: 'x'"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn a_failing_script_keeps_its_exit_code_and_the_answer_is_open() {
    let world = World::new();
    world.script(
        "train.py",
        "report(exception=\"ValueError: no\")\nsys.exit(7)",
    );
    let outcome = world.rehearse(&["--json", "out.json", "train.py"]);
    outcome.assert_code(7);
    assert!(
        outcome
            .stdout
            .contains("unknown        the script failed with exit code 7: ValueError: no")
    );
    let json = world.json("work/out.json");
    assert!(json["fits"].is_null());
    assert_eq!(json["script_exit_code"], 7);
    world.assert_no_leftovers();
}

#[test]
fn a_killed_script_ends_with_128_and_its_signal() {
    let world = World::new();
    world.script("train.py", "os.kill(os.getpid(), 9)");
    let outcome = world.rehearse(&["train.py"]);
    outcome.assert_code(137);
    assert!(outcome.stdout.contains("the script was killed by signal 9"));
    assert!(outcome.stderr.contains("hint: "), "{}", outcome.stderr);
    world.assert_no_leftovers();
}

#[test]
fn a_launcher_whose_worker_ran_out_of_memory_does_not_fit() {
    let world = World::new();
    world.script("worker.py", "report(ooms=[oom()])\nsys.exit(1)");
    world.executable(
        "work/launch.sh",
        "#!/bin/sh\npython3 worker.py || exit 40\n",
    );
    world
        .rehearse(&["--no-retry", "--", "./launch.sh"])
        .assert_code(3);
}

#[test]
fn a_refused_call_is_named_with_its_line() {
    let world = World::new();
    world.script(
        "train.py",
        r#"
report(refused=[{"function": "cufftExecC2C", "stack": oom()["stack"]}])
sys.exit(1)
"#,
    );
    let outcome = world.rehearse(&["train.py"]);
    outcome.assert_failure("the script stopped at `cufftExecC2C`, called from ");
    assert!(
        outcome
            .stderr
            .contains("train.py:41, which is not simulated")
    );
}

#[test]
fn a_script_without_cuda_is_said_to_be_one() {
    let world = World::new();
    world.script("train.py", "print('nothing')");
    let outcome = world.rehearse(&["--json", "out.json", "train.py"]);
    outcome.assert_code(CARD_NOT_USED);
    assert!(
        outcome
            .stdout
            .contains("card not used  the script put nothing on the card")
    );
    let json = world.json("work/out.json");
    assert_eq!(json["verdict"], "did-not-use-card");
    assert_eq!(json["peak_allocated_bytes"], 0);
    assert!(json["needed_device_bytes"].is_null());
}

#[test]
fn what_others_use_of_the_card_is_in_use_and_not_the_jobs() {
    let world = World::new();
    world.script("train.py", FITTING);
    let asked = ["--reserve", "2GiB", "--json", "out.json", "train.py"];
    let outcome = world.rehearse(&asked);
    outcome.assert_code(0);
    assert!(
        outcome
            .stdout
            .contains("of 9.63 GiB (GeForce RTX 3060 less 2.00 GiB)"),
        "{}",
        outcome.stdout
    );
    let json = world.json("work/out.json");
    assert_eq!(json["reserve_bytes"], 2u64 << 30);
    let left = json["gpu"]["total_bytes"].as_u64().expect("a size") - (2 << 30);
    let needed = json["needed_device_bytes"].as_u64().expect("a size");
    assert_eq!(json["headroom_bytes"], left - needed);
    let outcome = world.rehearse(&["--reserve", "12GiB", "train.py"]);
    outcome.assert_failure("--reserve and --margin take 12.00 GiB of a card that has 11.63 GiB");
}

#[test]
fn a_margin_that_is_not_left_is_a_tight_fit() {
    let world = World::new();
    world.script("train.py", FITTING);
    for (margin, code) in [("8GiB", 0), ("9GiB", 4), ("70%", 0), ("80%", 4), ("0", 0)] {
        let outcome = world.rehearse(&["--margin", margin, "train.py"]);
        outcome.assert_code(code);
    }
}

#[test]
fn json_on_standard_output_stands_there_alone() {
    let world = World::new();
    world.script("train.py", FITTING);
    let outcome = world.rehearse(&["--json", "-", "train.py"]);
    outcome.assert_code(0);
    let json: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("only JSON");
    assert_eq!(json["fits"], true);
    assert!(outcome.stderr.contains("hello from the script"));
    assert!(outcome.stderr.contains("fits           needs "));
}

#[test]
fn the_session_carries_what_was_asked_for() {
    let world = World::new();
    world.script("train.py", "json.dump(SESSION, open('session.json', 'w'))");
    let arguments = [
        "run",
        "--gpu",
        "h200",
        "--memory",
        "11GiB",
        "--count",
        "2",
        "--steps",
        "5",
        "--no-cudnn",
        "--full-init",
        "--values",
        "zero",
        "--keep-checkpoints",
        "--verbose",
        "--call-log",
        "calls.txt",
        "train.py",
    ];
    let outcome = world.run(&arguments);
    outcome.assert_code(CARD_NOT_USED);
    let words: Vec<&str> = outcome.stdout.split_whitespace().collect();
    assert!(
        words
            .join(" ")
            .contains("11.00 GiB instead of its own 139.80 GiB")
    );
    let session = world.json("work/session.json");
    assert_eq!(session["devices"].as_array().expect("a list").len(), 2);
    assert_eq!(session["devices"][1]["total_bytes"], 11u64 << 30);
    assert_ne!(session["devices"][0]["pci"], session["devices"][1]["pci"]);
    assert_eq!(session["steps"], 5);
    assert_eq!(session["cudnn"], "recorded");
    assert_eq!(session["full_initialisation"], true);
    assert_eq!(session["values"], "zero");
    assert_eq!(session["keep_checkpoints"], true);
    assert!(
        session["call_log"]
            .as_str()
            .expect("a path")
            .ends_with("/work/calls.txt")
    );
}

#[test]
fn python_commands_and_other_programs_run_in_the_rehearsal() {
    let world = World::new();
    world.write("work/pkg/__init__.py", "");
    world.script("pkg/train.py", "print('module', sys.argv[1:])");
    let outcome = world.rehearse(&["--", "python3", "-m", "pkg.train", "--config", "c.yaml"]);
    outcome.assert_code(CARD_NOT_USED);
    assert!(outcome.stdout.starts_with("module ['--config', 'c.yaml']"));
    world.executable(
        "work/go.sh",
        "#!/bin/sh\necho \"$LD_PRELOAD|$TRITON_LIBCUDA_PATH|$TRITON_CACHE_DIR|$PYTHONPATH\"\n",
    );
    let outcome = world.rehearse(&["./go.sh"]);
    outcome.assert_code(CARD_NOT_USED);
    let fields: Vec<&str> = outcome
        .stdout
        .lines()
        .next()
        .expect("a line")
        .split('|')
        .collect();
    let tmp = world.path("tmp");
    let tmp = tmp.to_str().expect("text");
    assert!(fields[0].starts_with(tmp) && fields[0].ends_with("/lib/libghostgpu.so"));
    assert!(fields[1].starts_with(tmp) && fields[1].ends_with("/lib"));
    assert!(fields[2].starts_with(tmp));
    assert!(fields[3].contains("/agent/inject:"), "{}", fields[3]);
}

#[test]
fn checkpoints_that_were_left_are_removed_unless_they_are_wanted() {
    let world = World::new();
    let script = r#"
open("zeros.pt", "w").write("0")
with open(os.path.join(RUN_DIR, "written-files.jsonl"), "a") as file:
    file.write(json.dumps({"path": os.path.abspath("zeros.pt")}) + "\n")
"#;
    world.script("train.py", script);
    let outcome = world.rehearse(&["train.py"]);
    outcome.assert_code(CARD_NOT_USED);
    assert!(!world.path("work/zeros.pt").exists());
    world
        .rehearse(&["--keep-checkpoints", "train.py"])
        .assert_code(CARD_NOT_USED);
    assert!(world.path("work/zeros.pt").exists());
}

#[test]
fn a_damaged_report_leaves_the_answer_open_and_is_named() {
    let world = World::new();
    world.script(
        "train.py",
        "open(os.path.join(RUN_DIR, 'agent-1.json'), 'w').write('{ half')",
    );
    let outcome = world.rehearse(&["train.py"]);
    outcome.assert_code(8);
    assert!(outcome.stdout.contains("agent-1.json could not be read"));
}

#[test]
fn a_python_program_without_torch_in_its_first_line_is_left_to_itself() {
    let world = World::new();
    world.remove_torch();
    let python = world.executable(
        "bare/python3",
        "#!/bin/sh\nexec /usr/bin/env python3 -S \"$@\"\n",
    );
    let launcher = format!("#!{}\nprint('launched')\n", python.display());
    world.executable("work/launcher", &launcher);
    let outcome = world.rehearse(&["./launcher"]);
    outcome.assert_code(CARD_NOT_USED);
    assert!(outcome.stdout.starts_with("launched"), "{outcome:?}");
}

#[test]
fn a_quiet_run_says_the_verdict_and_nothing_else() {
    let world = World::new();
    world.script("train.py", TOO_LARGE);
    let outcome = world.rehearse(&["--quiet", "train.py"]);
    outcome.assert_code(3);
    let own: Vec<&str> = outcome
        .stdout
        .lines()
        .filter(|line| !line.starts_with("hello from the script"))
        .collect();
    assert_eq!(own.len(), 1, "{own:?}");
    assert!(
        own[0].starts_with("does not fit   needs 13.97 GiB"),
        "{own:?}"
    );
    assert!(!outcome.stderr.contains("ghostgpu:"), "{}", outcome.stderr);
}

#[test]
fn a_verbose_run_has_the_message_and_exact_bytes() {
    let world = World::new();
    world.script("train.py", TOO_LARGE);
    let outcome = world.rehearse(&["-v", "train.py"]);
    outcome.assert_code(3);
    for expected in [
        "does not fit   needs 13.97 GiB",
        "CUDA out of memory. Tried",
        "15,000,000,000 bytes",
        "needed ",
    ] {
        assert!(outcome.stdout.contains(expected), "{}", outcome.stdout);
    }
}

//! Wrong input is reported in one sentence, with exit code 2, and nothing is left half-done.

mod common;

use common::World;

/// A world whose script leaves a mark if it is ever run.
fn world() -> World {
    let world = World::new();
    world.script("train.py", "open('was-run', 'w')");
    world
}

#[track_caller]
fn assert_untouched(world: &World) {
    assert!(!world.path("work/was-run").exists(), "the script was run");
    world.assert_no_leftovers();
}

#[test]
fn an_unknown_card_gets_the_nearest_names() {
    let world = world();
    let outcome = world.run(&["run", "--gpu", "3o60", "train.py"]);
    outcome.assert_failure("unknown card `3o60`");
    assert!(outcome.stderr.contains("3060"), "{}", outcome.stderr);
    assert_untouched(&world);
}

#[test]
fn a_missing_card_is_asked_for() {
    let world = world();
    let outcome = world.run(&["run", "train.py"]);
    outcome.assert_failure("no card was named");
    assert!(outcome.stderr.contains("`--gpu 3060`"));
    let outcome = world.run(&["run", "train.py", "--gpu", "3060"]);
    outcome.assert_failure("no card was named");
    assert!(outcome.stderr.contains("come before the script"));
    assert_untouched(&world);
}

#[test]
fn a_script_that_does_not_exist_is_named() {
    let world = world();
    let outcome = world.rehearse(&["trian.py"]);
    outcome.assert_failure("the script `trian.py` does not exist");
    assert!(outcome.stderr.contains("hint: the folder `.` has train.py"));
    world
        .rehearse(&["no-such-program"])
        .assert_failure("neither a script nor a program");
}

#[test]
fn an_unknown_option_before_the_script_is_not_taken_for_one() {
    let world = world();
    let outcome = world.run(&["run", "--gpuu", "3060", "train.py"]);
    outcome.assert_code(2);
    assert!(outcome.stderr.contains("--gpuu"), "{}", outcome.stderr);
    assert_untouched(&world);
}

#[test]
fn wrong_values_are_refused() {
    let world = world();
    for arguments in [
        ["--memory", "11XB"],
        ["--memory", "0"],
        ["--memory", "16"],
        ["--memory", "999999TB"],
        ["--count", "0"],
        ["--count", "65"],
        ["--timeout", "soon"],
        ["--steps", "many"],
    ] {
        let outcome = world.rehearse(&[arguments[0], arguments[1], "train.py"]);
        outcome.assert_code(2);
        assert!(outcome.stderr.contains(arguments[0]), "{}", outcome.stderr);
    }
    assert_untouched(&world);
}

#[test]
fn no_python_is_a_clear_sentence() {
    let world = world();
    let outcome = world
        .command(&["run", "--gpu", "3060", "train.py"])
        .env("PATH", world.path("home"))
        .output()
        .expect("runs");
    common::Outcome::from(outcome).assert_failure("no python was found on the PATH");
    world
        .rehearse(&["--python", "/nowhere/python", "train.py"])
        .assert_failure("there is no python at `/nowhere/python`");
    assert_untouched(&world);
}

#[test]
fn a_program_that_is_no_python_is_named() {
    let world = world();
    let fake = world.executable(
        "fake-python",
        "#!/bin/sh\necho 'broken install' >&2\nexit 1\n",
    );
    world
        .rehearse(&["--python", fake.to_str().expect("text"), "train.py"])
        .assert_failure("does not work as a python: broken install");
    assert_untouched(&world);
}

#[test]
fn no_torch_is_a_clear_sentence() {
    let world = world();
    world.remove_torch();
    // Without site-packages: the machine that runs the tests may have a torch of its own.
    let python = world.executable(
        "bare/python3",
        "#!/bin/sh\nexec /usr/bin/env python3 -S \"$@\"\n",
    );
    world
        .rehearse(&["--python", python.to_str().expect("text"), "train.py"])
        .assert_failure("there is no torch in the python");
    assert_untouched(&world);
}

#[test]
fn a_torch_that_cannot_be_used_is_refused() {
    let world = world();
    world.torch("2.11.0+cpu", None);
    world
        .rehearse(&["train.py"])
        .assert_failure("torch 2.11.0+cpu is a CPU build without CUDA");
    world.torch("1.13.1+cu117", Some("11.7"));
    world
        .rehearse(&["train.py"])
        .assert_failure("torch 1.13.1+cu117 is too old");
    world.torch("2.15.0+cu140", Some("14.0"));
    world
        .rehearse(&["train.py"])
        .assert_failure("this torch is built for CUDA 14.0, and only CUDA 12 and 13 are simulated");
    assert_untouched(&world);
}

#[test]
fn a_torch_newer_than_any_tested_runs_with_a_remark() {
    let world = world();
    world.torch("2.99.0+cu132", Some("13.2"));
    let outcome = world.rehearse(&["train.py"]);
    outcome.assert_code(6);
    assert!(
        outcome
            .stderr
            .contains("newer than the newest this was tested with")
    );
    assert!(outcome.stdout.contains("newer than the newest this was"));
}

#[test]
fn unwritable_output_is_found_before_the_script_runs() {
    let world = world();
    world
        .rehearse(&["--json", "missing/out.json", "train.py"])
        .assert_failure("cannot write to `missing/out.json`");
    world
        .rehearse(&["--json", "--out", ".", "train.py"])
        .assert_failure("cannot write to `.`");
    world
        .rehearse(&["--call-log", "missing/calls.txt", "train.py"])
        .assert_failure("cannot write to `missing/calls.txt`");
    assert_untouched(&world);
}

#[test]
fn a_failure_leaves_an_old_result_as_it_was() {
    let world = world();
    world.write("work/out.json", "old");
    world.torch("1.0", Some("9.0"));
    world
        .rehearse(&["--json", "out.json", "train.py"])
        .assert_failure("too old");
    let names: Vec<_> = std::fs::read_dir(world.path("work"))
        .expect("folder")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(
        std::fs::read_to_string(world.path("work/out.json")).expect("file"),
        "old"
    );
}

#[test]
fn a_missing_library_is_our_failure() {
    let world = world();
    std::fs::remove_file(world.path("libghostgpu.so")).expect("removed");
    world
        .rehearse(&["train.py"])
        .assert_failure("the stand-in library is missing");
    assert_untouched(&world);
}

#[test]
fn a_missing_agent_is_our_failure() {
    let world = world();
    std::fs::remove_dir_all(world.path("agent")).expect("removed");
    world
        .rehearse(&["train.py"])
        .assert_failure("the Python agent is missing");
    assert_untouched(&world);
}

#[test]
fn a_library_that_cannot_be_preloaded_is_found_before_the_script_runs() {
    let world = world();
    world.write("libghostgpu.so", "not a library");
    world
        .rehearse(&["train.py"])
        .assert_failure("the stand-in library could not be loaded into the python");
    assert_untouched(&world);
}

#[test]
fn a_preload_that_got_lost_on_the_way_is_our_failure() {
    let world = World::new();
    world.script(
        "train.py",
        "open(os.path.join(RUN_DIR, 'preload-blocked'), 'w').write('LD_PRELOAD was removed')\n\
         sys.exit(2)",
    );
    let outcome = world.rehearse(&["--json", "out.json", "train.py"]);
    outcome.assert_failure("was not loaded into the script's process: LD_PRELOAD was removed");
    assert!(!world.path("work/out.json").exists());
    world.assert_no_leftovers();
}

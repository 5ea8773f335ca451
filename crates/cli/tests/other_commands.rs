//! `gpus`, `doctor` and `completions` from the outside.

mod common;

use common::World;

#[test]
fn the_catalogue_is_listed_and_filtered() {
    let world = World::new();
    let outcome = world.run(&["gpus"]);
    outcome.assert_code(0);
    assert!(outcome.stdout.lines().count() > 60);
    let outcome = world.run(&["gpus", "RTX 3060"]);
    outcome.assert_code(0);
    for line in outcome.stdout.lines().skip(1) {
        assert!(line.contains("3060"), "{line}");
    }
    world
        .run(&["gpus", "voodoo"])
        .assert_failure("no card has `voodoo` in its name or aliases");
}

#[test]
fn the_catalogue_is_available_as_json() {
    let world = World::new();
    let outcome = world.run(&["gpus", "--json", "h200"]);
    outcome.assert_code(0);
    let document: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("valid");
    assert_eq!(document["schema"], "ghostgpu.gpus/1");
    let h200 = document["cards"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|card| card["driver_name"] == "NVIDIA H200")
        .expect("the H200");
    assert_eq!(h200["total_bytes"], 150_109_880_320u64);
    assert_eq!(h200["capability"], "9.0");
    assert_eq!(h200["memory_provenance"], "measured");
}

#[test]
fn doctor_finds_a_working_installation() {
    let world = World::new();
    world.write("site/nvidia/cudnn/lib/libcudnn.so.9", "");
    world.write("site/nvidia_cudnn_cu13-9.19.0.56.dist-info/METADATA", "");
    let outcome = world.run(&["doctor"]);
    outcome.assert_code(0);
    for expected in [
        "ok      torch             2.11.0+cu130",
        "ok      CUDA              13.0",
        "ok      cuDNN             9.19.0.56",
        "ok      preload           the library loads into this python",
        "rehearsals work here",
    ] {
        assert!(outcome.stdout.contains(expected), "{}", outcome.stdout);
    }
    world.assert_no_leftovers();
}

#[test]
fn doctor_says_what_is_broken_and_what_to_do() {
    let world = World::new();
    world.torch("2.11.0+cpu", None);
    world.write("libghostgpu.so", "not a library");
    let outcome = world.run(&["doctor", "--json"]);
    outcome.assert_code(2);
    let diagnosis: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("valid");
    assert_eq!(diagnosis["is_usable"], false);
    let broken: Vec<&str> = diagnosis["checks"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|check| check["state"] == "broken")
        .inspect(|check| assert!(check["advice"].is_string(), "{check}"))
        .filter_map(|check| check["name"].as_str())
        .collect();
    assert_eq!(broken, ["preload", "torch"]);
    world.assert_no_leftovers();
}

#[test]
fn completions_are_printed_for_each_shell() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish"] {
        let outcome = world.run(&["completions", shell]);
        outcome.assert_code(0);
        assert!(outcome.stdout.contains("ghostgpu"), "{shell}");
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let world = World::new();
    let program = env!("CARGO_BIN_EXE_ghostgpu");
    let output = std::process::Command::new("sh")
        .args(["-c", &format!("'{program}' gpus --json | true")])
        .current_dir(world.path("work"))
        .output()
        .expect("a shell");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.is_empty(), "{text}");
}

#[test]
fn quiet_commands_on_snapshots_say_one_line() {
    let world = World::new();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../snapshot/tests/data/");
    let file = format!("{data}ring-of-50-torch2.15-protocol5.pickle.gz");
    for (words, beginning) in [
        (&["snapshot", "show", &file][..], "peak "),
        (&["snapshot", "top", &file], "live "),
        (&["snapshot", "diff", &file, &file], "live "),
        (&["replay", &file], "what if "),
        (&["replay", "--search", &file], "what if "),
    ] {
        let outcome = world.run(&[words, &["--quiet"]].concat());
        outcome.assert_code(0);
        assert_eq!(outcome.stdout.lines().count(), 1, "{words:?}: {outcome:#?}");
        assert!(outcome.stdout.starts_with(beginning), "{outcome:#?}");
        assert_eq!(outcome.stderr, "");
    }
}

#[test]
fn calibrate_without_a_card_refuses_before_the_script_runs() {
    let world = World::new();
    if std::path::Path::new("/dev/nvidia0").exists() {
        return;
    }
    world.write("work/train.py", "open('started', 'w')");
    let outcome = world.run(&["calibrate", "-o", "table.tsv", "train.py"]);
    outcome.assert_failure("there is no NVIDIA card in this machine");
    assert!(!world.path("work/started").exists());
    assert!(!world.path("work/table.tsv").exists());
}

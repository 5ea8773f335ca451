//! `ghostgpu snapshot`: its screens and its JSON.

mod common;

use common::World;
use serde_json::Value;

const OUT_OF_MEMORY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../ground_truth/allocator/h200/caught-out-of-memory+default-3GiB.pickle.gz"
);
const WITH_LINES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../ground_truth/allocator/h200/unet+default.pickle.gz"
);

/// The field names of a document, as `docs/snapshot-json.md` lists them below a heading.
fn described(command: &str) -> Vec<String> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/snapshot-json.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let heading = format!("## `ghostgpu snapshot {command} --json`\n");
    let (_, below) = page.split_once(&heading).expect("the heading");
    let table = below.split("\n## ").next().unwrap_or_default();
    let first_cells = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once(" |"));
    let names = first_cells.flat_map(|(cell, _)| cell.split(", "));
    let mut names: Vec<String> = names
        .map(|name| name.trim_matches('`').to_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn every_command_answers_in_json_with_the_fields_that_are_described() {
    let world = World::new();
    let limits = [
        "--max-live",
        "1GiB",
        "--max-fragmentation",
        "99%",
        "--no-oom",
    ];
    for (command, files, options, code) in [
        ("show", &[OUT_OF_MEMORY][..], &[][..], 0),
        ("top", &[WITH_LINES], &["--by", "stack"], 0),
        ("diff", &[OUT_OF_MEMORY, WITH_LINES], &[], 0),
        ("check", &[OUT_OF_MEMORY], &limits, 3),
    ] {
        let words = [&["-q", "snapshot", command, "--json"], files, options].concat();
        let outcome = world.run(&words);
        outcome.assert_code(code);
        let document: Value = serde_json::from_str(&outcome.stdout).expect("JSON alone");
        let schema = format!("ghostgpu.snapshot.{command}/1");
        assert_eq!(document["schema"], schema.as_str());
        let fields = document.as_object().expect("an object").keys().cloned();
        let mut fields: Vec<String> = fields.collect();
        fields.sort();
        assert_eq!(fields, described(command), "{command}");
    }
}

#[test]
fn figures_are_the_same_as_text_and_as_json() {
    let world = World::new();
    let words = ["snapshot", "show", OUT_OF_MEMORY, "--json", "a.json"];
    let outcome = world.run(&[&words[..], &["-o", "a.txt"]].concat());
    outcome.assert_code(0);
    assert_eq!(outcome.stdout, "");
    let text = std::fs::read_to_string(world.path("work/a.txt")).expect("the text");
    let document = world.json("work/a.json");
    assert_eq!(document["out_of_memory"]["event"], 6205);
    assert!(text.contains("failed at event 6,205"), "{text}");
    assert_eq!(document["at_end"]["segments"], 40);
    assert!(text.contains("in 40 segments"), "{text}");
    let at_end = |name: &str| document["at_end"][name].as_u64().expect("bytes");
    let parts = at_end("allocated_bytes") + at_end("pending_bytes") + at_end("cached_bytes");
    assert_eq!(parts, at_end("reserved_bytes"));
}

#[test]
fn a_screen_is_a_screen() {
    let world = World::new();
    for words in [
        &["show", OUT_OF_MEMORY][..],
        &["show", WITH_LINES],
        &["top", WITH_LINES],
        &["check", WITH_LINES, "--max-fragmentation", "1%", "--no-oom"],
    ] {
        let outcome = world.run(&[&["snapshot"], words].concat());
        assert!(outcome.stdout.lines().count() <= 24, "{}", outcome.stdout);
        // The file's own path may be of any length.
        for line in outcome
            .stdout
            .lines()
            .filter(|line| !line.contains(".pickle"))
        {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}

//! `ghostgpu report`: every format of a recording, and files that are no recordings.

mod common;

use common::World;
use ghostgpu_recording::file::write;
use ghostgpu_recording::made_up::{MadeUp, recording};

/// A world with a recording in the folder where commands run.
fn world() -> World {
    let world = World::new();
    let file = std::fs::File::create(world.path("work/train.ghost")).expect("file");
    let training = recording(MadeUp {
        layers: 4,
        steps: 3,
    });
    write(&training, file).expect("written");
    world
}

#[test]
fn a_recording_is_told_on_one_screen_or_in_full() {
    let world = world();
    let screen = world.run(&["report", "train.ghost"]);
    screen.assert_code(0);
    assert!(screen.stdout.lines().count() <= 24, "{}", screen.stdout);
    for part in ["peak", "largest line", "grows"] {
        assert!(screen.stdout.contains(&format!("\n{part:<15}")), "{part}");
    }
    let outcome = world.run(&["report", "--verbose", "train.ghost"]);
    outcome.assert_code(0);
    for part in [
        "at the peak",
        "stages",
        "where",
        "lines",
        "rule of thumb",
        "grows",
    ] {
        assert!(outcome.stdout.contains(&format!("\n{part:<15}")), "{part}");
    }
}

#[test]
fn a_recording_is_written_in_every_format() {
    let world = world();
    for (format, beginning) in [
        ("text", &b"recorded "[..]),
        ("pprof", b"\x1f\x8b"),
        ("perfetto", b"\x0a"),
    ] {
        let outcome = world.run(&["report", "train.ghost", "--to", format, "-o", "out"]);
        outcome.assert_code(0);
        assert_eq!(outcome.stdout, "");
        let written = std::fs::read(world.path("work/out")).expect("a file");
        assert!(written.starts_with(beginning), "{format}");
    }
}

#[test]
fn a_snapshot_is_written_in_every_format_and_its_page_is_the_same_from_both_commands() {
    let world = World::new();
    let snapshot = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../ground_truth/allocator/h200/bert+expandable-3GiB.pickle.gz"
    );
    for (format, beginning) in [
        ("text", &b"snapshot "[..]),
        ("html", b"<!doctype html>"),
        ("pprof", b"\x1f\x8b"),
        ("perfetto", b"\x0a"),
    ] {
        let outcome = world.run(&["report", snapshot, "--to", format, "-o", format]);
        outcome.assert_code(0);
        let written = std::fs::read(world.path(&format!("work/{format}"))).expect("a file");
        let start = written[..beginning.len()].to_ascii_lowercase();
        assert_eq!(start, beginning.to_ascii_lowercase(), "{format}");
    }
    let outcome = world.run(&["snapshot", "show", snapshot, "--report", "page.html"]);
    outcome.assert_code(0);
    let page = std::fs::read(world.path("work/page.html")).expect("a page");
    assert!(page == std::fs::read(world.path("work/html")).expect("a page"));
}

#[test]
fn what_is_no_recording_is_refused_and_nothing_is_written() {
    let world = world();
    std::fs::write(
        world.path("work/other.pickle"),
        b"\x80\x04\x95 no recording",
    )
    .expect("file");
    let whole = std::fs::read(world.path("work/train.ghost")).expect("the recording");
    std::fs::write(world.path("work/half.ghost"), &whole[..whole.len() / 2]).expect("file");
    let mut newer = whole.clone();
    newer[8] = 9;
    std::fs::write(world.path("work/newer.ghost"), newer).expect("file");
    for (file, sentence) in [
        ("none.ghost", "cannot read `none.ghost`: No such file"),
        ("other.pickle", "`other.pickle` is damaged: byte 11"),
        ("half.ghost", "the recording ends too early, at byte"),
        ("newer.ghost", "this recording has format 9"),
        (".", "is a folder"),
    ] {
        let outcome = world.run(&["report", file, "--json", "-o", "out.json"]);
        outcome.assert_failure(sentence);
        assert!(!world.path("work/out.json").exists());
    }
}

//! The least memory of histories that a real card recorded.

use std::path::PathBuf;

use ghostgpu_snapshot::{EventKind, Snapshot};
use ghostgpu_whatif::{History, Known};

const GRANULE: u64 = 2 << 20;

const RECORDINGS: [&str; 4] = [
    "unet+default",
    "t5-small+round-8",
    "two-streams+default",
    "emptied-cache+expandable",
];

fn open(name: &str) -> (Snapshot, History) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let file = folder.join(format!(
        "../../ground_truth/allocator/h200/{name}.pickle.gz"
    ));
    let snapshot = ghostgpu_snapshot::open(&file).expect("a recording");
    let history = History::of(&snapshot, 0, Known::default()).expect("a history");
    (snapshot, history)
}

#[test]
fn the_program_ends_with_it_and_a_little_more_and_not_with_less() {
    for name in RECORDINGS {
        let (_, history) = open(name);
        let least = history.smallest_memory().expect("it ended");
        let fails = |bytes: u64| history.with_memory(bytes).failure.is_some();
        assert!(fails(least - GRANULE), "{name}");
        for more in 0..=4 {
            assert!(!fails(least + more * GRANULE), "{name} +{more}");
        }
        let unlimited = history.ask(&history.question());
        assert!(least >= unlimited.peak_allocated_bytes(), "{name}");
        assert!(least < unlimited.peak_reserved_bytes() + GRANULE, "{name}");
        assert!(
            history.with_memory(least).peak_reserved_bytes() <= least,
            "{name}"
        );
    }
}

#[test]
fn what_a_program_can_spare_is_not_requested_again() {
    let (snapshot, mut history) = open("unet+default");
    let least = history.smallest_memory().expect("it ended");
    // As if everything were workspaces that is freed at once.
    let events = &snapshot.traces[0].events;
    let is_freed_next = |event: usize| {
        events.kinds().get(event + 1) == Some(&EventKind::FreeRequested)
            && events.addresses()[event] == events.addresses()[event + 1]
    };
    assert_eq!(history.with_memory(least).largest_spared_bytes, 0);
    history.spare(|event| is_freed_next(event).then_some(0));
    let without = history.smallest_memory().expect("it ended");
    assert!(without < least, "{without} < {least}");
    let tight = history.with_memory(without);
    assert!(tight.failure.is_none());
    assert!(tight.largest_spared_bytes > 0);
    // With enough memory nothing is spared.
    let ample = history.ask(&history.question());
    assert_eq!(ample.largest_spared_bytes, 0);
}

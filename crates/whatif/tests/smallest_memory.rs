//! The least memory of histories that a real card recorded.

use std::path::PathBuf;

use ghostgpu_snapshot::{EventKind, Snapshot};
use ghostgpu_whatif::{Choices, History, Known};

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

/// A history whose requests that are freed at once are workspaces for which there is another size.
fn with_choices(bytes: impl Fn(u64) -> Vec<u64>) -> (u64, History) {
    with_choices_in("unet+default", bytes)
}

fn with_choices_in(name: &str, bytes: impl Fn(u64) -> Vec<u64>) -> (u64, History) {
    let (snapshot, mut history) = open(name);
    let least = history.smallest_memory().expect("it ended");
    let events = &snapshot.traces[0].events;
    let is_freed_next = |event: usize| {
        events.kinds().get(event + 1) == Some(&EventKind::FreeRequested)
            && events.addresses()[event] == events.addresses()[event + 1]
    };
    let mut sizes: Vec<u64> = (0..events.len())
        .filter(|&event| is_freed_next(event))
        .map(|event| events.bytes()[event])
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    let choices = sizes.iter().map(|&each| Choices {
        bytes: bytes(each),
        are_known: true,
    });
    history.choose(choices.collect(), |event| {
        let number = sizes.binary_search(&events.bytes()[event]);
        number
            .ok()
            .filter(|_| is_freed_next(event))
            .map(|number| number as u32)
    });
    (least, history)
}

#[test]
fn a_program_that_can_do_without_needs_less() {
    let (least, history) = with_choices(|bytes| vec![bytes, 0]);
    let without = history.smallest_memory().expect("it ended");
    assert!(without < least, "{without} < {least}");
    let tight = history.with_memory(without);
    assert!(tight.failure.is_none());
    assert!(tight.largest_replaced_bytes > 0);
    assert_eq!(tight.largest_unknown_replaced_bytes, 0);
    // With enough memory nothing is replaced.
    let ample = history.ask(&history.question());
    assert_eq!(ample.largest_replaced_bytes, 0);
}

#[test]
fn a_program_that_can_do_without_may_need_less_than_it_allocates_where_there_is_room() {
    let (least, history) = with_choices_in("emptied-cache+default", |bytes| vec![bytes, 0]);
    let ample = history.ask(&history.question());
    assert!(least >= ample.peak_allocated_bytes());
    let without = history.smallest_memory().expect("it ended");
    assert!(without < ample.peak_allocated_bytes());
    // Half a percent is added where workspaces are replaced.
    let too_little = without * 199 / 200 - GRANULE;
    assert!(history.with_memory(without - GRANULE).failure.is_none());
    assert!(history.with_memory(too_little).failure.is_some());
}

#[test]
fn what_is_taken_instead_counts() {
    let (_, without) = with_choices(|bytes| vec![bytes, 0]);
    let (_, half) = with_choices(|bytes| vec![bytes, bytes / 2, 0]);
    let (least, same) = with_choices(|bytes| vec![bytes, bytes]);
    assert_eq!(same.smallest_memory(), Some(least));
    let (without, half) = (without.smallest_memory(), half.smallest_memory());
    assert!(
        without <= half && half <= Some(least),
        "{without:?} {half:?} {least}"
    );
}

//! Segments at a moment, held against what a real card's allocator said there.

use std::path::PathBuf;

use ghostgpu_ledger::{Ledger, Moment};
use ghostgpu_trace::{EventKind, Snapshot};

const RECORDINGS: [&str; 5] = [
    "unet+default",
    "t5-small+round-8",
    "emptied-cache+expandable",
    "two-streams+default",
    "caught-out-of-memory+default-3GiB",
];

fn open(name: &str) -> Snapshot {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let file = folder.join(format!(
        "../../ground_truth/allocator/h200/{name}.pickle.gz"
    ));
    ghostgpu_trace::open(&file).expect("a recording")
}

#[test]
fn at_the_end_they_are_those_of_the_snapshot() {
    for name in RECORDINGS {
        let snapshot = open(name);
        let ledger = Ledger::new(&snapshot, 0);
        let found = ledger.segments_at(ledger.end().moment);
        let expected: Vec<_> = snapshot.segments_of(0).collect();
        assert_eq!(found.len(), expected.len(), "{name}");
        for (found, expected) in found.iter().zip(expected) {
            let shape = |segment: &ghostgpu_trace::Segment| {
                (
                    segment.address,
                    segment.total_bytes,
                    segment.kind,
                    segment.stream,
                )
            };
            assert_eq!(shape(found), shape(expected), "{name}");
            let live = |segment: &ghostgpu_trace::Segment| -> Vec<(u64, u64)> {
                let blocks = segment
                    .blocks
                    .iter()
                    .filter(|block| block.state.is_active());
                blocks
                    .map(|block| (block.address, block.live_bytes()))
                    .collect()
            };
            assert_eq!(live(found), live(expected), "{name}");
        }
    }
}

#[test]
fn at_every_snapshot_entry_they_hold_what_was_active_and_blocks_cover_them() {
    for name in RECORDINGS {
        let snapshot = open(name);
        let ledger = Ledger::new(&snapshot, 0);
        let events = &snapshot.traces[0].events;
        assert!(ledger.segments_at(Moment(0)).is_empty(), "{name}");
        let mut checked = 0;
        for (at, event) in events.iter().enumerate() {
            if event.kind != EventKind::Snapshot {
                continue;
            }
            let segments = ledger.segments_at(Moment(at));
            for segment in &segments {
                let mut next = segment.address;
                for block in &segment.blocks {
                    assert_eq!(block.address, next, "{name}, event {at}");
                    next += block.bytes;
                }
                assert_eq!(
                    next,
                    segment.address + segment.total_bytes,
                    "{name}, event {at}"
                );
            }
            // The entry has PyTorch's own sum, in which unsplit blocks count whole.
            let active: u64 = segments.iter().map(|segment| segment.active_bytes).sum();
            let slack = 1 << 20;
            let live = ledger.live_at(Moment(at)).len() as u64;
            assert!(
                active <= event.bytes,
                "{name}, event {at}: {active} {}",
                event.bytes
            );
            assert!(event.bytes - active <= live * slack, "{name}, event {at}");
            checked += 1;
        }
        assert!(checked > 2, "{name}");
    }
}

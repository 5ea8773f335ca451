//! Segments at a moment, held against what a real card's allocator said there.

use std::path::PathBuf;

use ghostgpu_attribution::recording_of_snapshot;
use ghostgpu_ledger::{CardLedger, Moment, Segment};
use ghostgpu_snapshot::{BlockState, EventKind, Snapshot};

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
    ghostgpu_snapshot::open(&file).expect("a recording")
}

#[test]
fn at_the_end_they_are_those_of_the_snapshot() {
    for name in RECORDINGS {
        let mut snapshot = open(name);
        let recording = recording_of_snapshot(&mut snapshot);
        let ledger = CardLedger::new(&recording, &recording.cards[0]);
        let found = ledger.segments_at(ledger.end().moment);
        let expected: Vec<_> = snapshot.segments_of(0).collect();
        assert_eq!(found.len(), expected.len(), "{name}");
        for (found, expected) in found.iter().zip(expected) {
            let is_small = expected.kind == ghostgpu_snapshot::SegmentKind::Small;
            assert_eq!(
                (
                    found.address,
                    found.bytes,
                    found.is_small,
                    found.pool.stream
                ),
                (
                    expected.address,
                    expected.total_bytes,
                    is_small,
                    expected.stream
                ),
                "{name}"
            );
            let found: Vec<(u64, u64, bool, bool)> = found
                .blocks
                .iter()
                .map(|block| {
                    let is_live = block.allocation.is_some();
                    (block.address, block.bytes, is_live, block.is_pending)
                })
                .collect();
            let expected: Vec<(u64, u64, bool, bool)> = expected
                .blocks
                .iter()
                .map(|block| {
                    let is_pending = block.state == BlockState::PendingFree;
                    (
                        block.address,
                        block.bytes,
                        block.state.is_active(),
                        is_pending,
                    )
                })
                .collect();
            assert_eq!(found, expected, "{name}");
        }
    }
}

#[test]
fn at_every_snapshot_entry_they_hold_what_was_active_and_blocks_cover_them() {
    for name in RECORDINGS {
        let mut snapshot = open(name);
        let events = snapshot.traces[0].events.clone();
        let recording = recording_of_snapshot(&mut snapshot);
        let ledger = CardLedger::new(&recording, &recording.cards[0]);
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
                assert_eq!(next, segment.address + segment.bytes, "{name}, event {at}");
            }
            // The entry has PyTorch's own sum, in which unsplit blocks count whole.
            let active: u64 = segments.iter().map(Segment::live_bytes).sum();
            let slack = 1 << 20;
            let live = ledger.live_at(Moment(at)).count() as u64;
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

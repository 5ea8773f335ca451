//! Every format can be written for any snapshot, and is the same if written twice.

use ghostgpu_snapshot::{AnnotationStage, BlockState, EventKind, StackId};
use proptest::prelude::*;

use crate::test_snapshot::TestSnapshot;
use crate::{
    At, JsonOptions, MemoryVizOptions, PerfettoOptions, Selection, write_folded, write_html,
    write_json, write_memory_viz, write_perfetto, write_pprof,
};

fn snapshots() -> impl Strategy<Value = TestSnapshot> {
    let kind = prop::sample::select(&EventKind::KNOWN[..]);
    let bytes = prop_oneof![0_u64..5000, Just(u64::MAX), Just(1 << 63)];
    let events = prop::collection::vec((0_usize..3, kind, 0_u64..6, bytes.clone()), 0..60);
    let state = prop::sample::select(vec![
        BlockState::Allocated,
        BlockState::PendingFree,
        BlockState::Inactive,
    ]);
    let blocks = prop::collection::vec((0_u64..6, 0_u64..5000, state), 0..5);
    let stages = prop::collection::vec((any::<bool>(), 0_i64..100), 0..6);
    (events, blocks, stages).prop_map(|(events, blocks, stages)| {
        let mut test = TestSnapshot::new();
        let stack = test.stack(&["f@a.py", "", "g@", "@b.py"]);
        for (at, (device, kind, address, bytes)) in events.into_iter().enumerate() {
            let stack = if at % 2 == 0 { stack } else { StackId::NONE };
            test.event_at(device, kind, address, bytes, stack);
        }
        test.segment(&blocks);
        for (is_start, time_us) in stages {
            let stage = if is_start {
                AnnotationStage::Start
            } else {
                AnnotationStage::End
            };
            test.annotation("step", stage, time_us);
        }
        test
    })
}

/// All formats, concatenated.
fn everything(test: &TestSnapshot) -> Vec<u8> {
    let snapshot = &test.snapshot;
    let recording = &test.recording();
    assert_eq!(recording.check(), Ok(()));
    let mut out = Vec::new();
    write_html(recording, &mut out).unwrap();
    for at in [At::Peak, At::End] {
        let selection = Selection { at, card: None };
        write_pprof(recording, selection, &mut out).unwrap();
        write_folded(recording, selection, &mut out).unwrap();
    }
    let options = PerfettoOptions {
        min_block_bytes: 0,
        max_blocks: 10,
        max_counter_points: 20,
        ..PerfettoOptions::default()
    };
    write_perfetto(recording, &options, &mut out).unwrap();
    write_json(recording, &JsonOptions::default(), &mut out).unwrap();
    for max_events in [None, Some(5)] {
        let options = MemoryVizOptions { max_events };
        write_memory_viz(snapshot, &options, &mut out).unwrap();
    }
    out
}

proptest! {
    #[test]
    fn every_format_is_written_whatever_happened_and_the_same_way_twice(test in snapshots()) {
        prop_assert_eq!(everything(&test), everything(&test));
    }

    #[test]
    fn folded_lines_add_up_to_the_peak(events in prop::collection::vec((0_u64..8, 1_u64..5000), 0..80)) {
        let mut test = TestSnapshot::new();
        let mut live = std::collections::BTreeMap::new();
        let mut peak_bytes = 0;
        for (address, bytes) in events {
            match live.remove(&address) {
                Some(bytes) => {
                    test.free(address, bytes);
                }
                None => {
                    test.alloc(address, bytes);
                    live.insert(address, bytes);
                }
            }
            peak_bytes = peak_bytes.max(live.values().sum::<u64>());
        }
        let mut out = Vec::new();
        write_folded(&test.recording(), Selection::default(), &mut out).unwrap();
        let sum: u64 = String::from_utf8(out).unwrap().lines()
            .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
            .sum();
        prop_assert_eq!(sum, peak_bytes);
    }
}

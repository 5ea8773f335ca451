//! What the ledger says about recordings of small snapshots.

use std::collections::BTreeMap;

use ghostgpu_attribution::recording_of_snapshot;
use ghostgpu_ledger::{By, CardLedger, Groups, Moment};
use ghostgpu_recording::{AllocationId, Event as Recorded, Recording};
use ghostgpu_snapshot::{
    AllocatorSettings, Annotation, AnnotationStage, Block, BlockState, ContextId, DeviceTrace,
    Event, EventContext, EventKind, Events, Format, Frame, Names, PoolId, Segment, SegmentKind,
    Snapshot, StackId, Stacks,
};
use proptest::prelude::*;

/// A snapshot that is put together event by event.
struct Making {
    snapshot: Snapshot,
    clock_us: i64,
}

impl Making {
    fn new() -> Self {
        Self {
            snapshot: Snapshot {
                format: Format::Snapshot,
                segments: Vec::new(),
                traces: vec![DeviceTrace::default()],
                settings: AllocatorSettings::default(),
                annotations: Vec::new(),
                host_segments: Vec::new(),
                host_events: Events::default(),
                stacks: Stacks::default(),
                names: Names::default(),
                warnings: Vec::new(),
                pickle_bytes: 0,
            },
            clock_us: 0,
        }
    }

    fn stack(&mut self, frames: &[(&str, u64, &str)]) -> StackId {
        let Snapshot { stacks, names, .. } = &mut self.snapshot;
        let frames: Vec<u32> = frames
            .iter()
            .map(|(file, line, function)| {
                let frame = Frame {
                    file: names.intern(file),
                    function: names.intern(function),
                    line: *line,
                    fx: None,
                };
                stacks.intern_frame(frame).0
            })
            .collect();
        stacks.intern_stack(&frames)
    }

    fn event(&mut self, kind: EventKind, address: u64, bytes: u64, stack: StackId, metadata: &str) {
        self.clock_us += 10;
        let context = EventContext {
            user_metadata: self.snapshot.names.intern(metadata),
            ..EventContext::default()
        };
        let event = Event {
            kind,
            address,
            bytes,
            device_free_bytes: None,
            time_us: self.clock_us,
            stack,
            context: ContextId(0),
        };
        self.snapshot.traces[0].events.push(event, context);
    }

    fn alloc(&mut self, address: u64, bytes: u64) {
        self.event(EventKind::Alloc, address, bytes, StackId::NONE, "");
    }

    fn free(&mut self, address: u64, bytes: u64) {
        self.event(EventKind::FreeRequested, address, bytes, StackId::NONE, "");
        self.event(EventKind::FreeCompleted, address, bytes, StackId::NONE, "");
    }

    fn recording(&mut self) -> Recording {
        let recording = recording_of_snapshot(&mut self.snapshot);
        assert_eq!(recording.check(), Ok(()));
        recording
    }

    /// A segment with these live blocks: address, block, requested.
    fn segment(&mut self, address: u64, total_bytes: u64, live: &[(u64, u64, u64)]) {
        let block = |(address, bytes, requested): &(u64, u64, u64)| Block {
            address: *address,
            bytes: *bytes,
            requested_bytes: Some(*requested),
            state: BlockState::Allocated,
            stack: StackId::NONE,
            forward_stack: StackId::NONE,
            history: Vec::new(),
        };
        self.snapshot.segments.push(Segment {
            device: 0,
            address,
            total_bytes,
            allocated_bytes: 0,
            active_bytes: 0,
            requested_bytes: None,
            stream: 0,
            kind: SegmentKind::Large,
            pool: Some(PoolId::DEFAULT),
            is_expandable: false,
            stack: StackId::NONE,
            forward_stack: StackId::NONE,
            blocks: live.iter().map(block).collect(),
        });
    }
}

#[test]
fn what_is_older_than_the_recording_counts_from_its_start() {
    let mut recording = Making::new();
    recording.segment(0x1000, 8192, &[(0x1000, 1024, 1000)]);
    recording.free(0x2000, 700);
    recording.alloc(0x3000, 200);
    recording.free(0x3000, 200);
    let recording = recording.recording();
    let ledger = CardLedger::new(&recording, &recording.cards[0]);
    assert_eq!(ledger.start().requested_bytes, 1700);
    assert_eq!(ledger.start().allocated_bytes, 1024 + 1024);
    assert_eq!(
        (ledger.peak().requested_bytes, ledger.peak().moment),
        (1700, Moment(0))
    );
    assert_eq!(ledger.end().requested_bytes, 1000);
    let older = ledger.card().allocations.iter();
    let older: Vec<(u64, Option<u32>)> = older
        .filter(|one| one.allocated_at.is_none())
        .map(|one| (one.address, one.freed_at))
        .collect();
    assert_eq!(older, [(0x2000, Some(1)), (0x1000, None)]);
    assert_eq!(
        recording.warnings,
        [
            "device 0: 2 blocks are older than the trace's first event: 1 that it frees, 1 that live to its end"
        ]
    );
}

#[test]
fn reserved_memory_is_undone_from_the_final_segments() {
    let mut recording = Making::new();
    recording.segment(0x1000, 100, &[]);
    recording.event(EventKind::SegmentAlloc, 0x5000, 40, StackId::NONE, "");
    recording.event(EventKind::SegmentMap, 0x6000, 5, StackId::NONE, "");
    recording.event(EventKind::SegmentUnmap, 0x6000, 5, StackId::NONE, "");
    recording.event(EventKind::SegmentFree, 0x5000, 40, StackId::NONE, "");
    let recording = recording.recording();
    let ledger = CardLedger::new(&recording, &recording.cards[0]);
    assert_eq!(ledger.start().reserved_bytes, 100);
    assert_eq!(
        (
            ledger.peak_reserved().reserved_bytes,
            ledger.peak_reserved().moment
        ),
        (145, Moment(2))
    );
    assert_eq!(ledger.end().reserved_bytes, 100);
}

#[test]
fn a_block_is_live_until_its_free_is_completed() {
    let mut recording = Making::new();
    recording.alloc(0x1000, 100);
    recording.event(EventKind::FreeRequested, 0x1000, 100, StackId::NONE, "");
    recording.alloc(0x2000, 50);
    recording.event(EventKind::FreeCompleted, 0x1000, 100, StackId::NONE, "");
    let recording = recording.recording();
    let ledger = CardLedger::new(&recording, &recording.cards[0]);
    assert_eq!(
        (ledger.peak().requested_bytes, ledger.peak().moment),
        (150, Moment(3))
    );
}

#[test]
fn every_entry_is_an_event_and_a_lost_free_is_put_in() {
    let mut recording = Making::new();
    recording.alloc(0x1000, 100);
    recording.event(EventKind::Snapshot, 0, 0, StackId::NONE, "");
    recording.alloc(0x1000, 50);
    recording.event(EventKind::FreeCompleted, 0x1000, 50, StackId::NONE, "");
    recording.event(EventKind::FreeCompleted, 0x1000, 50, StackId::NONE, "");
    recording.event(EventKind::Oom, 0, 7, StackId::NONE, "");
    let recording = recording.recording();
    let card = &recording.cards[0];
    let (first, second) = (AllocationId(0), AllocationId(1));
    assert_eq!(
        card.events[..6],
        [
            Recorded::Allocate(first),
            Recorded::Other,
            Recorded::Free(first),
            Recorded::Allocate(second),
            Recorded::Free(second),
            Recorded::Other,
        ]
    );
    assert_eq!(card.times_us, [0, 10, 20, 20, 30, 40, 50]);
    let failed: Vec<(u32, u64)> = card
        .failed_requests()
        .map(|(event, failure)| (event, failure.requested_bytes))
        .collect();
    assert_eq!(failed, [(6, 7)]);
}

#[test]
fn the_users_own_line_stands_for_a_stack() {
    let mut recording = Making::new();
    let own = recording.stack(&[
        ("??", 0, "torch::unwind::unwind()"),
        (
            "/v/lib/python3.11/site-packages/torch/nn/functional.py",
            5,
            "linear",
        ),
        ("/home/me/model.py", 12, "forward"),
        ("/home/me/train.py", 80, "main"),
    ]);
    let backward = recording.stack(&[
        ("??", 0, "c10::cuda::CUDACachingAllocator::malloc"),
        ("??", 0, "at::native::mm_cuda"),
        ("??", 0, "torch::autograd::generated::AddmmBackward0::apply"),
    ]);
    recording.event(EventKind::Alloc, 1, 300, own, "");
    recording.event(EventKind::Alloc, 2, 200, backward, "");
    recording.event(EventKind::Alloc, 3, 100, StackId::NONE, "");
    let recording = recording.recording();
    let ledger = CardLedger::new(&recording, &recording.cards[0]);
    let labels = |by| -> Vec<String> {
        let holders = ledger.held_by(ledger.peak().moment, by).holders;
        holders.into_iter().map(|holder| holder.label).collect()
    };
    let backward = "torch::autograd::generated::AddmmBackward0::apply";
    assert_eq!(
        labels(By::Line),
        ["/home/me/model.py:12 in forward", backward, "unknown"]
    );
    assert_eq!(labels(By::Function)[0], "forward (/home/me/model.py)");
    assert_eq!(labels(By::Stack)[0], "/home/me/model.py:12 in forward");
    assert_eq!(labels(By::Size), ["300 bytes", "200 bytes", "100 bytes"]);
}

#[test]
fn a_name_is_what_the_file_says_and_unknown_otherwise() {
    let mut recording = Making::new();
    recording.event(EventKind::Alloc, 1, 400, StackId::NONE, "weights");
    recording.event(EventKind::Alloc, 2, 300, StackId::NONE, "");
    recording.event(
        EventKind::Annotate,
        2,
        300,
        StackId::NONE,
        "saved for backward",
    );
    recording.event(EventKind::Alloc, 3, 200, StackId::NONE, "");
    recording.alloc(4, 100);
    let name = recording.snapshot.names.intern("Optimizer.step");
    for (stage, time_us) in [(AnnotationStage::Start, 35), (AnnotationStage::End, 45)] {
        recording.snapshot.annotations.push(Annotation {
            name,
            stage,
            device: 0,
            time_us,
        });
    }
    let recording = recording.recording();
    let ledger = CardLedger::new(&recording, &recording.cards[0]);
    let holders = ledger.held_by(Moment(usize::MAX), By::Name);
    let found: Vec<(&str, u64)> = holders
        .holders
        .iter()
        .map(|holder| (holder.label.as_str(), holder.requested_bytes))
        .collect();
    let expected = [
        ("weights", 400),
        ("saved for backward", 300),
        ("Optimizer.step", 200),
        ("unknown", 100),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_device_without_events_is_what_its_segments_are() {
    let mut recording = Making::new();
    recording.segment(0x1000, 4096, &[(0x1000, 512, 100), (0x1200, 1024, 900)]);
    let recording = recording.recording();
    let ledger = CardLedger::new(&recording, &recording.cards[0]);
    assert_eq!(
        (ledger.peak().requested_bytes, ledger.peak().reserved_bytes),
        (1000, 4096)
    );
    assert_eq!(
        ledger.held_by(ledger.peak().moment, By::Line).holders[0].label,
        "unknown, older than the recording"
    );
    assert_eq!(recording.warnings, [""; 0]);
    assert_eq!(
        ledger.overview(&Groups::of(&recording), 10).stretches.len(),
        1
    );
}

proptest! {
    #[test]
    fn the_peak_and_every_level_are_those_of_adding_up(
        steps in proptest::collection::vec((any::<bool>(), 0u64..12, 1u64..5000), 0..200),
        older in proptest::collection::btree_map(100u64..110, 1u64..5000, 0..6),
        points in 1usize..20,
    ) {
        let mut recording = Making::new();
        let mut live: BTreeMap<u64, u64> = older.clone();
        let mut totals = vec![live.values().sum::<u64>()];
        for (is_alloc, address, bytes) in steps {
            if is_alloc && !live.contains_key(&address) {
                recording.alloc(address, bytes);
                live.insert(address, bytes);
                totals.push(live.values().sum());
            } else if let Some(address) = live.keys().nth(bytes as usize % live.len().max(1)).copied() {
                let bytes = live.remove(&address).unwrap();
                recording.free(address, bytes);
                totals.push(*totals.last().unwrap());
                totals.push(live.values().sum());
            }
        }
        let blocks: Vec<(u64, u64, u64)> = live.iter().map(|(address, bytes)| (*address, *bytes, *bytes)).collect();
        recording.segment(0, 1 << 20, &blocks);
        let recording = recording.recording();
        let ledger = CardLedger::new(&recording, &recording.cards[0]);
        let highest = *totals.iter().max().unwrap();
        prop_assert_eq!(ledger.peak().requested_bytes, highest);
        prop_assert_eq!(totals[ledger.peak().moment.0], highest);
        prop_assert_eq!(ledger.end().requested_bytes, *totals.last().unwrap());
        for (at, total) in totals.iter().enumerate() {
            let sum: u64 = ledger.live_at(Moment(at)).map(|(_, one)| one.requested_bytes).sum();
            prop_assert_eq!(sum, *total);
        }
        let groups = Groups::of(&recording);
        let overview = ledger.overview(&groups, points);
        let drawn = overview.peak.requested_bytes;
        let after_events = totals.iter().skip(1).max();
        prop_assert_eq!(drawn, *after_events.unwrap_or(&highest));
        for stretch in &overview.stretches {
            let sum: u64 = stretch.requested.iter().sum();
            prop_assert_eq!(sum, stretch.highest.requested_bytes);
        }
    }
}

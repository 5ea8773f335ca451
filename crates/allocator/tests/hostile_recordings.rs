//! Invalid recordings: truncated, mixed up, with addresses and sizes at the edges of 64 bits. They
//! lead to an answer with a difference or a warning, never to a panic.

use ghostgpu_allocator::replay::{
    Context, Environment, Operation, Program, Recording, exact, what_if,
};
use ghostgpu_allocator::{
    Action, Address, Allocator, BlockState, BlockView, PoolId, PoolKind, Release, SegmentView,
    Settings, SimpleDriver, StreamId, TraceEvent,
};
use proptest::prelude::*;

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => (0_u64..64).prop_map(|pages| pages << 21),
        4 => (0_u64..4096).prop_map(|units| units * 512),
        2 => 0_u64..5000,
        1 => prop::sample::select(vec![u64::MAX, u64::MAX - 511, 1 << 63, 1 << 60, (1 << 60) - 1]),
        1 => any::<u64>(),
    ]
}

fn pool() -> impl Strategy<Value = PoolId> {
    prop::sample::select(vec![PoolId::DEFAULT, PoolId(0, 1), PoolId(1, 0)])
}

fn operation() -> impl Strategy<Value = Operation> {
    let action = prop::sample::select(Action::ALL.to_vec());
    let pool = prop::option::of(pool());
    (action, number(), number(), 0_u64..3, pool).prop_map(
        |(action, address, bytes, stream, pool)| Operation {
            action,
            address: Address(address),
            bytes,
            context: Context {
                stream: StreamId(stream),
                pool,
            },
        },
    )
}

fn segment() -> impl Strategy<Value = SegmentView> {
    let state = prop::sample::select(vec![
        BlockState::Allocated,
        BlockState::PendingFree,
        BlockState::Inactive,
    ]);
    let block =
        (number(), number(), number(), state).prop_map(|(address, size, requested_size, state)| {
            BlockView {
                address: Address(address),
                size,
                requested_size,
                state,
            }
        });
    let blocks = prop::collection::vec(block, 0..4);
    (
        number(),
        number(),
        0_u64..3,
        any::<[bool; 2]>(),
        pool(),
        blocks,
    )
        .prop_map(
            |(address, total_size, stream, [is_small, is_expandable], pool, blocks)| SegmentView {
                address: Address(address),
                total_size,
                allocated_size: 0,
                active_size: 0,
                requested_size: 0,
                stream: StreamId(stream),
                kind: if is_small {
                    PoolKind::Small
                } else {
                    PoolKind::Large
                },
                pool,
                is_expandable,
                blocks,
            },
        )
}

/// The recording of a program that allocates and frees.
fn sensible(choices: &[(u64, u8)], settings: &Settings, release: Release) -> Recording {
    let driver = SimpleDriver::new(200 << 20);
    let mut allocator =
        Allocator::with_trace(release, settings.clone(), driver, Vec::<TraceEvent>::new());
    let mut live = Vec::new();
    for &(bytes, what) in choices {
        match what {
            0..=4 => {
                let got = allocator.malloc(bytes % (40 << 20), StreamId(u64::from(what % 2)));
                live.extend(got.map(|allocation| allocation.address));
            }
            5..=7 if !live.is_empty() => {
                let address = live.swap_remove(bytes as usize % live.len());
                if what == 7 && address != Address(0) {
                    allocator
                        .record_stream(address, StreamId(9))
                        .expect("it is live");
                }
                allocator.free(address).expect("it is live");
            }
            8 => allocator.empty_cache().expect("no scope is open"),
            _ => {}
        }
    }
    Recording::of(&allocator)
}

/// Leaves entries out, doubles them, exchanges them.
fn spoiled(recording: Recording, faults: &[(usize, u8)]) -> Recording {
    let mut entries: Vec<Operation> = recording.operations.iter().collect();
    for &(place, how) in faults {
        if entries.len() < 2 {
            break;
        }
        let place = place % (entries.len() - 1);
        match how {
            0 => {
                entries.remove(place);
            }
            1 => entries.insert(place, entries[place]),
            2 => entries.swap(place, place + 1),
            3 => entries[place].bytes = entries[place].bytes.wrapping_mul(3),
            4 => entries[place].address = entries[place + 1].address,
            _ => entries[place].context.stream = StreamId(5),
        }
    }
    Recording {
        operations: entries.into_iter().collect(),
        ..recording
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_recording_that_makes_no_sense_is_answered(
        operations in prop::collection::vec(operation(), 0..40),
        segments in prop::collection::vec(segment(), 0..5),
        minor in prop::sample::select(vec![0_u16, 8, 11, 12, 15]),
        text in prop::sample::select(vec!["", "max_split_size_mb:21", "garbage_collection_threshold:0.5"]),
        expandable in any::<bool>(),
        limit in prop::option::of(number()),
        total in prop::option::of(number()),
    ) {
        let release = Release::new(2, minor);
        let mut settings = Settings::parse(text, release).expect("good settings");
        settings.expandable_segments = expandable;
        let mut environment = Environment::new(release, settings.clone());
        environment.limit_bytes = limit;
        environment.total_bytes = total;
        let recording = Recording {
            operations: operations.into_iter().collect(),
            segments,
        };
        let replay = exact(&recording, &environment);
        prop_assert!(replay.entries <= recording.operations.len());
        let program = Program::of(&recording, &environment);
        let answer = what_if(&program, release, settings, limit, SimpleDriver::new(1 << 40));
        prop_assert!(answer.peak_allocated_bytes() <= 1 << 40);
    }

    #[test]
    fn a_spoiled_recording_is_answered(
        choices in prop::collection::vec((any::<u64>(), 0_u8..9), 1..80),
        faults in prop::collection::vec((any::<usize>(), 0_u8..6), 1..6),
        minor in prop::sample::select(vec![8_u16, 11, 12, 15]),
        text in prop::sample::select(vec!["", "max_split_size_mb:21"]),
        expandable in any::<bool>(),
        cut in 0_usize..40,
    ) {
        let release = Release::new(2, minor);
        let mut settings = Settings::parse(text, release).expect("good settings");
        settings.expandable_segments = expandable;
        let mut recording = spoiled(sensible(&choices, &settings, release), &faults);
        recording.operations = recording.operations.iter().skip(cut).collect();
        let environment = Environment::new(release, settings.clone());
        let replay = exact(&recording, &environment);
        prop_assert!(replay.entries <= recording.operations.len());
        let program = Program::of(&recording, &environment);
        let answer = what_if(&program, release, settings, None, SimpleDriver::new(1 << 40));
        prop_assert!(answer.peak_allocated_bytes() <= 1 << 40);
    }
}

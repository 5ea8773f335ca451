//! A replay iterates over its events without touching the heap: everything is reserved before.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ghostgpu_allocator::replay::{Environment, ExactRun, Program, Recording, WhatIfRun};
use ghostgpu_allocator::{
    Allocator, BlockId, Release, Settings, SimpleDriver, StreamId, TraceEvent,
};

struct Counting;

thread_local! {
    static HEAP_CALLS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HEAP_CALLS.with(|calls| calls.set(calls.get() + 1));
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static HEAP: Counting = Counting;

fn heap_calls(what: impl FnOnce()) -> u64 {
    let before = HEAP_CALLS.with(Cell::get);
    what();
    HEAP_CALLS.with(Cell::get) - before
}

/// Random lifetimes of random sizes on two streams, with a flush now and then.
fn recording(release: Release, settings: &Settings, operations: usize) -> Recording {
    let driver = SimpleDriver::new(1 << 40);
    let trace: Vec<TraceEvent> = Vec::new();
    let mut allocator = Allocator::with_trace(release, settings.clone(), driver, trace);
    let mut state = 7_u64;
    let mut below = |limit: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % limit
    };
    let mut live: Vec<BlockId> = Vec::new();
    for number in 0..operations {
        if live.len() < 300 || below(2) == 0 {
            let magnitude = 9 + below(15);
            let bytes = 1 + below(1 << magnitude);
            let got = allocator.malloc(bytes, StreamId(below(2)));
            live.push(got.expect("the card is large enough").block);
        } else {
            let block = live.swap_remove(below(live.len() as u64) as usize);
            allocator.free_block(block).expect("it is live");
        }
        if number % 5000 == 4999 {
            allocator.empty_cache().expect("no scope is open");
        }
    }
    Recording::of(&allocator)
}

#[test]
fn the_loops_of_replays_touch_no_heap() {
    for (release, text) in [
        ("2.8.0", ""),
        ("2.11.0", ""),
        ("2.11.0", "expandable_segments:True"),
        ("2.12.0", "max_split_size_mb:32"),
        ("2.15.0", ""),
    ] {
        let release: Release = release.parse().expect("a release");
        let settings = Settings::parse(text, release).expect("settings of this release");
        let recording = recording(release, &settings, 40_000);
        let environment = Environment::new(release, settings);
        let mut run = ExactRun::new(&recording, &environment);
        let calls = heap_calls(|| run.run());
        let replay = run.finish();
        assert_eq!(replay.difference, None, "{release} {text}");
        assert_eq!(replay.entries, recording.operations.len());
        assert_eq!(calls, 0, "exact replay, {release} {text}");

        let program = Program::of(&recording, &environment);
        for other in ["", "max_split_size_mb:64", "expandable_segments:True"] {
            let settings = Settings::parse(other, release).expect("settings of this release");
            let driver = SimpleDriver::new(1 << 40);
            let mut run = WhatIfRun::new(&program, release, settings, None, driver);
            let calls = heap_calls(|| run.run());
            assert!(run.finish().failure.is_none());
            assert_eq!(calls, 0, "{release} {text} under {other}");
        }
    }
}

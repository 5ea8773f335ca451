//! How many allocator events a second, and how often the heap is touched meanwhile:
//!
//!     cargo run --release -p ghostgpu-allocator --example speed [PART OF A NAME]
//!
//! An event is an entry of PyTorch's memory history: an allocation is one, a free is two. Jobs of the
//! replica by itself run until its sets and tables have reached their size, and are measured from then
//! on; replays are measured from the first event. The best of five attempts counts, in time that the
//! process had a core.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use ghostgpu_allocator::replay::{Environment, ExactRun, Program, Recording, WhatIfRun};
use ghostgpu_allocator::{
    Address, Allocator, Release, Settings, SimpleDriver, StreamId, TraceEvent, TraceSink,
};

struct Counting;

static HEAP_CALLS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HEAP_CALLS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static HEAP: Counting = Counting;

/// Seconds that this process has had a core, so that a busy machine does not count. Linux only.
fn core_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds = text
        .split(' ')
        .next()
        .and_then(|word| word.parse::<f64>().ok());
    nanoseconds.expect("/proc/self/schedstat of Linux") / 1e9
}

/// A plain generator of numbers: the same job every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Operations of a job that is repeated: allocate into a slot, or free it.
#[derive(Clone, Copy)]
enum Step {
    Allocate {
        slot: usize,
        bytes: u64,
        stream: u64,
    },
    Free {
        slot: usize,
    },
}

/// One training step: activations that live until backward, temporaries that do not, gradients.
fn training(layers: usize, streams: u64) -> Vec<Step> {
    let mut numbers = Numbers(1);
    let sizes: Vec<u64> = (0..24)
        .map(|power| (300 << (power % 18)) + numbers.below(4096))
        .collect();
    let mut steps = Vec::new();
    let mut slots = 0;
    let mut allocate = |steps: &mut Vec<Step>, bytes: u64, stream: u64| {
        steps.push(Step::Allocate {
            slot: slots,
            bytes,
            stream,
        });
        slots += 1;
        slots - 1
    };
    let mut kept = Vec::new();
    for layer in 0..layers {
        let stream = layer as u64 % streams;
        for part in 0..6 {
            let bytes = sizes[(layer + part * 5) % sizes.len()];
            kept.push(allocate(&mut steps, bytes, stream));
            let passing = allocate(&mut steps, sizes[(layer * 7 + part) % sizes.len()], stream);
            steps.push(Step::Free { slot: passing });
        }
    }
    while let Some(slot) = kept.pop() {
        let bytes = sizes[slot % sizes.len()];
        let gradient = allocate(&mut steps, bytes, slot as u64 % streams);
        steps.push(Step::Free { slot });
        steps.push(Step::Free { slot: gradient });
    }
    steps
}

/// Random lifetimes: thousands of live blocks, hundreds of free ones of all sizes.
fn churn(live: usize, count: usize) -> Vec<Step> {
    let mut numbers = Numbers(2);
    let mut steps = Vec::new();
    let mut free: Vec<usize> = (0..live).rev().collect();
    let mut used: Vec<usize> = Vec::new();
    for _ in 0..count {
        if used.len() * 2 < live || (numbers.below(2) == 0 && !free.is_empty()) {
            let Some(slot) = free.pop() else { continue };
            let magnitude = 9 + numbers.below(14);
            let bytes = 1 + numbers.below(1 << magnitude);
            steps.push(Step::Allocate {
                slot,
                bytes,
                stream: 0,
            });
            used.push(slot);
        } else {
            let slot = used.swap_remove(numbers.below(used.len() as u64) as usize);
            steps.push(Step::Free { slot });
            free.push(slot);
        }
    }
    steps.extend(used.into_iter().map(|slot| Step::Free { slot }));
    steps
}

fn events(steps: &[Step]) -> u64 {
    let of = |step: &Step| {
        if matches!(step, Step::Allocate { .. }) {
            1
        } else {
            2
        }
    };
    steps.iter().map(of).sum()
}

fn once<S: TraceSink>(
    allocator: &mut Allocator<SimpleDriver, S>,
    steps: &[Step],
    live: &mut [Address],
) {
    for step in steps {
        match *step {
            Step::Allocate {
                slot,
                bytes,
                stream,
            } => {
                let got = allocator.malloc(bytes, StreamId(stream));
                live[slot] = got.expect("the card is large enough").address;
            }
            Step::Free { slot } => allocator.free(live[slot]).expect("it is live"),
        }
    }
}

/// What a job took at its best: the machine may be busy with other things as well.
#[derive(Clone, Copy)]
struct Cost {
    /// Iterating over the events.
    inside: f64,
    /// Preparation and evaluation.
    outside: f64,
    /// Heap allocations inside.
    heap_calls: u64,
}

/// How often everything is measured.
const ATTEMPTS: usize = 5;
/// How many events each measurement covers.
const EVENTS: u64 = 4_000_000;

fn best(attempt: impl FnMut() -> Cost) -> Cost {
    let attempts = std::iter::repeat_with(attempt).take(ATTEMPTS);
    let total = |cost: &Cost| cost.inside + cost.outside;
    let best = attempts.min_by(|one, other| total(one).total_cmp(&total(other)));
    best.expect("at least one attempt")
}

/// Seconds that something takes, and how often it touches the heap.
fn cost<T>(what: impl FnOnce() -> T) -> (T, f64, u64) {
    // Reading the clock touches the heap too.
    let begin = core_seconds();
    let calls = HEAP_CALLS.load(Ordering::Relaxed);
    let done = what();
    let calls = HEAP_CALLS.load(Ordering::Relaxed) - calls;
    (done, core_seconds() - begin, calls)
}

fn report(name: &str, events: u64, cost: Cost) {
    let rate = |seconds: f64| events as f64 / seconds / 1e6;
    let Cost {
        inside,
        outside,
        heap_calls,
    } = cost;
    print!(
        "{name:<35} {:>5.1} million events a second, {heap_calls} heap allocations",
        rate(inside)
    );
    if outside > 0.0 {
        print!(" ({:.1} with what is around it)", rate(inside + outside));
    }
    println!();
}

/// The replica by itself.
fn measure(name: &str, settings: &str, steps: &[Step]) {
    let release = Release::REFERENCE;
    let settings = Settings::parse(settings, release).expect("settings of this release");
    let mut allocator = Allocator::new(release, settings, SimpleDriver::new(1 << 44));
    let mut live = vec![Address(0); steps.len() + 1];
    for _ in 0..3 {
        once(&mut allocator, steps, &mut live);
    }
    let rounds = (EVENTS / events(steps)).max(1);
    let best = best(|| {
        let repeat = || (0..rounds).for_each(|_| once(&mut allocator, steps, &mut live));
        let ((), inside, heap_calls) = cost(repeat);
        Cost {
            inside,
            outside: 0.0,
            heap_calls,
        }
    });
    report(name, rounds * events(steps), best);
}

/// A recording of a job, for the replays: as a snapshot would have it.
fn recording(steps: &[Step], rounds: usize) -> Recording {
    let driver = SimpleDriver::new(1 << 44);
    let release = Release::REFERENCE;
    let trace: Vec<TraceEvent> = Vec::new();
    let mut allocator = Allocator::with_trace(release, Settings::default(), driver, trace);
    let mut live = vec![Address(0); steps.len() + 1];
    for _ in 0..rounds {
        once(&mut allocator, steps, &mut live);
    }
    Recording::of(&allocator)
}

/// Replays a recording exactly, and under another setting.
fn measure_replays(name: &str, steps: &[Step]) {
    let rounds = (EVENTS / 2 / events(steps)).max(1) as usize;
    let recording = recording(steps, rounds);
    let entries = recording.operations.len() as u64;
    let release = Release::REFERENCE;
    let environment = Environment::new(release, Settings::default());
    let exact = best(|| {
        let (mut run, before, _) = cost(|| ExactRun::new(&recording, &environment));
        let ((), inside, heap_calls) = cost(|| run.run());
        let (replay, after, _) = cost(|| run.finish());
        assert_eq!(replay.difference, None);
        Cost {
            inside,
            outside: before + after,
            heap_calls,
        }
    });
    report(&format!("exact replay, {name}"), entries, exact);

    let (program, reading, _) = cost(|| Program::of(&recording, &environment));
    let settings = Settings::parse("max_split_size_mb:64", release);
    let settings = settings.expect("settings of this release");
    let what_if = best(|| {
        let (driver, settings) = (SimpleDriver::new(1 << 44), settings.clone());
        let (mut run, before, _) =
            cost(|| WhatIfRun::new(&program, release, settings, None, driver));
        let ((), inside, heap_calls) = cost(|| run.run());
        let (answer, after, _) = cost(|| run.finish());
        assert!(answer.failure.is_none());
        Cost {
            inside,
            outside: before + after,
            heap_calls,
        }
    });
    report(&format!("what-if replay, {name}"), entries, what_if);
    println!(
        "  (reading the program off {entries} entries, once: {:.0} ms)",
        reading * 1e3
    );
}

fn main() {
    // Jobs whose names have this in them.
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let job = |name: &str, settings: &str, steps: fn() -> Vec<Step>| {
        if name.contains(&wanted) {
            measure(name, settings, &steps());
        }
    };
    let one_stream = || training(100, 1);
    job("training step", "", one_stream);
    job("training step, four streams", "", || training(100, 4));
    let expandable = "expandable_segments:True";
    job("training step, expandable segments", expandable, one_stream);
    job("random lifetimes, 1000 live", "", || churn(1_000, 100_000));
    job("random lifetimes, 20000 live", "", || {
        churn(20_000, 400_000)
    });
    let replays = |name: &str, steps: fn() -> Vec<Step>| {
        if format!("replay, {name}").contains(&wanted) {
            measure_replays(name, &steps());
        }
    };
    replays("training", one_stream);
    replays("random, 1000 live", || churn(1_000, 300_000));
    replays("random, 20000 live", || churn(20_000, 400_000));
}

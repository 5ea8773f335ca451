//! Writes a snapshot of any size in the form that PyTorch writes, for benchmarks:
//!
//!     cargo run --release -p ghostgpu-snapshot --example generate_snapshot -- OUT [ALLOCATIONS]
//!
//! Three events per allocation, a new list of 30 frames for each allocation that its frees refer to,
//! frames shared through the memo, 1,500 different stacks. 2,400,000 allocations are a file of 1 GB.
//! A training loop is imitated: activations come and go like a stack in each step, a few blocks live
//! through many steps, parameters and optimizer state are older than the recording.

use std::fs::File;
use std::io::BufWriter;
use std::process::ExitCode;

use ghostgpu_snapshot::{
    AllocatorSettings, Annotation, AnnotationStage, Block, BlockState, ContextId, DeviceTrace,
    Event, EventContext, EventKind, Events, Format, Frame, Names, PoolId, Segment, SegmentKind,
    Snapshot, StackId, StackLists, Stacks, write_snapshot_with,
};

const FRAMES_PER_STACK: u32 = 30;
const STACKS: u32 = 1500;
const PARAMETERS: u64 = 400;
const LAYERS: u64 = 200;
const FIRST_ADDRESS: u64 = 0x7f00_0000_0000;
const START_US: i64 = 1_760_000_000_000_000;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(path) = arguments.next() else {
        eprintln!("usage: generate_snapshot OUT [ALLOCATIONS]");
        return ExitCode::from(2);
    };
    let allocations = match arguments.next().map(|text| text.parse()) {
        None => 2_400_000,
        Some(Ok(allocations)) => allocations,
        Some(Err(error)) => {
            eprintln!("the number of allocations: {error}");
            return ExitCode::from(2);
        }
    };
    let snapshot = generate(allocations);
    let written = File::create(&path).and_then(|file| {
        write_snapshot_with(
            &snapshot,
            StackLists::PerAllocation,
            BufWriter::with_capacity(1 << 20, file),
        )
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{path}: {error}");
            ExitCode::from(2)
        }
    }
}

/// A reproducible source of numbers (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

fn generate(allocations: u64) -> Snapshot {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let (mut names, mut stacks) = (Names::default(), Stacks::default());
    let stack_ids = make_stacks(&mut numbers, &mut names, &mut stacks);
    let context = EventContext {
        compile_context: names.intern("N/A"),
        pool: Some(PoolId::DEFAULT),
        ..EventContext::default()
    };
    let mut clock = START_US;
    let mut events = Events::default();
    let mut annotations = Vec::new();
    let step_name = names.intern("ProfilerStep");
    let mut push = |clock: &mut i64, kind, address, bytes, stack| {
        *clock += 3;
        let event = Event {
            kind,
            address,
            bytes,
            device_free_bytes: None,
            time_us: *clock,
            stack,
            context: ContextId(0),
        };
        events.push(event, context);
    };
    let activations = FIRST_ADDRESS + PARAMETERS * (4 << 20);
    let mut made = 0;
    while made < allocations {
        annotations.push(annotation(step_name, AnnotationStage::Start, clock));
        let mut live: Vec<(u64, u64, StackId)> = Vec::new();
        let mut next = activations;
        for layer in 0..LAYERS {
            for part in 0..8 {
                let stack = stack_ids[((layer * 8 + part) % u64::from(STACKS)) as usize];
                let bytes = 512 * (1 + numbers.below(8000));
                push(&mut clock, EventKind::Alloc, next, bytes, stack);
                made += 1;
                if part % 2 == 0 {
                    live.push((next, bytes, stack));
                    next += bytes.next_multiple_of(512);
                } else {
                    push(&mut clock, EventKind::FreeRequested, next, bytes, stack);
                    push(&mut clock, EventKind::FreeCompleted, next, bytes, stack);
                }
            }
        }
        while let Some((address, bytes, stack)) = live.pop() {
            push(&mut clock, EventKind::FreeRequested, address, bytes, stack);
            push(&mut clock, EventKind::FreeCompleted, address, bytes, stack);
        }
        annotations.push(annotation(step_name, AnnotationStage::End, clock));
    }
    Snapshot {
        format: Format::Snapshot,
        segments: parameters(&stack_ids),
        traces: vec![DeviceTrace { device: 0, events }],
        settings: AllocatorSettings {
            text: Some(String::new()),
            max_split_bytes: Some(None),
            expandable_segments: Some(false),
            garbage_collection_threshold: Some(0.0),
            ..AllocatorSettings::default()
        },
        annotations,
        host_segments: Vec::new(),
        host_events: Events::default(),
        stacks,
        names,
        warnings: Vec::new(),
        pickle_bytes: 0,
    }
}

fn annotation(name: ghostgpu_snapshot::NameId, stage: AnnotationStage, time_us: i64) -> Annotation {
    Annotation {
        name,
        stage,
        device: 0,
        time_us,
    }
}

/// Stacks that share their outer frames, as those of one program do.
fn make_stacks(numbers: &mut Numbers, names: &mut Names, stacks: &mut Stacks) -> Vec<StackId> {
    let mut ids = Vec::new();
    while ids.len() < STACKS as usize {
        let frames: Vec<u32> = (0..FRAMES_PER_STACK)
            .map(|depth| {
                let variants = u64::from(1 + (FRAMES_PER_STACK - depth) * 40);
                let variant = numbers.below(variants);
                let file = match depth {
                    0..=9 => format!(
                        "/usr/lib/python3/dist-packages/torch/nn/modules/part{}.py",
                        variant % 40
                    ),
                    _ => format!("/home/user/project/model/block{}.py", variant % 25),
                };
                let frame = Frame {
                    file: names.intern(&file),
                    function: names.intern(&format!("function_{depth}_{}", variant % 60)),
                    line: 10 + variant,
                    fx: None,
                };
                stacks.intern_frame(frame).0
            })
            .collect();
        let id = stacks.intern_stack(&frames);
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

/// What was allocated before the recording: one segment per parameter.
fn parameters(stack_ids: &[StackId]) -> Vec<Segment> {
    let bytes = 4 << 20;
    let segment = |number: u64| {
        let address = FIRST_ADDRESS + number * bytes;
        Segment {
            device: 0,
            address,
            total_bytes: bytes,
            allocated_bytes: bytes,
            active_bytes: bytes,
            requested_bytes: Some(bytes),
            stream: 0,
            kind: SegmentKind::Large,
            pool: Some(PoolId::DEFAULT),
            is_expandable: false,
            stack: StackId::NONE,
            forward_stack: StackId::NONE,
            blocks: vec![Block {
                address,
                bytes,
                requested_bytes: Some(bytes),
                state: BlockState::Allocated,
                stack: stack_ids[number as usize % stack_ids.len()],
                forward_stack: StackId::NONE,
                history: Vec::new(),
            }],
        }
    };
    (0..PARAMETERS).map(segment).collect()
}

//! Snapshots made by hand, for tests.

use ghostgpu_attribution::recording_of_snapshot;
use ghostgpu_recording::Recording;
use ghostgpu_snapshot::{
    AllocatorSettings, Annotation, AnnotationStage, Block, BlockState, ContextId, DeviceTrace,
    Event, EventContext, EventKind, Events, Format, Frame, Names, PoolId, Segment, SegmentKind,
    Snapshot, StackId, Stacks,
};

/// Bytes of the one segment that each device of a test has.
pub(crate) const SEGMENT_BYTES: u64 = 1 << 20;

/// A snapshot that is put together event by event, a microsecond apart.
#[derive(Debug)]
pub(crate) struct TestSnapshot {
    pub(crate) snapshot: Snapshot,
}

impl TestSnapshot {
    pub(crate) fn new() -> Self {
        Self {
            snapshot: Snapshot {
                format: Format::Snapshot,
                segments: Vec::new(),
                traces: Vec::new(),
                settings: AllocatorSettings::default(),
                annotations: Vec::new(),
                host_segments: Vec::new(),
                host_events: Events::default(),
                stacks: Stacks::default(),
                names: Names::default(),
                warnings: Vec::new(),
                pickle_bytes: 0,
            },
        }
    }

    /// The snapshot as a recording.
    pub(crate) fn recording(&self) -> Recording {
        recording_of_snapshot(&mut self.snapshot.clone())
    }

    /// A stack of frames `function@file:1`, given innermost first.
    pub(crate) fn stack(&mut self, frames: &[&str]) -> StackId {
        let snapshot = &mut self.snapshot;
        let ids: Vec<u32> = frames
            .iter()
            .map(|frame| {
                let (function, file) = frame.split_once('@').unwrap_or((frame, ""));
                let frame = Frame {
                    file: snapshot.names.intern(file),
                    function: snapshot.names.intern(function),
                    line: 1,
                    fx: None,
                };
                snapshot.stacks.intern_frame(frame).0
            })
            .collect();
        snapshot.stacks.intern_stack(&ids)
    }

    pub(crate) fn event(&mut self, kind: EventKind, address: u64, bytes: u64) -> &mut Self {
        self.event_at(0, kind, address, bytes, StackId::NONE)
    }

    pub(crate) fn event_at(
        &mut self,
        device: usize,
        kind: EventKind,
        address: u64,
        bytes: u64,
        stack: StackId,
    ) -> &mut Self {
        let traces = &mut self.snapshot.traces;
        while traces.len() <= device {
            traces.push(DeviceTrace {
                device: traces.len(),
                events: Events::default(),
            });
        }
        let events = &mut traces[device].events;
        let event = Event {
            kind,
            address,
            bytes,
            device_free_bytes: (kind == EventKind::Oom).then_some(12),
            time_us: 1_000_000 + events.len() as i64,
            stack,
            context: ContextId(0),
        };
        events.push(event, EventContext::default());
        self
    }

    pub(crate) fn alloc(&mut self, address: u64, bytes: u64) -> &mut Self {
        self.event(EventKind::Alloc, address, bytes)
    }

    /// A free that completes at once.
    pub(crate) fn free(&mut self, address: u64, bytes: u64) -> &mut Self {
        self.event(EventKind::FreeRequested, address, bytes);
        self.event(EventKind::FreeCompleted, address, bytes)
    }

    /// A segment of [`SEGMENT_BYTES`] at address 0, with blocks of a requested size and an address.
    pub(crate) fn segment(&mut self, blocks: &[(u64, u64, BlockState)]) -> &mut Self {
        let blocks: Vec<Block> = blocks
            .iter()
            .map(|(address, bytes, state)| Block {
                address: *address,
                bytes: bytes.next_multiple_of(512),
                requested_bytes: Some(*bytes),
                state: *state,
                stack: StackId::NONE,
                forward_stack: StackId::NONE,
                history: Vec::new(),
            })
            .collect();
        let sum = |is_counted: fn(BlockState) -> bool| {
            let counted = blocks.iter().filter(|block| is_counted(block.state));
            counted.map(|block| block.bytes).sum()
        };
        let active = blocks.iter().filter(|block| block.state.is_active());
        let requested_bytes = active.map(Block::live_bytes).sum();
        self.snapshot.segments.push(Segment {
            device: 0,
            address: 0,
            total_bytes: SEGMENT_BYTES,
            allocated_bytes: sum(|state| state == BlockState::Allocated),
            active_bytes: sum(BlockState::is_active),
            requested_bytes: Some(requested_bytes),
            stream: 0,
            kind: SegmentKind::Small,
            pool: Some(PoolId::DEFAULT),
            is_expandable: false,
            stack: StackId::NONE,
            forward_stack: StackId::NONE,
            blocks,
        });
        self
    }

    pub(crate) fn annotation(&mut self, name: &str, stage: AnnotationStage, time_us: i64) {
        let name = self.snapshot.names.intern(name);
        self.snapshot.annotations.push(Annotation {
            name,
            stage,
            device: 0,
            time_us,
        });
    }
}

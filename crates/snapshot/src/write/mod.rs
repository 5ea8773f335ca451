//! Writing a snapshot that PyTorch's own tools open.
//!
//! Protocol 4 (PyTorch's web viewer reads no newer one), with the keys in the order in which torch 2.11
//! and newer write them.

mod settings;

use std::collections::HashMap;
use std::io::{self, Write};

use ghostgpu_pickle::{BATCH_ITEMS, MemoSlot, SeededState, Writer};

use crate::events::{Event, EventKind, Events};
use crate::names::NameId;
use crate::segments::{Block, BlockState, PoolId, Segment, SegmentKind};
use crate::snapshot::{Annotation, AnnotationStage, Snapshot};
use crate::stacks::{FrameId, StackId};

/// How many lists of frames are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StackLists {
    /// One for each different stack: the smallest file.
    #[default]
    Shared,
    /// One for each allocation, which its frees refer to, as PyTorch does.
    PerAllocation,
}

/// Writes a snapshot as a pickle.
pub fn write_snapshot(snapshot: &Snapshot, out: impl Write) -> io::Result<()> {
    write_snapshot_with(snapshot, StackLists::Shared, out)
}

/// Writes a snapshot as a pickle, with lists of frames as asked for.
pub fn write_snapshot_with(
    snapshot: &Snapshot,
    lists: StackLists,
    out: impl Write,
) -> io::Result<()> {
    let mut writer = SnapshotWriter {
        pickle: Writer::new(out)?,
        snapshot,
        lists,
        frames: HashMap::default(),
        stacks: HashMap::default(),
        lists_of_live: HashMap::default(),
        // Releases that write a compile context write metadata too, if only empty ones.
        has_metadata: has_text(snapshot, |context| context.user_metadata)
            || has_text(snapshot, |context| context.compile_context),
        has_compile_context: has_text(snapshot, |context| context.compile_context),
    };
    writer.top()?;
    writer.pickle.finish()?.flush()
}

fn has_text(snapshot: &Snapshot, text: fn(&crate::EventContext) -> NameId) -> bool {
    let mut contexts = snapshot
        .traces
        .iter()
        .flat_map(|trace| trace.events.known_contexts());
    contexts.any(|context| text(context) != NameId::EMPTY)
}

struct SnapshotWriter<'a, W: Write> {
    pickle: Writer<W>,
    snapshot: &'a Snapshot,
    lists: StackLists,
    frames: HashMap<FrameId, MemoSlot, SeededState>,
    stacks: HashMap<StackId, MemoSlot, SeededState>,
    /// By address: the list that the allocation there was written with.
    lists_of_live: HashMap<u64, (StackId, MemoSlot), SeededState>,
    has_metadata: bool,
    has_compile_context: bool,
}

impl<W: Write> SnapshotWriter<'_, W> {
    fn top(&mut self) -> io::Result<()> {
        let snapshot = self.snapshot;
        self.pickle.dict()?;
        self.pickle.open()?;
        self.pickle.string("segments")?;
        self.list(&snapshot.segments, Self::segment)?;
        self.pickle.string("device_traces")?;
        self.list(&snapshot.traces, |writer, trace| {
            writer.events(&trace.events)
        })?;
        self.pickle.string("allocator_settings")?;
        self.settings(&snapshot.settings)?;
        self.pickle.string("external_annotations")?;
        self.list(&snapshot.annotations, Self::annotation)?;
        if !snapshot.host_segments.is_empty() || !snapshot.host_events.is_empty() {
            self.pickle.string("host_segments")?;
            self.list(&snapshot.host_segments, Self::segment)?;
            self.pickle.string("host_traces")?;
            self.events(&snapshot.host_events)?;
        }
        self.pickle.set_items()
    }

    /// A list in batches, as Python writes one.
    fn list<T>(
        &mut self,
        items: &[T],
        mut write: impl FnMut(&mut Self, &T) -> io::Result<()>,
    ) -> io::Result<()> {
        self.pickle.list()?;
        if let [item] = items {
            write(self, item)?;
            return self.pickle.append();
        }
        for batch in items.chunks(BATCH_ITEMS) {
            self.pickle.open()?;
            for item in batch {
                write(self, item)?;
            }
            self.pickle.append_all()?;
        }
        Ok(())
    }

    fn segment(&mut self, segment: &Segment) -> io::Result<()> {
        self.pickle.dict()?;
        self.pickle.open()?;
        self.pickle.string("device")?;
        self.pickle.integer(segment.device)?;
        self.unsigned("address", segment.address)?;
        self.unsigned("total_size", segment.total_bytes)?;
        self.unsigned("allocated_size", segment.allocated_bytes)?;
        self.unsigned("active_size", segment.active_bytes)?;
        self.unsigned(
            "requested_size",
            segment.requested_bytes.unwrap_or(segment.active_bytes),
        )?;
        self.unsigned("stream", segment.stream)?;
        self.pickle.string("segment_type")?;
        self.pickle.string(match segment.kind {
            SegmentKind::Small => "small",
            SegmentKind::Large => "large",
        })?;
        self.pickle.string("segment_pool_id")?;
        self.pool(segment.pool.unwrap_or(PoolId::DEFAULT))?;
        self.pickle.string("is_expandable")?;
        self.pickle.boolean(segment.is_expandable)?;
        self.pickle.string("frames")?;
        self.shared_stack(segment.stack)?;
        self.pickle.string("blocks")?;
        self.list(&segment.blocks, Self::block)?;
        self.pickle.set_items()
    }

    fn block(&mut self, block: &Block) -> io::Result<()> {
        self.pickle.dict()?;
        self.pickle.open()?;
        self.unsigned("address", block.address)?;
        self.unsigned("size", block.bytes)?;
        self.unsigned("requested_size", block.live_bytes())?;
        self.pickle.string("state")?;
        self.pickle.string(match block.state {
            BlockState::Allocated => "active_allocated",
            BlockState::PendingFree => "active_pending_free",
            BlockState::Inactive => "inactive",
        })?;
        self.pickle.string("frames")?;
        self.shared_stack(block.stack)?;
        if block.forward_stack != StackId::NONE {
            self.pickle.string("forward_frames")?;
            self.texts(block.forward_stack)?;
        }
        self.pickle.set_items()
    }

    fn events(&mut self, events: &Events) -> io::Result<()> {
        self.lists_of_live.clear();
        self.pickle.list()?;
        if events.len() == 1
            && let Some(event) = events.get(0)
        {
            self.event(events, event)?;
            return self.pickle.append();
        }
        for start in (0..events.len()).step_by(BATCH_ITEMS) {
            self.pickle.open()?;
            for event in
                (start..events.len().min(start + BATCH_ITEMS)).filter_map(|at| events.get(at))
            {
                self.event(events, event)?;
            }
            self.pickle.append_all()?;
        }
        Ok(())
    }

    fn event(&mut self, events: &Events, event: Event) -> io::Result<()> {
        let context = events.context(event.context);
        let names = &self.snapshot.names;
        self.pickle.dict()?;
        self.pickle.open()?;
        self.pickle.string("action")?;
        self.pickle.string(event.kind.action())?;
        match event.device_free_bytes {
            Some(bytes) => self.unsigned("device_free", bytes)?,
            None => self.unsigned("addr", event.address)?,
        }
        self.unsigned("size", event.bytes)?;
        self.unsigned("stream", context.stream)?;
        if event.time_us != 0 {
            self.pickle.string("time_us")?;
            self.pickle.integer(event.time_us)?;
        }
        if self.has_compile_context {
            self.pickle.string("compile_context")?;
            // C++ makes a new string of every one that is not empty.
            match names.text(context.compile_context) {
                "" => self.pickle.string("")?,
                text => drop(self.pickle.new_string(text)?),
            }
        }
        if self.has_metadata {
            self.pickle.string("user_metadata")?;
            match names.text(context.user_metadata) {
                "" => self.pickle.string("")?,
                text => drop(self.pickle.new_string(text)?),
            }
        }
        for (key, name) in [
            ("internal_metadata", context.internal_metadata),
            ("category", context.category),
        ] {
            if name != NameId::EMPTY {
                self.pickle.string(key)?;
                self.pickle.string(names.text(name))?;
            }
        }
        if let Some(pool) = context.pool {
            self.pickle.string("pool_id")?;
            self.pool(pool)?;
        }
        if event.stack != StackId::NONE {
            self.pickle.string("frames")?;
            self.stack_of(event)?;
        }
        if context.forward_stack != StackId::NONE {
            self.pickle.string("forward_frames")?;
            self.texts(context.forward_stack)?;
        }
        self.pickle.set_items()
    }

    fn stack_of(&mut self, event: Event) -> io::Result<()> {
        if self.lists == StackLists::Shared {
            return self.shared_stack(event.stack);
        }
        if event.kind != EventKind::Alloc
            && let Some((stack, slot)) = self.lists_of_live.get(&event.address)
            && *stack == event.stack
        {
            let slot = *slot;
            return self.pickle.again(slot);
        }
        let slot = self.new_stack(event.stack)?;
        self.lists_of_live
            .insert(event.address, (event.stack, slot));
        Ok(())
    }

    fn shared_stack(&mut self, stack: StackId) -> io::Result<()> {
        if let Some(slot) = self.stacks.get(&stack) {
            let slot = *slot;
            return self.pickle.again(slot);
        }
        let slot = self.new_stack(stack)?;
        self.stacks.insert(stack, slot);
        Ok(())
    }

    fn new_stack(&mut self, stack: StackId) -> io::Result<MemoSlot> {
        let frames = self.snapshot.stacks.frames_of(stack);
        let slot = self.pickle.list()?;
        if let [frame] = frames {
            self.frame(*frame)?;
            self.pickle.append()?;
            return Ok(slot);
        }
        for batch in frames.chunks(BATCH_ITEMS) {
            self.pickle.open()?;
            for frame in batch {
                self.frame(*frame)?;
            }
            self.pickle.append_all()?;
        }
        Ok(slot)
    }

    fn frame(&mut self, id: FrameId) -> io::Result<()> {
        if let Some(slot) = self.frames.get(&id) {
            return self.pickle.again(*slot);
        }
        let frame = self.snapshot.stacks.frame(id);
        let names = &self.snapshot.names;
        let slot = self.pickle.dict()?;
        self.frames.insert(id, slot);
        self.pickle.open()?;
        self.pickle.string("name")?;
        self.pickle.string(names.text(frame.function))?;
        self.pickle.string("filename")?;
        self.pickle.string(names.text(frame.file))?;
        self.pickle.string("line")?;
        self.pickle.unsigned(frame.line)?;
        if let Some(fx) = frame.fx {
            let fields = [
                ("fx_node_op", fx.operation),
                ("fx_node_name", fx.name),
                ("fx_node_target", fx.target),
                ("fx_original_trace", fx.original_trace),
            ];
            for (key, text) in fields {
                if text != NameId::EMPTY {
                    self.pickle.string(key)?;
                    self.pickle.string(names.text(text))?;
                }
            }
        }
        self.pickle.set_items()
    }

    /// A stack that is lines of text.
    fn texts(&mut self, stack: StackId) -> io::Result<()> {
        let frames = self.snapshot.stacks.frames_of(stack);
        self.list(frames, |writer, frame| {
            let function = writer.snapshot.stacks.frame(*frame).function;
            let text = writer.snapshot.names.text(function);
            writer.pickle.string(text)
        })
    }

    fn annotation(&mut self, annotation: &Annotation) -> io::Result<()> {
        self.pickle.dict()?;
        self.pickle.open()?;
        self.pickle.string("stage")?;
        self.pickle.string(match annotation.stage {
            AnnotationStage::Start => "START",
            AnnotationStage::End => "END",
            AnnotationStage::Other => "",
        })?;
        self.pickle.string("name")?;
        self.pickle
            .string(self.snapshot.names.text(annotation.name))?;
        self.pickle.string("device")?;
        self.pickle.integer(annotation.device)?;
        self.pickle.string("time_us")?;
        self.pickle.integer(annotation.time_us)?;
        self.pickle.set_items()
    }

    fn pool(&mut self, pool: PoolId) -> io::Result<()> {
        self.pickle.unsigned(pool.0)?;
        self.pickle.unsigned(pool.1)?;
        self.pickle.pair()?;
        Ok(())
    }

    fn unsigned(&mut self, key: &str, value: u64) -> io::Result<()> {
        self.pickle.string(key)?;
        self.pickle.unsigned(value)
    }
}

//! From a snapshot to what the replica replays: one device's entries and segments.

use ghostgpu_allocator::replay::{Context, Operation, Operations, Recording};
use ghostgpu_allocator::{
    Action, Address, BlockState, BlockView, PoolId, PoolKind, SegmentView, StreamId,
};
use ghostgpu_snapshot::{self as trace, EventKind, Events, Snapshot};

/// A recording of one device, and how its entries are numbered in the file.
#[derive(Debug, Clone, Default)]
pub struct DeviceRecording {
    pub recording: Recording,
    /// Positions of events that the replica does not know, in ascending order.
    left_out: Vec<usize>,
}

impl DeviceRecording {
    /// Takes one device out of a snapshot. Without events the recording is empty.
    pub fn of(snapshot: &Snapshot, device: usize) -> Self {
        let mut found = Self::default();
        let traces = snapshot.traces.iter();
        if let Some(trace) = traces.into_iter().find(|trace| trace.device == device) {
            found.take_events(&trace.events);
        }
        found.recording.segments = snapshot.segments_of(device).map(segment).collect();
        found
    }

    fn take_events(&mut self, events: &Events) {
        let contexts: Vec<Context> = events
            .known_contexts()
            .iter()
            .map(|context| Context {
                stream: StreamId(context.stream),
                pool: context.pool.map(pool),
            })
            .collect();
        let mut operations = Operations::with_capacity(events.len());
        for (at, kind) in events.kinds().iter().enumerate() {
            let Some(action) = action(*kind) else {
                self.left_out.push(at);
                continue;
            };
            operations.push(Operation {
                action,
                address: Address(events.addresses()[at]),
                bytes: events.bytes()[at],
                context: contexts[events.contexts()[at].0 as usize],
            });
        }
        self.recording.operations = operations;
    }

    /// The entry that an event of the file is, or the next one.
    pub fn operation_of(&self, event: usize) -> usize {
        let before = self.left_out.partition_point(|&left_out| left_out < event);
        event - before
    }

    /// The number that an entry has in the file.
    pub fn event_of(&self, operation: usize) -> usize {
        let mut event = operation;
        for &left_out in &self.left_out {
            if left_out > event {
                break;
            }
            event += 1;
        }
        event
    }
}

fn action(kind: EventKind) -> Option<Action> {
    Some(match kind {
        EventKind::Alloc => Action::Alloc,
        EventKind::FreeRequested => Action::FreeRequested,
        EventKind::FreeCompleted => Action::FreeCompleted,
        EventKind::SegmentAlloc => Action::SegmentAlloc,
        EventKind::SegmentFree => Action::SegmentFree,
        EventKind::SegmentMap => Action::SegmentMap,
        EventKind::SegmentUnmap => Action::SegmentUnmap,
        EventKind::Oom => Action::Oom,
        EventKind::Snapshot => Action::Snapshot,
        EventKind::Annotate | EventKind::Other => return None,
    })
}

fn pool(pool: trace::PoolId) -> PoolId {
    PoolId(pool.0, pool.1)
}

/// A segment of a snapshot, as the replica's type.
pub fn segment(segment: &trace::Segment) -> SegmentView {
    SegmentView {
        address: Address(segment.address),
        total_size: segment.total_bytes,
        allocated_size: segment.allocated_bytes,
        active_size: segment.active_bytes,
        requested_size: segment.requested_bytes.unwrap_or(segment.active_bytes),
        stream: StreamId(segment.stream),
        kind: match segment.kind {
            trace::SegmentKind::Small => PoolKind::Small,
            trace::SegmentKind::Large => PoolKind::Large,
        },
        pool: segment.pool.map_or(PoolId::DEFAULT, pool),
        is_expandable: segment.is_expandable,
        blocks: segment.blocks.iter().map(block).collect(),
    }
}

fn block(block: &trace::Block) -> BlockView {
    BlockView {
        address: Address(block.address),
        size: block.bytes,
        requested_size: block.live_bytes(),
        state: match block.state {
            trace::BlockState::Allocated => BlockState::Allocated,
            trace::BlockState::PendingFree => BlockState::PendingFree,
            trace::BlockState::Inactive => BlockState::Inactive,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ghostgpu_snapshot::{ContextId, DeviceTrace, Event, EventContext, StackId};

    fn event(kind: EventKind, address: u64, bytes: u64) -> Event {
        Event {
            kind,
            address,
            bytes,
            device_free_bytes: None,
            time_us: 0,
            stack: StackId::NONE,
            context: ContextId(0),
        }
    }

    #[test]
    fn entries_keep_the_numbers_they_have_in_the_file() {
        let mut events = Events::default();
        for (kind, address) in [
            (EventKind::Annotate, 1),
            (EventKind::Alloc, 2),
            (EventKind::Other, 3),
            (EventKind::Annotate, 4),
            (EventKind::FreeRequested, 5),
            (EventKind::FreeCompleted, 6),
        ] {
            events.push(event(kind, address, 8), EventContext::default());
        }
        let mut found = DeviceRecording::default();
        found.take_events(&events);
        let addresses: Vec<u64> = found.recording.operations.addresses().to_vec();
        assert_eq!(addresses, [2, 5, 6]);
        let numbers: Vec<usize> = (0..3).map(|operation| found.event_of(operation)).collect();
        assert_eq!(numbers, [1, 4, 5]);
        assert_eq!(DeviceTrace::default().events.len(), 0);
    }
}

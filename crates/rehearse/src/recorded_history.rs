//! What PyTorch's allocator did in a run, for its replica: would less memory have been enough?

use ghostgpu_recording::{CardMemory, Category, Recording};
use ghostgpu_session::memory_log::{LogEntry, LogReader};
use ghostgpu_snapshot::{DeviceTrace, EventKind, Snapshot};
use ghostgpu_whatif::{History, Known, OthersMemory, Outside};

/// The history of a process that used one card; none where the replica does not lead to what was recorded.
pub fn replayable_history(
    log: &[u8],
    snapshot: &Snapshot,
    recording: &Recording,
) -> Option<History> {
    let [card] = recording.cards.as_slice() else {
        return None;
    };
    let device = card.index as usize;
    let trace = snapshot
        .traces
        .iter()
        .find(|trace| trace.device == device)?;
    let known = Known {
        release: recording.about.torch.parse().ok(),
        ..Known::default()
    };
    let mut history = History::of(snapshot, device, known).ok()?;
    if history.difference().is_some() {
        return None;
    }
    let purposes = purposes_of_spare_events(trace, card, &recording.names.operators);
    history.spare(|event| purposes.get(event).copied().flatten());
    if let Some(others) = others_memory(log, trace) {
        history.beside(others);
    }
    Some(history)
}

/// By event: the purpose of a request that the program can do without. PyTorch asks cuDNN for the algorithms of
/// a convolution, the quickest first, and where the workspace of one does not fit it takes the next.
fn purposes_of_spare_events(
    trace: &DeviceTrace,
    card: &CardMemory,
    operators: &[String],
) -> Vec<Option<u8>> {
    // A recording has the allocations in the order of the events that made them.
    let mut allocations = card
        .allocations
        .iter()
        .filter(|allocation| allocation.allocated_at.is_some());
    let purpose = |kind: &EventKind| {
        let allocation = match kind {
            EventKind::Alloc => allocations.next()?,
            _ => return None,
        };
        let operator = operators.get(allocation.operator.0 as usize)?;
        let is_spare = allocation.category == Category::Workspace && is_convolution(operator);
        // Forward and backward passes choose for themselves; a model has few such operators.
        is_spare.then_some(allocation.operator.0 as u8)
    };
    trace.events.kinds().iter().map(purpose).collect()
}

/// `aten::conv2d`, `aten::cudnn_convolution_transpose`, `ConvolutionBackward0`.
fn is_convolution(operator: &str) -> bool {
    operator.to_ascii_lowercase().contains("conv")
}

/// What the context and libraries took from the driver, each before the event of the next allocation; none
/// if nobody said.
fn others_memory(log: &[u8], trace: &DeviceTrace) -> Option<OthersMemory> {
    let kinds = trace.events.kinds().iter().enumerate();
    let mut allocations = kinds
        .filter(|(_, kind)| **kind == EventKind::Alloc)
        .map(|(event, _)| event);
    let mut next = allocations.next()?;
    let mut others = OthersMemory::default();
    for entry in LogReader::new(log) {
        match entry.ok()? {
            LogEntry::Allocated { device, .. } if usize::from(device) == trace.device => {
                next = allocations.next().unwrap_or(usize::MAX);
            }
            // These name a card of the machine, the allocator one that the process sees: here it is the
            // same one.
            LogEntry::LibraryMemory { bytes, .. } => {
                others.taken.push((next, Outside::Library { bytes }));
            }
            LogEntry::FirstKernel {
                context_bytes,
                bytes,
                ..
            } => {
                others.context_bytes = context_bytes;
                others.taken.push((next, Outside::FirstKernel { bytes }));
            }
            _ => {}
        }
    }
    (others.context_bytes > 0).then_some(others)
}

#[cfg(test)]
mod tests {
    use ghostgpu_recording::{Allocation, ModuleId, NameId, OperatorId, PoolId, StackId};
    use ghostgpu_session::memory_log::Totals;
    use ghostgpu_snapshot::{ContextId, Event, EventContext};

    use super::*;

    fn trace(kinds: &[EventKind]) -> DeviceTrace {
        let mut trace = DeviceTrace::default();
        for &kind in kinds {
            let event = Event {
                kind,
                address: 1 << 40,
                bytes: 512,
                device_free_bytes: None,
                time_us: 0,
                stack: ghostgpu_snapshot::StackId::NONE,
                context: ContextId(0),
            };
            trace.events.push(event, EventContext::default());
        }
        trace
    }

    fn log(entries: &[LogEntry]) -> Vec<u8> {
        let mut log = Vec::new();
        for entry in entries {
            entry.write(&mut log);
        }
        log
    }

    fn allocated(device: u8) -> LogEntry<'static> {
        LogEntry::Allocated {
            device,
            address: 1 << 40,
            block_bytes: 512,
            operator: 0,
            module: 0,
            totals: Totals::default(),
        }
    }

    #[test]
    fn what_others_took_comes_before_the_next_allocation() {
        use EventKind::{Alloc, FreeCompleted, FreeRequested, SegmentAlloc};
        let trace = trace(&[SegmentAlloc, Alloc, FreeRequested, FreeCompleted, Alloc]);
        let library = LogEntry::LibraryMemory {
            device: 0,
            bytes: 8,
        };
        let kernel = LogEntry::FirstKernel {
            device: 0,
            context_bytes: 100,
            bytes: 9,
        };
        // What happens on another card is no allocation of this one.
        let entries = [
            library,
            allocated(0),
            allocated(1),
            kernel,
            allocated(0),
            library,
        ];
        assert_eq!(
            others_memory(&log(&entries), &trace),
            Some(OthersMemory {
                context_bytes: 100,
                taken: vec![
                    (1, Outside::Library { bytes: 8 }),
                    (4, Outside::FirstKernel { bytes: 9 }),
                    (usize::MAX, Outside::Library { bytes: 8 }),
                ],
            })
        );
        assert_eq!(others_memory(&log(&[allocated(0)]), &trace), None);
    }

    #[test]
    fn only_workspaces_of_convolutions_can_be_spared() {
        use EventKind::{Alloc, FreeRequested};
        let operators = ["", "aten::conv2d", "aten::linear", "ConvolutionBackward0"];
        let allocation = |category, operator| Allocation {
            address: 1 << 40,
            requested_bytes: 512,
            block_bytes: 512,
            allocated_at: Some(0),
            freed_at: None,
            category,
            name: NameId(0),
            module: ModuleId(0),
            operator: OperatorId(operator),
            stack: StackId(0),
            pool: PoolId(0),
        };
        let older = Allocation {
            allocated_at: None,
            ..allocation(Category::Workspace, 1)
        };
        let card = CardMemory {
            allocations: vec![
                older,
                allocation(Category::Workspace, 1),
                allocation(Category::Activation, 1),
                allocation(Category::Workspace, 2),
                allocation(Category::Workspace, 3),
            ],
            ..CardMemory::default()
        };
        let trace = trace(&[FreeRequested, Alloc, Alloc, Alloc, FreeRequested, Alloc]);
        let purposes = purposes_of_spare_events(&trace, &card, &operators.map(str::to_owned));
        assert_eq!(purposes, [None, Some(1), None, None, None, Some(3)]);
    }
}

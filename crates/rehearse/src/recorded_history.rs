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

//! What PyTorch's allocator did in a run, for its replica: would less memory have been enough?

use ghostgpu_recording::{Category, Recording};
use ghostgpu_snapshot::{EventKind, Snapshot};
use ghostgpu_whatif::{History, Known};

/// The history of a process that used one card; none where the replica does not lead to what was recorded.
pub fn replayable_history(snapshot: &Snapshot, recording: &Recording) -> Option<History> {
    let [card] = recording.cards.as_slice() else {
        return None;
    };
    let known = Known {
        release: recording.about.torch.parse().ok(),
        ..Known::default()
    };
    let mut history = History::of(snapshot, card.index as usize, known).ok()?;
    if history.difference().is_some() {
        return None;
    }
    let is_spare = spare_events(snapshot, recording);
    history.spare(|event| is_spare.get(event).copied().unwrap_or(false));
    Some(history)
}

/// By event: a request that the program can do without. PyTorch asks cuDNN for the algorithms of a convolution,
/// the quickest first, and where the workspace of one does not fit it takes the next.
fn spare_events(snapshot: &Snapshot, recording: &Recording) -> Vec<bool> {
    let [card] = recording.cards.as_slice() else {
        return Vec::new();
    };
    let device = card.index as usize;
    let Some(trace) = snapshot.traces.iter().find(|trace| trace.device == device) else {
        return Vec::new();
    };
    // A recording has the allocations in the order of the events that made them.
    let mut allocations = card
        .allocations
        .iter()
        .filter(|allocation| allocation.allocated_at.is_some());
    let is_spare = |kind: &EventKind| {
        *kind == EventKind::Alloc
            && allocations.next().is_some_and(|allocation| {
                let operator = recording.names.operators.get(allocation.operator.0 as usize);
                allocation.category == Category::Workspace
                    && operator.is_some_and(|name| name.contains("conv"))
            })
    };
    trace.events.kinds().iter().map(is_spare).collect()
}

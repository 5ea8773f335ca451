//! PyTorch's own pickle, which `torch/cuda/_memory_viz.py` and PyTorch's page open.

use std::io::Write;

use ghostgpu_snapshot::{DeviceTrace, Events, Snapshot, write_snapshot};

use crate::error::ReportError;

/// What to write into PyTorch's pickle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryVizOptions {
    /// Only this many of the latest events of each device, as if the ring of events had been that long. PyTorch's page
    /// handles about 100,000 events well, and a file of 1 GB not at all.
    pub max_events: Option<usize>,
}

/// Writes the snapshot as PyTorch would, with pickle protocol 4.
///
/// PyTorch's page reads no newer protocol, but Python 3.14 writes one; rewriting such a file makes it open. A file with
/// only segments gets empty traces.
pub fn write_memory_viz(
    snapshot: &Snapshot,
    options: &MemoryVizOptions,
    out: impl Write,
) -> Result<(), ReportError> {
    match options.max_events {
        Some(max_events) if has_more_events(snapshot, max_events) => {
            write_snapshot(&with_latest_events(snapshot, max_events), out)?;
        }
        _ => write_snapshot(snapshot, out)?,
    }
    Ok(())
}

fn has_more_events(snapshot: &Snapshot, max_events: usize) -> bool {
    let mut traces = snapshot.traces.iter();
    traces.any(|trace| trace.events.len() > max_events) || snapshot.host_events.len() > max_events
}

fn with_latest_events(snapshot: &Snapshot, max_events: usize) -> Snapshot {
    Snapshot {
        format: snapshot.format,
        segments: snapshot.segments.clone(),
        traces: snapshot
            .traces
            .iter()
            .map(|trace| DeviceTrace {
                device: trace.device,
                events: latest(&trace.events, max_events),
            })
            .collect(),
        settings: snapshot.settings.clone(),
        annotations: snapshot.annotations.clone(),
        host_segments: snapshot.host_segments.clone(),
        host_events: latest(&snapshot.host_events, max_events),
        stacks: snapshot.stacks.clone(),
        names: snapshot.names.clone(),
        warnings: snapshot.warnings.clone(),
        pickle_bytes: snapshot.pickle_bytes,
    }
}

fn latest(events: &Events, max_events: usize) -> Events {
    let mut kept = Events::default();
    for event in events.iter().skip(events.len().saturating_sub(max_events)) {
        kept.push(event, *events.context(event.context));
    }
    kept
}

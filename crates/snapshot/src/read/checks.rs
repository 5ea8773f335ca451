//! What can be told about a snapshot's completeness from one look at it.

use crate::events::{EventKind, Events};
use crate::segments::Segment;
use crate::snapshot::{Format, Snapshot};
use crate::warning::{Missing, Warning};

/// Adds the warnings that follow from the whole.
pub(super) fn check(snapshot: &mut Snapshot) {
    let mut warnings = Vec::new();
    check_state(snapshot, &mut warnings);
    if snapshot.settings.trace_overflowed == Some(true) {
        warnings.push(Warning::RingOverflowed {
            device: None,
            max_entries: snapshot.settings.trace_max_entries,
        });
    }
    for trace in &snapshot.traces {
        let has_memory = snapshot.segments_of(trace.device).next().is_some();
        check_events(trace.device, &trace.events, has_memory, &mut warnings);
    }
    let has_times =
        |events: &Events| events.is_empty() || events.times_us().iter().any(|time| *time != 0);
    if !snapshot.traces.iter().all(|trace| has_times(&trace.events)) {
        warnings.push(Warning::NotRecorded(Missing::Times));
    }
    let anything = snapshot.traces.iter().any(|trace| !trace.events.is_empty())
        || snapshot
            .segments
            .iter()
            .any(|segment| segment.active_bytes > 0);
    if anything && snapshot.stacks.is_empty() {
        warnings.push(Warning::NoStacks);
    }
    snapshot.warnings.append(&mut warnings);
}

fn check_state(snapshot: &Snapshot, warnings: &mut Vec<Warning>) {
    if snapshot.format == Format::SegmentsOnly {
        warnings.push(Warning::NotRecorded(Missing::Traces));
    }
    let segments = &snapshot.segments;
    let has_requested = segments
        .iter()
        .flat_map(|segment| &segment.blocks)
        .any(|block| block.requested_bytes.is_some());
    let has_active = segments
        .iter()
        .flat_map(|segment| &segment.blocks)
        .any(|block| block.state.is_active());
    if has_active && !has_requested {
        warnings.push(Warning::NotRecorded(Missing::RequestedSizes));
    }
    if !segments.is_empty() && segments.iter().all(|segment| segment.pool.is_none()) {
        warnings.push(Warning::NotRecorded(Missing::Pools));
    }
    let uncovered = segments
        .iter()
        .filter(|segment| !is_covered(segment))
        .count() as u64;
    if uncovered > 0 {
        warnings.push(Warning::BlocksDoNotCover { count: uncovered });
    }
}

/// Whether the blocks follow each other from the segment's first byte to its last.
fn is_covered(segment: &Segment) -> bool {
    let mut next = segment.address;
    for block in &segment.blocks {
        if block.address != next {
            return false;
        }
        match next.checked_add(block.bytes) {
            Some(end) => next = end,
            None => return false,
        }
    }
    Some(next) == segment.address.checked_add(segment.total_bytes)
}

fn check_events(device: usize, events: &Events, has_memory: bool, warnings: &mut Vec<Warning>) {
    if events.is_empty() {
        if has_memory {
            warnings.push(Warning::NoEvents { device });
        }
        return;
    }
    let times = events.times_us();
    let mut backwards = times
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| pair[1] < pair[0]);
    if let Some((first, _)) = backwards.next() {
        warnings.push(Warning::TimeRunsBackwards {
            device,
            event: first + 1,
            count: 1 + backwards.count() as u64,
        });
    }
    // A short trace may well have no free yet; a long one has not by chance.
    if events.len() >= 1000 {
        for kind in [EventKind::Alloc, EventKind::FreeCompleted] {
            if !events.kinds().contains(&kind) {
                warnings.push(Warning::ActionsLeftOut {
                    device,
                    action: kind.action(),
                });
            }
        }
    }
}

//! JSON: a snapshot's state, peaks and holders for other programs.
//!
//! The document is versioned and described in `docs/snapshot-json.md`; its types are in [`document`].
//! Numbers are bytes, never text; the same snapshot gives the same bytes.

mod document;
mod state;

use std::collections::BTreeMap;
use std::io::Write;

use ghostgpu_ledger::{Ledger, Level};
use ghostgpu_trace::{EventKind, Format, Snapshot};

use crate::error::ReportError;
use crate::holdings::{Held, Origin, Owner, devices, events_of, held_by_owner};
use document::{Device, Document, Frame, Holder, Holders, OutOfMemory, Peak, Pool, Source, Trace};

/// What the JSON document has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonOptions {
    /// Only this device.
    pub device: Option<usize>,
    /// At most so many holders at each moment, the largest first; the rest is one sum.
    pub max_holders: usize,
}

impl Default for JsonOptions {
    fn default() -> Self {
        Self {
            device: None,
            max_holders: 100,
        }
    }
}

/// Writes the document, indented, with a newline at its end.
pub fn write_json(
    snapshot: &Snapshot,
    options: &JsonOptions,
    mut out: impl Write,
) -> Result<(), ReportError> {
    let ledgers: Vec<Ledger> = devices(snapshot, options.device)?
        .into_iter()
        .map(|device| Ledger::new(snapshot, device))
        .collect();
    let found_missing = ledgers.iter().flat_map(Ledger::warnings);
    let warnings = snapshot.warnings.iter().chain(found_missing);
    let document = Document {
        schema: document::SCHEMA,
        source: Source {
            format: match snapshot.format {
                Format::Snapshot => "snapshot",
                Format::SegmentsOnly => "segments_only",
            },
            pickle_bytes: snapshot.pickle_bytes,
        },
        warnings: warnings.map(ToString::to_string).collect(),
        settings: state::settings(&snapshot.settings),
        devices: ledgers
            .iter()
            .map(|ledger| describe(snapshot, ledger, options.max_holders))
            .collect(),
    };
    serde_json::to_writer_pretty(&mut out, &document)?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}

fn describe(snapshot: &Snapshot, ledger: &Ledger, max_holders: usize) -> Device {
    let device = ledger.device();
    let holders_at = |level: Level| {
        let by_owner = held_by_owner(snapshot, ledger, level.moment);
        holders(snapshot, &by_owner, max_holders)
    };
    Device {
        device,
        state: state::state(snapshot, device),
        trace: trace(snapshot, ledger),
        peak_active: peak(ledger.peak()),
        peak_reserved: peak(ledger.peak_reserved()),
        holders_at_peak: holders_at(ledger.peak()),
        holders_at_end: holders_at(ledger.end()),
        pools: state::pools(snapshot, device),
        segments: snapshot.segments_of(device).map(state::segment).collect(),
    }
}

fn peak(level: Level) -> Peak {
    Peak {
        event: level.moment.0.checked_sub(1),
        time_us: Some(level.time_us).filter(|us| *us != 0),
        active_requested_bytes: level.live_bytes,
        active_bytes_at_least: level.block_bytes,
        reserved_bytes: level.reserved_bytes,
    }
}

fn trace(snapshot: &Snapshot, ledger: &Ledger) -> Option<Trace> {
    let events = events_of(snapshot, ledger.device())?;
    let time_at = |at: usize| events.times_us().get(at).copied().filter(|us| *us != 0);
    let mut counts = BTreeMap::new();
    for kind in events.kinds() {
        *counts.entry(kind.action()).or_insert(0) += 1;
    }
    let out_of_memory = events
        .iter()
        .enumerate()
        .filter(|(_, event)| event.kind == EventKind::Oom)
        .map(|(at, event)| OutOfMemory {
            event: at,
            time_us: Some(event.time_us).filter(|us| *us != 0),
            bytes: event.bytes,
            device_free_bytes: event.device_free_bytes,
        })
        .collect();
    Some(Trace {
        events: events.len(),
        events_by_action: counts,
        first_time_us: time_at(0),
        last_time_us: time_at(events.len().saturating_sub(1)),
        blocks_older_than_trace: ledger.older().len(),
        out_of_memory,
    })
}

fn holders(snapshot: &Snapshot, by_owner: &BTreeMap<Owner, Held>, max_holders: usize) -> Holders {
    let mut live: Vec<_> = by_owner
        .iter()
        .filter(|(_, held)| held.live_blocks > 0)
        .collect();
    // The map's own order, which is that of the file, decides among equals.
    live.sort_by_key(|(_, held)| std::cmp::Reverse(held.live_bytes));
    let shown = max_holders.min(live.len());
    let sum = |part: &[(&_, &Held)], value: fn(&Held) -> u64| {
        part.iter()
            .map(|(_, held)| value(held))
            .fold(0_u64, u64::saturating_add)
    };
    Holders {
        requested_bytes: sum(&live, |held| held.live_bytes),
        blocks: sum(&live, |held| held.live_blocks),
        other_requested_bytes: sum(&live[shown..], |held| held.live_bytes),
        other_blocks: sum(&live[shown..], |held| held.live_blocks),
        holders: live[..shown]
            .iter()
            .map(|(owner, held)| Holder {
                requested_bytes: held.live_bytes,
                blocks: held.live_blocks,
                stream: owner.stream,
                pool: owner.pool.map(|pool| Pool(pool.0, pool.1)),
                category: Some(snapshot.names.text(owner.category).to_owned())
                    .filter(|category| !category.is_empty()),
                origin: match owner.origin {
                    Origin::Stack(_) => "stack",
                    Origin::NoStack => "no_stack",
                    Origin::BeforeTrace => "before_trace",
                },
                stack: stack(snapshot, owner.origin),
            })
            .collect(),
    }
}

fn stack(snapshot: &Snapshot, origin: Origin) -> Vec<Frame> {
    let Origin::Stack(id) = origin else {
        return Vec::new();
    };
    let frames = snapshot.stacks.frames_of(id).iter();
    frames
        .map(|id| {
            let frame = snapshot.stacks.frame(*id);
            Frame {
                function: snapshot.names.text(frame.function).to_owned(),
                file: snapshot.names.text(frame.file).to_owned(),
                line: frame.line,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use ghostgpu_trace::{BlockState, EventKind};

    use super::*;
    use crate::test_snapshot::{SEGMENT_BYTES, TestSnapshot};

    #[test]
    fn the_document_has_state_trace_peaks_holders_pools_and_segments() {
        let mut test = TestSnapshot::new();
        let stack = test.stack(&["linear@nn.py", "main@train.py"]);
        test.event(EventKind::SegmentAlloc, 0, SEGMENT_BYTES);
        test.event_at(0, EventKind::Alloc, 0, 700, stack);
        test.alloc(1024, 100).free(1024, 100).free(2048, 30);
        test.event(EventKind::Oom, 0, 9000);
        test.segment(&[
            (0, 700, BlockState::Allocated),
            (1024, 100, BlockState::Inactive),
        ]);
        let options = JsonOptions {
            max_holders: 1,
            ..JsonOptions::default()
        };
        let mut out = Vec::new();
        write_json(&test.snapshot, &options, &mut out).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap());
    }
}

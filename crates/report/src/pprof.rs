//! pprof: a heap profile of what is live at a moment of a snapshot.

use std::io::Write;

use ghostgpu_trace::{NameId, Snapshot};

use crate::error::ReportError;
use crate::holdings::{Held, Owner, Selection, holdings};
use crate::origin::frames_from_innermost;
use crate::profile::{PlainFrame, Profile, Values};
use crate::text;

/// Writes a profile of what is live at a moment, and of all allocations of the trace.
pub fn write_pprof(
    snapshot: &Snapshot,
    selection: Selection,
    out: impl Write,
) -> Result<(), ReportError> {
    let devices = holdings(snapshot, selection)?;
    let time_us = devices.iter().filter_map(|device| device.time_us).max();
    let comments: Vec<String> = snapshot.warnings.iter().map(ToString::to_string).collect();
    let mut profile = Profile::new(out, time_us, &comments)?;
    for device in &devices {
        for (owner, held) in &device.by_owner {
            sample(&mut profile, snapshot, device.device, owner, held)?;
        }
    }
    profile.finish()?;
    Ok(())
}

fn sample(
    profile: &mut Profile<impl Write>,
    snapshot: &Snapshot,
    device: usize,
    owner: &Owner,
    held: &Held,
) -> std::io::Result<()> {
    let frames = frames_from_innermost(snapshot, owner.origin).map(|frame| PlainFrame {
        function: frame.function(snapshot),
        file: frame.file(snapshot),
        line: frame.line(snapshot),
    });
    let values = Values {
        made_blocks: held.made_blocks,
        made_bytes: held.made_bytes,
        live_blocks: held.live_blocks,
        live_bytes: held.live_bytes,
    };
    let (device, stream) = (device.to_string(), owner.stream.to_string());
    let pool = owner.pool.map(text::pool).unwrap_or_default();
    let mut labels = vec![("device", device.as_str()), ("stream", &stream)];
    if owner.pool.is_some() {
        labels.push(("pool", &pool));
    }
    if owner.category != NameId::EMPTY {
        labels.push(("category", snapshot.names.text(owner.category)));
    }
    profile.sample(frames, values, &labels)
}

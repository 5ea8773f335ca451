//! Ranges that the user's `record_function` named.

use std::collections::HashMap;
use std::io::{self, Write};

use ghostgpu_trace::{AnnotationStage, NameId, Snapshot};

use super::clock::nanoseconds;
use super::lanes::{Lane, Lanes};
use super::packets::{Happening, Packets};

/// Writes the ranges of one device; an end belongs to the latest range of its name that is open.
pub(super) fn write_annotations(
    snapshot: &Snapshot,
    device: usize,
    lanes: &mut Lanes,
    packets: &mut Packets<'_, impl Write>,
) -> io::Result<()> {
    let mut open: HashMap<NameId, Vec<Lane>> = HashMap::new();
    for annotation in &snapshot.annotations {
        if annotation.device != device as i64 {
            continue;
        }
        let time_ns = nanoseconds(annotation.time_us);
        match annotation.stage {
            AnnotationStage::Start => {
                let lane = lanes.take(packets)?;
                packets.begin(&Happening {
                    track: lanes.track(lane),
                    time_ns,
                    name: snapshot.names.text(annotation.name),
                    arguments: &[],
                })?;
                open.entry(annotation.name).or_default().push(lane);
            }
            AnnotationStage::End => {
                if let Some(lane) = open.get_mut(&annotation.name).and_then(Vec::pop) {
                    packets.end(lanes.track(lane), time_ns)?;
                    lanes.give_back(lane);
                }
            }
            AnnotationStage::Other => {}
        }
    }
    Ok(())
}

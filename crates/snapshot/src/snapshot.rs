//! A snapshot, read.

use crate::events::Events;
use crate::names::{NameId, Names};
use crate::segments::Segment;
use crate::settings::AllocatorSettings;
use crate::stacks::Stacks;
use crate::warning::Warning;

/// Everything a snapshot file says.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub format: Format,
    /// Of all devices, those of one device in the order of their addresses.
    pub segments: Vec<Segment>,
    /// One per device of the process, by ordinal; idle ones are empty.
    pub traces: Vec<DeviceTrace>,
    pub settings: AllocatorSettings,
    /// Ranges that the user's `record_function` named, in the file's order.
    pub annotations: Vec<Annotation>,
    /// Pinned host memory, if it was recorded (torch 2.14 and newer).
    pub host_segments: Vec<Segment>,
    pub host_events: Events,
    pub stacks: Stacks,
    pub names: Names,
    /// What is missing, odd or new in the file.
    pub warnings: Vec<Warning>,
    /// Bytes of the pickle, uncompressed.
    pub pickle_bytes: u64,
}

/// Which of the forms that PyTorch has written over the years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// A dictionary with segments and traces: torch 2.0 and newer.
    Snapshot,
    /// The list of segments alone: `torch.cuda.memory_snapshot()`, and all there was before 2.0.
    SegmentsOnly,
}

/// What the allocator of one device did.
#[derive(Debug, Clone, Default)]
pub struct DeviceTrace {
    pub device: usize,
    pub events: Events,
}

/// Where a named range starts or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Annotation {
    pub name: NameId,
    pub stage: AnnotationStage,
    pub device: i64,
    pub time_us: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AnnotationStage {
    Start,
    End,
    Other,
}

impl Snapshot {
    /// Ordinals of the devices that have a segment or an event, in order.
    pub fn active_devices(&self) -> Vec<usize> {
        let mut devices: Vec<usize> = self
            .traces
            .iter()
            .filter(|trace| !trace.events.is_empty())
            .map(|trace| trace.device)
            .chain(
                self.segments
                    .iter()
                    .filter_map(|segment| usize::try_from(segment.device).ok()),
            )
            .collect();
        devices.sort_unstable();
        devices.dedup();
        devices
    }

    /// The segments of one device.
    pub fn segments_of(&self, device: usize) -> impl Iterator<Item = &Segment> {
        self.segments
            .iter()
            .filter(move |segment| segment.device == device as i64)
    }
}

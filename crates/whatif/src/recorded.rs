//! What the recording itself says about its figures.

use ghostgpu_allocator::Action;
use ghostgpu_allocator::replay::{ExactReplay, Recording};

/// Figures of the recorded run. What only an exact replay tells is unknown where that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// From the recorded calls of the driver.
    pub peak_reserved_bytes: u64,
    pub peak_allocated_bytes: Option<u64>,
    pub peak_active_bytes: Option<u64>,
    pub peak_requested_bytes: Option<u64>,
    pub retries: Option<u64>,
    /// Requests that failed.
    pub ooms: u64,
}

impl Recorded {
    pub fn of(recording: &Recording, repeated: &ExactReplay) -> Self {
        let mut figures = Self {
            peak_reserved_bytes: peak_reserved(recording),
            ooms: count(recording, Action::Oom),
            ..Self::default()
        };
        if repeated.difference.is_none() {
            let stats = &repeated.stats;
            let known = |value: i64| u64::try_from(value).ok();
            figures.peak_allocated_bytes = known(stats.allocated_bytes.all.peak);
            figures.peak_active_bytes = known(stats.active_bytes.all.peak);
            figures.peak_requested_bytes = known(stats.requested_bytes.all.peak);
            figures.retries = known(stats.num_alloc_retries);
        }
        figures
    }
}

fn count(recording: &Recording, wanted: Action) -> u64 {
    let actions = recording.operations.actions().iter();
    actions.filter(|&&action| action == wanted).count() as u64
}

/// Backwards from what is reserved at the end.
fn peak_reserved(recording: &Recording) -> u64 {
    let segments = recording.segments.iter();
    let mut reserved: u64 = segments.fold(0, |sum, segment| sum.saturating_add(segment.total_size));
    let mut peak = reserved;
    let operations = &recording.operations;
    let backwards = operations.actions().iter().zip(operations.bytes()).rev();
    for (action, &bytes) in backwards {
        match action {
            Action::SegmentAlloc | Action::SegmentMap => reserved = reserved.saturating_sub(bytes),
            Action::SegmentFree | Action::SegmentUnmap => reserved = reserved.saturating_add(bytes),
            _ => continue,
        }
        peak = peak.max(reserved);
    }
    peak
}

#[cfg(test)]
mod tests {
    use super::*;
    use ghostgpu_allocator::Address;
    use ghostgpu_allocator::replay::{Context, Operation, Operations};

    #[test]
    fn the_peak_is_found_from_the_end_backwards() {
        let operation = |(action, bytes)| Operation {
            action,
            address: Address(0),
            bytes,
            context: Context::default(),
        };
        // 5 were there before, and are returned first.
        let entries = [
            (Action::SegmentFree, 5),
            (Action::SegmentAlloc, 7),
            (Action::Oom, 1),
            (Action::SegmentMap, 2),
            (Action::SegmentUnmap, 2),
            (Action::SegmentFree, 7),
        ];
        let recording = Recording {
            operations: entries.map(operation).into_iter().collect::<Operations>(),
            segments: Vec::new(),
        };
        assert_eq!(peak_reserved(&recording), 9);
        assert_eq!(count(&recording, Action::Oom), 1);
    }
}

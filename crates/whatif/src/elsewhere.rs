//! What a recorded program comes to where the driver puts its segments elsewhere.

use ghostgpu_device::HostLayout;

use crate::history::{History, Question};

/// The least and the most that a program comes to over all layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeakRanges {
    pub allocated_bytes: [u64; 2],
    pub reserved_bytes: [u64; 2],
}

impl History {
    /// The peaks over all layouts of the host's memory, with as much memory as it takes; none if the layout
    /// changes nothing.
    pub fn peak_ranges(&self) -> Option<PeakRanges> {
        let mut ranges: Option<PeakRanges> = None;
        for layout in HostLayout::ALL {
            let answer = self.ask(&Question {
                layout,
                ..self.question()
            });
            if answer.failure.is_some() {
                return None;
            }
            let (allocated, reserved) =
                (answer.peak_allocated_bytes(), answer.peak_reserved_bytes());
            let seen = ranges.unwrap_or(PeakRanges {
                allocated_bytes: [allocated; 2],
                reserved_bytes: [reserved; 2],
            });
            ranges = Some(PeakRanges {
                allocated_bytes: with(seen.allocated_bytes, allocated),
                reserved_bytes: with(seen.reserved_bytes, reserved),
            });
        }
        ranges.filter(|ranges| {
            let varies = |[least, most]: [u64; 2]| least != most;
            varies(ranges.allocated_bytes) || varies(ranges.reserved_bytes)
        })
    }
}

fn with([least, most]: [u64; 2], bytes: u64) -> [u64; 2] {
    [least.min(bytes), most.max(bytes)]
}

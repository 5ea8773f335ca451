//! Moments, and how much there was at one.

use ghostgpu_recording::Source;

/// A point between two events: the state after this many of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub usize);

impl Moment {
    /// The event that led to it; none before the first.
    pub fn event(self) -> Option<usize> {
        self.0.checked_sub(1)
    }
}

/// How much there was at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    pub moment: Moment,
    /// What was asked for by what is live.
    pub requested_bytes: u64,
    /// Bytes of the live blocks; PyTorch's "allocated", and "active" while another stream may still use a block.
    pub allocated_bytes: u64,
    /// Bytes that the allocator has from the driver.
    pub reserved_bytes: u64,
}

impl Level {
    /// What peaks are compared by: the bytes of blocks, or what was asked for in a snapshot, which says of the blocks
    /// that are gone only how large they were at least.
    pub fn height(&self, source: Source) -> u64 {
        match source {
            Source::Rehearsal => self.allocated_bytes,
            Source::Snapshot => self.requested_bytes,
        }
    }
}

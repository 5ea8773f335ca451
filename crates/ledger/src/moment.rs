//! Moments, and how much memory was used at one.

use ghostgpu_recording::Source;

/// A point between two events: the state after this many of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub usize);

impl Moment {
    /// The event just before it; `None` before the first.
    pub fn event(self) -> Option<usize> {
        self.0.checked_sub(1)
    }
}

/// How much memory was used at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    pub moment: Moment,
    /// Requested bytes of live allocations.
    pub requested_bytes: u64,
    /// Bytes of the live blocks; PyTorch's "allocated", and "active" while another stream may still use a block.
    pub allocated_bytes: u64,
    /// Bytes that the allocator has from the driver.
    pub reserved_bytes: u64,
}

impl Level {
    /// What peaks are compared by: block bytes, or requested bytes in a snapshot, which does not say how large freed
    /// blocks were.
    pub fn height(&self, source: Source) -> u64 {
        match source {
            Source::Rehearsal => self.allocated_bytes,
            Source::Snapshot => self.requested_bytes,
        }
    }
}

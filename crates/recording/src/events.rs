//! What the allocator did, in its order.

use crate::allocation::AllocationId;

/// One thing that happened to a card's memory. Its place in the list is its moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An allocation began.
    Allocate(AllocationId),
    /// An allocation ended, and its memory can be handed out again.
    Free(AllocationId),
    /// The allocator got memory from the driver: a segment, or a piece of an expandable one.
    Reserve(SegmentChange),
    /// It gave memory back.
    Release(SegmentChange),
    /// A request failed.
    OutOfMemory { requested_bytes: u64 },
}

/// A range of memory that the allocator got or gave back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentChange {
    pub address: u64,
    pub bytes: u64,
}

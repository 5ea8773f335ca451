//! What the allocator did, in its order.

use crate::allocation::AllocationId;
use crate::names::StackId;

/// One thing that happened to a card's memory. Its place in the list is its moment.
///
/// Eight bytes, as there may be ten million: what is rare is kept in lists of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An allocation began.
    Allocate(AllocationId),
    /// The program gave an allocation back, and another stream may still use it.
    FreeRequested(AllocationId),
    /// An allocation ended, and its memory can be handed out again.
    Free(AllocationId),
    /// The allocator got memory from the driver: a segment, or a piece of an expandable one.
    Reserve(ChangeId),
    /// It gave memory back.
    Release(ChangeId),
    /// A request failed.
    OutOfMemory(FailureId),
    /// Something that moved no memory (a snapshot was taken, a block was annotated).
    Other,
}

/// A place in [`CardMemory::changes`](crate::CardMemory::changes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangeId(pub u32);

/// A place in [`CardMemory::failures`](crate::CardMemory::failures).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FailureId(pub u32);

/// A place in [`CardMemory::pools`](crate::CardMemory::pools); 0 is the default one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId(pub u32);

/// Whose requests memory serves: the allocator never hands out the memory of one pool to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pool {
    /// The raw handle of the stream; 0 is the default stream.
    pub stream: u64,
    /// PyTorch's number of the pool, `(0, 0)` for the default one; `None` where it was not recorded.
    pub number: Option<(u64, u64)>,
}

/// A range of memory that the allocator got or gave back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentChange {
    pub address: u64,
    pub bytes: u64,
    pub pool: PoolId,
    /// It holds requests of at most 1 MiB.
    pub is_small: bool,
    /// It is a piece of an expandable segment.
    pub is_expandable: bool,
}

/// A request that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    pub requested_bytes: u64,
    /// What the driver had left, where it was recorded.
    pub driver_free_bytes: Option<u64>,
    pub pool: PoolId,
    pub stack: StackId,
}

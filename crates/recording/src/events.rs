//! What the allocator did, in order.

use crate::allocation::AllocationId;
use crate::names::StackId;

/// One thing that happened to a card's memory. Its index in the list is its moment.
///
/// Events are eight bytes each, because there may be ten million of them; details of rare ones are in separate lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An allocation began.
    Allocate(AllocationId),
    /// The program freed an allocation that another stream may still use.
    FreeRequested(AllocationId),
    /// An allocation ended, and its memory can be reused.
    Free(AllocationId),
    /// The allocator reserved memory from the driver: a segment, or a piece of an expandable one.
    Reserve(ChangeId),
    /// It returned memory to the driver.
    Release(ChangeId),
    /// A request failed.
    OutOfMemory(FailureId),
    /// Something that moved no memory (a snapshot was taken, a block was annotated).
    Other,
}

/// An index in [`CardMemory::changes`](crate::CardMemory::changes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangeId(pub u32);

/// An index in [`CardMemory::failures`](crate::CardMemory::failures).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FailureId(pub u32);

/// An index in [`CardMemory::pools`](crate::CardMemory::pools); 0 is the default pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId(pub u32);

/// The stream and pool that memory belongs to. The allocator never uses the memory of one pool for another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pool {
    /// The raw handle of the stream; 0 is the default stream.
    pub stream: u64,
    /// PyTorch's number of the pool, `(0, 0)` for the default one; `None` if it was not recorded.
    pub number: Option<(u64, u64)>,
}

/// A range of memory that the allocator reserved or released.
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
    /// What the driver had left, if recorded.
    pub driver_free_bytes: Option<u64>,
    pub pool: PoolId,
    pub stack: StackId,
}

//! One live allocation.

use ghostgpu_trace::{NameId, StackId};

/// Where an allocation is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// The event that allocated it.
    Event(usize),
    /// It is older than the recording, and was still live at the end.
    OlderStillLive,
    /// It is older than the recording; this event freed it.
    OlderFreedBy(usize),
}

impl Origin {
    pub fn is_older(self) -> bool {
        !matches!(self, Self::Event(_))
    }
}

/// A block that is live at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    pub address: u64,
    /// What was asked for.
    pub bytes: u64,
    /// The block's size: the recorded one for blocks that are live at the end; otherwise what was asked
    /// for, rounded up as the allocator does. A large block may have carried up to 1 MiB more.
    pub block_bytes: u64,
    pub origin: Origin,
    pub stack: StackId,
    pub stream: u64,
    /// When it was allocated; 0 if that is not known.
    pub time_us: i64,
    /// What the file calls it: an annotation of the block, or the metadata of its thread.
    pub label: NameId,
}

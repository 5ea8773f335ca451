//! The state at the moment of the dump: segments, and the blocks that cover them.

use crate::stacks::StackId;

/// A private pool (graph capture, `MemPool`). The default pool is `(0, 0)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct PoolId(pub u64, pub u64);

impl PoolId {
    pub const DEFAULT: Self = Self(0, 0);
}

/// From which of a pool's halves a segment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SegmentKind {
    Small,
    Large,
}

/// Memory that the allocator has from the driver.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// The device's ordinal; -1 for pinned host memory.
    pub device: i64,
    pub address: u64,
    pub total_bytes: u64,
    pub allocated_bytes: u64,
    pub active_bytes: u64,
    /// From torch 2.0 on.
    pub requested_bytes: Option<u64>,
    pub stream: u64,
    pub kind: SegmentKind,
    /// From torch 2.1 on.
    pub pool: Option<PoolId>,
    /// From torch 2.1 on; without it, segments are not.
    pub is_expandable: bool,
    /// Where it was asked of the driver.
    pub stack: StackId,
    pub forward_stack: StackId,
    /// In the order of their addresses, covering the segment.
    pub blocks: Vec<Block>,
}

/// What a block is at the moment of the dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockState {
    /// Used by a tensor.
    Allocated,
    /// Freed, and another stream has not reached the free yet.
    PendingFree,
    /// Free for reuse.
    Inactive,
}

impl BlockState {
    /// Whether its bytes count as active.
    pub fn is_active(self) -> bool {
        self != Self::Inactive
    }
}

/// A piece of a segment.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    pub address: u64,
    pub bytes: u64,
    /// What was asked for; of an inactive block, what its last user asked for. From torch 2.0 on.
    pub requested_bytes: Option<u64>,
    pub state: BlockState,
    pub stack: StackId,
    pub forward_stack: StackId,
    /// Uses of this block, the latest first: torch 1.13 and 2.0 only.
    pub history: Vec<HistoryEntry>,
}

impl Block {
    /// What its user asked for, or the block's size where the file does not say.
    pub fn live_bytes(&self) -> u64 {
        self.requested_bytes.unwrap_or(self.bytes)
    }
}

/// One use of a block in torch 1.13 and 2.0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEntry {
    pub address: u64,
    pub requested_bytes: u64,
    pub stack: StackId,
}

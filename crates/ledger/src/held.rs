//! Sums over live allocations.

use ghostgpu_recording::Allocation;

use crate::by_category::ByCategory;

/// The sums over some allocations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Requested bytes, by category.
    pub requested: ByCategory,
    /// Bytes of the blocks that the allocator handed out.
    pub block_bytes: u64,
    pub count: u64,
}

impl Held {
    pub fn add(&mut self, allocation: &Allocation) {
        self.requested
            .add(allocation.category, allocation.requested_bytes);
        self.block_bytes = self.block_bytes.saturating_add(allocation.block_bytes);
        self.count += 1;
    }

    pub fn merge(&mut self, other: &Self) {
        for (category, bytes) in other.requested.iter() {
            self.requested.add(category, bytes);
        }
        self.block_bytes = self.block_bytes.saturating_add(other.block_bytes);
        self.count += other.count;
    }

    pub fn requested_bytes(&self) -> u64 {
        self.requested.total()
    }
}

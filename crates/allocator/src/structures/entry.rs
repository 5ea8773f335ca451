//! The entry of a block in ordered sets, and the order.

/// The order of blocks: size, then rank (0 where addresses decide), then address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) size: u64,
    pub(crate) address: u64,
    pub(crate) rank: u32,
    pub(crate) block: u32,
}

impl Entry {
    #[inline]
    pub(super) fn is_same_key(&self, other: &Self) -> bool {
        (self.size, self.rank, self.address) == (other.size, other.rank, other.address)
    }

    #[inline]
    pub(super) fn is_before(&self, other: &Self) -> bool {
        // Branch-free: the direction of a search cannot be predicted.
        let by_address = (self.rank == other.rank) & (self.address < other.address);
        let by_rank = (self.rank < other.rank) | by_address;
        (self.size < other.size) | ((self.size == other.size) & by_rank)
    }
}

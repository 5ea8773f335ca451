//! Ids: addresses, streams, pools, blocks. Each has its own type, so that a size is never mistaken for an
//! address.

use std::fmt;

/// An address in the card's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

impl Address {
    /// The address `bytes` further on.
    #[must_use]
    pub const fn plus(self, bytes: u64) -> Self {
        Self(self.0 + bytes)
    }

    /// The distance from `start`, which must not be after this address.
    #[must_use]
    pub const fn since(self, start: Self) -> u64 {
        self.0 - start.0
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:#x}", self.0)
    }
}

/// A raw stream handle, as PyTorch prints it. 0 is the default stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

impl StreamId {
    pub const DEFAULT: Self = Self(0);
}

/// The pair that names a private pool: `(n, 0)` for a graph capture, `(0, n)` for a `MemPool`;
/// `(0, 0)` is the default pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId(pub u64, pub u64);

impl PoolId {
    pub const DEFAULT: Self = Self(0, 0);

    #[must_use]
    pub const fn is_default(self) -> bool {
        self.0 == 0 && self.1 == 0
    }
}

impl fmt::Display for PoolId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "({}, {})", self.0, self.1)
    }
}

/// A host thread: what `use_mem_pool` binds a scope to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub u64);

/// A block in the allocator's arena. Valid from the allocation to the completion of its free; after
/// that the same number may name another block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub(crate) u32);

/// Which half of a pool: sizes up to 1 MiB are small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PoolKind {
    Small,
    Large,
}

impl PoolKind {
    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Small => 0,
            Self::Large => 1,
        }
    }
}

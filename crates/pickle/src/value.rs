//! Values: scalars by themselves, everything else as a handle into the heap.

use crate::dictionary::Dictionary;
use crate::strings::StringId;

/// A handle to a container, byte string or large integer in the [`Heap`](crate::Heap).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// The handle's number, for tables beside the heap.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One value. It is small and can be copied freely: what it refers to is in the heap that it came with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    None,
    Bool(bool),
    /// A signed integer of at most 64 bits. Larger ones are [`Node::BigInt`].
    Int(i64),
    Float(f64),
    String(StringId),
    Node(NodeId),
    /// What a [`Taker`](crate::Taker) took. A list that it was appended to does not show it.
    Taken,
    /// Several that a taker took, one after the other: C++ pushes a whole list before it appends it.
    TakenRow,
}

impl Value {
    /// Whether a taker took it.
    #[inline]
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::Taken | Self::TakenRow)
    }
}

/// What a [`NodeId`] refers to.
#[derive(Debug, Clone)]
pub enum Node {
    List(Vec<Value>),
    Tuple(Vec<Value>),
    Dict(Dictionary),
    /// A set: a dictionary whose values are all `None`.
    Set(Dictionary),
    FrozenSet(Dictionary),
    Bytes(Vec<u8>),
    ByteArray(Vec<u8>),
    /// An integer beyond 64 bits: little-endian two's complement, as short as possible.
    BigInt(Vec<u8>),
    /// A handle that is not in use.
    Free,
}

impl Node {
    /// What Python calls it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::List(_) => "list",
            Self::Tuple(_) => "tuple",
            Self::Dict(_) => "dict",
            Self::Set(_) => "set",
            Self::FrozenSet(_) => "frozenset",
            Self::Bytes(_) => "bytes",
            Self::ByteArray(_) => "bytearray",
            Self::BigInt(_) => "int",
            Self::Free => "object",
        }
    }
}

//! The containers: none of them allocates once it has reached its size.

pub(crate) mod address_map;
pub(crate) mod blocks;
pub(crate) mod entry;
pub(crate) mod hash_order;
mod node;
pub(crate) mod size_bins;
pub(crate) mod trees;

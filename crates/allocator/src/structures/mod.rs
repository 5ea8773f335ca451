//! The containers: none of them allocates once it has reached its size.

pub(crate) mod address_map;
pub(crate) mod blocks;
pub(crate) mod hash_order;
pub(crate) mod ordered_set;
pub(crate) mod size_bins;

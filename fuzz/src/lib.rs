//! What must hold for any bytes at all.

mod checks;

pub use checks::{check_pickle, check_snapshot};

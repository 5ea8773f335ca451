//! What must hold for any bytes at all.

mod checks;
mod recording;

pub use checks::{check_pickle, check_snapshot};
pub use recording::check_recording;

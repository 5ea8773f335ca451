//! Properties that hold for any bytes.

mod checks;
mod lint;
mod log;
mod recording;

pub use checks::{check_pickle, check_snapshot};
pub use lint::check_lint;
pub use log::check_log;
pub use recording::check_recording;

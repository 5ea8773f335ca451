//! Starts a program and makes sure that it, and everything it started, ends.
//!
//! The child stays in our process group, so it may read the terminal, and Ctrl-C reaches it as it would without us. The
//! processes it leaves behind become our children, because we are its subreaper, and are ended.

mod descendants;
mod kept;
mod signals;
mod supervise;

pub use kept::{keep, let_go};
pub use signals::hold_signals;
pub use supervise::{
    Cause, Ending, Supervised, capture, supervise, supervise_and_keep, supervise_other,
};

//! Starting a program and seeing to it that it, and everything it started, ends.
//!
//! The child keeps our process group: it may read the terminal, and Ctrl-C reaches it as it would
//! without us. What it leaves behind comes back to us, because we are its subreaper, and is ended.

mod descendants;
mod kept;
mod signals;
mod supervise;

pub use kept::{keep, let_go};
pub use signals::hold_signals;
pub use supervise::{
    Cause, Ending, Supervised, capture, supervise, supervise_and_keep, supervise_other,
};

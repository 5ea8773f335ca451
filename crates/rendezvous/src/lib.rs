//! How the ranks of a rehearsal meet.
//!
//! Every rank is a process of its own. Each writes what it calls to a log of its own in the run's folder, one
//! for each communicator, and reads those of its peers only when it has to wait: before communicators exist,
//! where the host waits for a stream, and where it reads a value that came from others. So a collective
//! is as asynchronous as on a real card, and a rank may be far ahead of its peers.
//!
//! Who waits compares what the peers called with its own calls, and finds out when a peer will never come:
//! it has ended, or waits itself, in a circle, or stands still. That is a [`Trouble`], told in a sentence,
//! where a real job would hang.
//!
//! Calls that everybody has made may still wait for each other on the cards. That needs all logs, and is looked for
//! when the job is over ([`find_circle`]).

mod call;
mod circles;
mod communicator;
mod log;
mod machine;
mod trouble;
mod waiting;

pub use call::{Call, Channel, Dependency, Function, element_bytes};
pub use circles::find_circle;
pub use communicator::{Communicator, Member, Ticket};
pub use machine::{Machine, ProcessId, Surroundings, this_process};
pub use trouble::Trouble;

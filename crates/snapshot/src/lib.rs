//! PyTorch's memory snapshots, as columns of events with interned stacks.
//!
//! A file that `torch.cuda.memory._dump_snapshot` or the C++ `_memory_snapshot_pickled` wrote goes in
//! (also as `.gz` or `.zst`); a [`Snapshot`] comes out. This is the only crate that knows the names of
//! a snapshot's keys. It refuses to know what is drawn from them.
//!
//! - [`Snapshot`] has the state at the moment of the dump ([`Segment`]s with their [`Block`]s), and for
//!   each device what the allocator did before it ([`Events`]), oldest first;
//! - a stack is a [`StackId`] into [`Stacks`], where each frame and each stack is kept once;
//! - what the file does not say is a [`Warning`], never a guess; what it is not, an [`OpenError`].
//!
//! ```no_run
//! let snapshot = ghostgpu_snapshot::open("oom.pickle".as_ref())?;
//! for trace in &snapshot.traces {
//!     for event in trace.events.iter() {
//!         println!("{:?} {:#x} {} {:?}", event.kind, event.address, event.bytes, event.stack);
//!     }
//! }
//! # Ok::<(), ghostgpu_snapshot::OpenError>(())
//! ```

#![forbid(unsafe_code)]

mod error;
mod events;
mod file;
mod names;
mod read;
mod segments;
mod settings;
mod snapshot;
mod stacks;
mod warning;
mod write;
mod zstd;

pub use error::{CheckpointKind, OpenError};
pub use events::{ContextId, Event, EventColumns, EventContext, EventKind, Events};
pub use file::{open, open_with};
pub use ghostgpu_pickle::Limits;
pub use names::{NameId, Names};
pub use read::{read_bytes, read_bytes_as_a_whole, read_from};
pub use segments::{Block, BlockState, HistoryEntry, PoolId, Segment, SegmentKind};
pub use settings::AllocatorSettings;
pub use snapshot::{Annotation, AnnotationStage, DeviceTrace, Format, Snapshot};
pub use stacks::{Frame, FrameId, FxNode, StackId, Stacks};
pub use warning::{Missing, Part, Warning};
pub use write::{StackLists, write_snapshot, write_snapshot_with};

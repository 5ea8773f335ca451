//! The outcome of an exact replay.

use std::fmt;

use super::operations::Operation;
use super::warning::Warning;
use crate::allocator::SegmentView;
use crate::stats::Stats;
use crate::trace::{Action, TraceEvent};

/// The result of an exact replay.
#[derive(Clone, Debug)]
pub struct ExactReplay {
    /// The first difference from the recording; the replay ends there.
    pub difference: Option<Difference>,
    /// Entries that were predicted as recorded.
    pub entries: usize,
    /// Driver calls that were predicted, with the position of the entry that records them.
    pub segment_events: Vec<(usize, TraceEvent)>,
    /// Figures at each `snapshot` entry.
    pub stats_at_snapshots: Vec<Stats>,
    pub stats: Stats,
    pub segments: Vec<SegmentView>,
    /// Entries at which releases turned out to be a flush that the program asked for: the allocator
    /// had no reason for them.
    pub flushes: Vec<usize>,
    pub warnings: Vec<Warning>,
}

/// The first difference. `None` on one side: nothing happened there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Position of the entry.
    pub index: usize,
    pub recorded: Option<Operation>,
    pub predicted: Option<TraceEvent>,
}

impl Difference {
    /// The recording asked the driver although the cache had something: it was for another pool.
    pub(super) fn is_growth_without_need(&self) -> bool {
        let grown =
            |entry: Operation| matches!(entry.action, Action::SegmentAlloc | Action::SegmentMap);
        self.recorded.is_some_and(grown)
            && self
                .predicted
                .is_some_and(|event| event.action == Action::Alloc)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "entry {}: ", self.index)?;
        match self.recorded {
            Some(Operation {
                action,
                address,
                bytes,
                ..
            }) => {
                write!(
                    out,
                    "recorded {} of {bytes} bytes at {address}",
                    action.name()
                )?;
            }
            None => write!(out, "recorded nothing")?,
        }
        match self.predicted {
            Some(TraceEvent {
                action,
                address,
                bytes,
                ..
            }) => {
                write!(
                    out,
                    ", predicted {} of {bytes} bytes at {address}",
                    action.name()
                )
            }
            None => write!(out, ", predicted nothing"),
        }
    }
}

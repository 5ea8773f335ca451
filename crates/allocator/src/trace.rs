//! What the allocator tells about itself: the entries of PyTorch's memory history.

use crate::ids::{Address, PoolId, StreamId};

/// The kinds of entries, with PyTorch's names for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Action {
    Alloc,
    FreeRequested,
    FreeCompleted,
    SegmentAlloc,
    SegmentFree,
    SegmentMap,
    SegmentUnmap,
    Oom,
    Snapshot,
}

impl Action {
    pub const ALL: [Self; 9] = [
        Self::Alloc,
        Self::FreeRequested,
        Self::FreeCompleted,
        Self::SegmentAlloc,
        Self::SegmentFree,
        Self::SegmentMap,
        Self::SegmentUnmap,
        Self::Oom,
        Self::Snapshot,
    ];

    /// The name in a snapshot's `device_traces`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alloc => "alloc",
            Self::FreeRequested => "free_requested",
            Self::FreeCompleted => "free_completed",
            Self::SegmentAlloc => "segment_alloc",
            Self::SegmentFree => "segment_free",
            Self::SegmentMap => "segment_map",
            Self::SegmentUnmap => "segment_unmap",
            Self::Oom => "oom",
            Self::Snapshot => "snapshot",
        }
    }

    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.name() == name)
    }

    /// Whether this concerns driver memory rather than a block.
    #[must_use]
    pub const fn is_segment(self) -> bool {
        matches!(
            self,
            Self::SegmentAlloc | Self::SegmentFree | Self::SegmentMap | Self::SegmentUnmap
        )
    }
}

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    pub action: Action,
    /// The block's, the segment's; for `oom`, as in PyTorch, the bytes that the driver has free.
    pub address: Address,
    /// For blocks the requested bytes, for segments their size, for `oom` the rounded size.
    pub bytes: u64,
    pub stream: StreamId,
    pub pool: PoolId,
}

/// Where entries go.
pub trait TraceSink {
    fn record(&mut self, event: TraceEvent);
}

/// Discards all entries; the compiler removes them.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTrace;

impl TraceSink for NoTrace {
    #[inline(always)]
    fn record(&mut self, _event: TraceEvent) {}
}

impl TraceSink for Vec<TraceEvent> {
    fn record(&mut self, event: TraceEvent) {
        self.push(event);
    }
}

impl<S: TraceSink> TraceSink for &mut S {
    fn record(&mut self, event: TraceEvent) {
        (**self).record(event);
    }
}

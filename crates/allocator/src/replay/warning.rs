//! What a recording does not say, and what was assumed in its place.

use std::fmt;

use crate::release::Release;

/// One assumption. Its text says what it was and what it may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warning {
    /// Memory was in use before the first entry.
    StartsLate { segments: usize, live_blocks: usize },
    /// The extent of blocks that were freed later is not recorded: the size a request rounds to was
    /// taken, with what lies behind it counted as free.
    BlockSizesAssumed { blocks: usize },
    /// Segments from before the recording: they are taken to be as old as their addresses are low.
    SegmentOrderAssumed { segments: usize },
    /// 2.12 orders equal blocks by the order of their making, which began before the recording.
    BlockOrderUnknown,
    /// Garbage collection depends on searches before the recording.
    AgesUnknown,
    /// Garbage collection is on, but nothing says what the memory limit was.
    LimitUnknown,
    /// The pool of segments that were released again is not recorded; the default pool was taken.
    PoolsUnknown { segments: usize },
    /// The driver was asked although the cache had a block: requests went to private pools that the
    /// recording does not name.
    PrivatePoolsLikely,
    /// Segments were released and others allocated at once: taken for a flush that the program asked
    /// for, since the same amount had been available before.
    FlushAssumed { flushes: usize },
    /// The same, taken for the allocator's own retry, since no more than that was ever reserved.
    RetryAssumed { retries: usize },
    /// Entries that contradict the segments at the end, or each other.
    Contradictions { entries: usize, first: usize },
    /// Blocks are live, but no allocation was ever recorded: kinds of entries were left out.
    EntriesLeftOut,
    /// Nobody has compared the replica with this release.
    ReleaseUnchecked(Release),
    /// Requests that failed in the recording succeed here; how long they would have been kept is not
    /// known, so they are given back at once.
    LifetimesUnknown { requests: usize },
    /// What was live before the recording is allocated first, in the order of addresses.
    StartOrderAssumed { blocks: usize },
    /// When other streams let go of a block was measured once, and is not the same in every run.
    CompletionTimesFixed { frees: usize },
}

impl fmt::Display for Warning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::StartsLate {
                segments,
                live_blocks,
            } => write!(
                out,
                "the recording starts late: {segments} segments and {live_blocks} blocks are older \
                 than its first entry; peaks and sums before it are unknown"
            ),
            Self::BlockSizesAssumed { blocks } => write!(
                out,
                "the extent of {blocks} blocks from before the recording was taken to be what their \
                 request rounds to"
            ),
            Self::SegmentOrderAssumed { segments } => write!(
                out,
                "{segments} segments are older than the recording and were taken to be as old as \
                 their addresses are low"
            ),
            Self::BlockOrderUnknown => write!(
                out,
                "this release prefers the block object that was made first, and that began before \
                 the recording"
            ),
            Self::AgesUnknown => write!(
                out,
                "garbage collection depends on what was searched for before the recording"
            ),
            Self::LimitUnknown => write!(
                out,
                "garbage collection is on, but works only under a memory limit, which a snapshot \
                 does not record"
            ),
            Self::PoolsUnknown { segments } => write!(
                out,
                "which pool {segments} released segments belonged to is not recorded; the default \
                 pool was taken"
            ),
            Self::PrivatePoolsLikely => write!(
                out,
                "the program seems to have used private pools (torch.cuda.MemPool), which this \
                 release does not record"
            ),
            Self::FlushAssumed { flushes } => write!(
                out,
                "{flushes} times segments were released just before others were allocated; taken \
                 for torch.cuda.empty_cache(), since as much had been reserved before"
            ),
            Self::RetryAssumed { retries } => write!(
                out,
                "{retries} times segments were released just before others were allocated; taken \
                 for the allocator's retry after a failure, since more was never reserved"
            ),
            Self::Contradictions { entries, first } => write!(
                out,
                "{entries} entries contradict what the recording says elsewhere, the first at \
                 position {first}"
            ),
            Self::EntriesLeftOut => write!(
                out,
                "blocks are live, but no allocation is recorded: kinds of entries were left out"
            ),
            Self::ReleaseUnchecked(release) => write!(
                out,
                "PyTorch {release} was never compared with this replica; it is taken to behave like \
                 {}",
                if release < Release::OLDEST {
                    Release::OLDEST
                } else {
                    Release::NEWEST_CHECKED
                }
            ),
            Self::LifetimesUnknown { requests } => write!(
                out,
                "{requests} requests that failed in the recording succeed here; how long they would \
                 have been kept is unknown, so they were given back at once"
            ),
            Self::StartOrderAssumed { blocks } => write!(
                out,
                "{blocks} blocks were live before the recording; they are allocated first, in the \
                 order of their addresses"
            ),
            Self::CompletionTimesFixed { frees } => write!(
                out,
                "{frees} frees waited for other streams; they wait as long here as they did when \
                 recorded"
            ),
        }
    }
}

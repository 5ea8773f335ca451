//! What a recording does not tell, and what is assumed instead.

use std::fmt;

use crate::release::Release;

/// One assumption. Its text says what is assumed and what it affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warning {
    /// Memory was in use before the first entry.
    StartsLate { segments: usize, live_blocks: usize },
    /// The extent of blocks that were freed later is not recorded: the size a request rounds to was
    /// assumed, and the rest counts as free.
    BlockSizesAssumed { blocks: usize },
    /// Segments older than the recording are assumed to have been allocated in address order.
    SegmentOrderAssumed { segments: usize },
    /// 2.12 orders equal blocks by the order of their making, which began before the recording.
    BlockOrderUnknown,
    /// Garbage collection depends on searches before the recording.
    AgesUnknown,
    /// Garbage collection is on, but the memory limit is unknown.
    LimitUnknown,
    /// The pool of released segments is not recorded; the default pool is assumed.
    PoolsUnknown { segments: usize },
    /// The driver was asked although the cache had a block: requests went to private pools that the
    /// recording does not name.
    PrivatePoolsLikely,
    /// Segments were released and others allocated right after: assumed to be a flush that the program
    /// requested, because the same amount had been available before.
    FlushAssumed { flushes: usize },
    /// The same, assumed to be the allocator's own retry, because no more than that was ever reserved.
    RetryAssumed { retries: usize },
    /// Entries that contradict the segments at the end, or each other.
    Contradictions { entries: usize, first: usize },
    /// Blocks are live, but no allocation was ever recorded: kinds of entries were left out.
    EntriesLeftOut,
    /// The replica has not been compared with this release.
    ReleaseUnchecked(Release),
    /// Requests that failed in the recording succeed here; their lifetime is unknown, so they are freed
    /// immediately.
    LifetimesUnknown { requests: usize },
    /// What was live before the recording is allocated first, in the order of addresses.
    StartOrderAssumed { blocks: usize },
    /// When other streams stop using a block was recorded once and varies between runs.
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
                "{blocks} blocks are older than the recording; their sizes are assumed to be their rounded \
                 requests"
            ),
            Self::SegmentOrderAssumed { segments } => write!(
                out,
                "{segments} segments are older than the recording; they are assumed to have been \
                 allocated in address order"
            ),
            Self::BlockOrderUnknown => write!(
                out,
                "this release prefers the block object that was created first, which may predate the \
                 recording"
            ),
            Self::AgesUnknown => write!(
                out,
                "garbage collection depends on searches before the recording"
            ),
            Self::LimitUnknown => write!(
                out,
                "garbage collection is on, but takes effect only under a memory limit, which a \
                 snapshot does not record"
            ),
            Self::PoolsUnknown { segments } => write!(
                out,
                "the pool of {segments} released segments is not recorded; the default pool is \
                 assumed"
            ),
            Self::PrivatePoolsLikely => write!(
                out,
                "the program seems to have used private pools (torch.cuda.MemPool), which this \
                 release does not record"
            ),
            Self::FlushAssumed { flushes } => write!(
                out,
                "{flushes} times segments were released just before others were allocated; assumed to \
                 be torch.cuda.empty_cache(), since as much had been reserved before"
            ),
            Self::RetryAssumed { retries } => write!(
                out,
                "{retries} times segments were released just before others were allocated; assumed to \
                 be the allocator's retry after a failure, since more was never reserved"
            ),
            Self::Contradictions { entries, first } => write!(
                out,
                "{entries} entries contradict what the recording says elsewhere, the first at \
                 position {first}"
            ),
            Self::EntriesLeftOut => write!(
                out,
                "blocks are live, but no allocation is recorded: some kinds of entries were not recorded"
            ),
            Self::ReleaseUnchecked(release) => write!(
                out,
                "PyTorch {release} was never compared with this replica; it is assumed to behave like \
                 {}",
                if release < Release::OLDEST {
                    Release::OLDEST
                } else {
                    Release::NEWEST_CHECKED
                }
            ),
            Self::LifetimesUnknown { requests } => write!(
                out,
                "{requests} requests that failed in the recording succeed here; their lifetime is \
                 unknown, so they are freed immediately"
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

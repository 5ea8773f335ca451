//! Which pool an entry belongs to. Before 2.12 entries do not say; the segments at the end do.

use super::operations::{Operations, Recording};
use super::ranges::{Range, Ranges};
use super::start::Start;
use crate::allocator::Allocator;
use crate::driver::Driver;
use crate::ids::PoolId;
use crate::pools::PoolOptions;
use crate::trace::{Action, TraceSink};

/// The current ranges with their pools; kept only if there are private pools.
#[derive(Clone)]
pub(super) struct PrivatePools {
    ranges: Option<Ranges>,
}

impl PrivatePools {
    pub(super) fn new(start: &Start, recording: &Recording) -> Self {
        let is_private = |pool: Option<PoolId>| pool.is_some_and(|pool| !pool.is_default());
        let there_are = !start.private_growth.is_empty()
            || start.ranges.iter().any(|range| is_private(range.pool))
            || recording
                .segments
                .iter()
                .any(|segment| !segment.pool.is_default());
        Self {
            ranges: there_are.then(|| start.ranges.clone()),
        }
    }

    fn at(&self, address: u64) -> Option<PoolId> {
        let pool = self.ranges.as_ref()?.containing(address)?.pool?;
        (!pool.is_default()).then_some(pool)
    }

    /// The private pool of a request, if it was for one.
    #[inline]
    pub(super) fn of_request(
        &self,
        operations: &Operations,
        first: usize,
        last: usize,
        start: &Start,
    ) -> Option<PoolId> {
        self.ranges.as_ref()?;
        self.find_of_request(operations, first, last, start)
    }

    fn find_of_request(
        &self,
        operations: &Operations,
        first: usize,
        last: usize,
        start: &Start,
    ) -> Option<PoolId> {
        let entry = operations.at(last);
        if let Some(pool) = entry.context.pool {
            return (!pool.is_default()).then_some(pool);
        }
        let grown = (first..last).find_map(|index| start.private_growth.get(&index).copied());
        let by_address = || (entry.action == Action::Alloc).then(|| self.at(entry.address.0))?;
        grown.or_else(by_address)
    }

    /// Makes sure that a pool exists and is in use.
    pub(super) fn open<D: Driver, S: TraceSink>(
        &self,
        allocator: &mut Allocator<D, S>,
        pool: PoolId,
    ) {
        if !allocator.is_pool_in_use(pool) {
            allocator.create_pool(pool, PoolOptions::default());
        }
    }

    /// The private pools whose memory these entries release. In the recording they were no longer in use, or
    /// they would not have been released.
    pub(super) fn released(
        &self,
        operations: &Operations,
        first: usize,
        end: usize,
    ) -> (Vec<PoolId>, bool) {
        let mut pools = Vec::new();
        let mut of_default = false;
        for index in first..end {
            let entry = operations.at(index);
            if matches!(entry.action, Action::SegmentFree | Action::SegmentUnmap) {
                match self.at(entry.address.0) {
                    Some(pool) if !pools.contains(&pool) => pools.push(pool),
                    Some(_) => {}
                    None => of_default = true,
                }
            }
        }
        (pools, of_default)
    }

    pub(super) fn prepare_releases<D: Driver, S: TraceSink>(
        &self,
        allocator: &mut Allocator<D, S>,
        operations: &Operations,
        first: usize,
        end: usize,
    ) {
        if self.ranges.is_some() {
            for pool in self.released(operations, first, end).0 {
                while allocator.release_pool(pool).is_ok() {}
            }
        }
    }

    /// Flushes everything, or only the pools that the recording released.
    pub(super) fn flush<D: Driver, S: TraceSink>(
        &self,
        allocator: &mut Allocator<D, S>,
        operations: &Operations,
        first: usize,
        end: usize,
    ) {
        self.prepare_releases(allocator, operations, first, end);
        let (pools, of_default) = match self.ranges {
            Some(_) => self.released(operations, first, end),
            None => (Vec::new(), true),
        };
        if of_default || pools.is_empty() {
            // No scope is ever open in a replay.
            let _ = allocator.empty_cache();
        } else {
            for pool in pools {
                allocator.empty_pool_cache(pool);
            }
        }
    }

    /// Keeps the ranges up to date.
    pub(super) fn follow(
        &mut self,
        operations: &Operations,
        first: usize,
        end: usize,
        start: &Start,
    ) {
        let Some(ranges) = &mut self.ranges else {
            return;
        };
        for index in first..end {
            let entry = operations.at(index);
            let (from, to) = (entry.address.0, entry.address.0.saturating_add(entry.bytes));
            match entry.action {
                Action::SegmentAlloc | Action::SegmentMap => {
                    // What overlaps is a contradiction, which undoing has counted.
                    ranges.insert(Range {
                        start: from,
                        end: to,
                        stream: entry.context.stream,
                        pool: entry
                            .context
                            .pool
                            .or(start.private_growth.get(&index).copied()),
                        kind: None,
                        is_expandable: entry.action == Action::SegmentMap,
                    });
                }
                Action::SegmentFree | Action::SegmentUnmap => {
                    ranges.remove(from, to);
                }
                _ => {}
            }
        }
    }
}

//! Follows a trace event by event: what lives, what waits for its free, and the sums.

use std::collections::{HashMap, HashSet};

use ghostgpu_ledger::{Ledger, Origin};
use ghostgpu_trace::{BlockState, Event, EventKind, Events, Snapshot};

/// Sums at one point of a trace. The first two are of requested bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Totals {
    /// From `alloc` to `free_requested`.
    pub(super) allocated_bytes: i64,
    /// From `alloc` to `free_completed`.
    pub(super) active_bytes: i64,
    /// All segments.
    pub(super) reserved_bytes: i64,
}

/// What lives at one point of a trace, each with something of the caller's.
#[derive(Debug)]
pub(super) struct Follower<T> {
    pub(super) totals: Totals,
    live: HashMap<u64, Live<T>>,
}

#[derive(Debug)]
struct Live<T> {
    bytes: i64,
    /// Its free was requested, and another stream has not reached it yet.
    is_pending: bool,
    own: T,
}

impl<T> Follower<T> {
    pub(super) fn new(reserved_bytes: u64) -> Self {
        Self {
            totals: Totals {
                reserved_bytes: signed(reserved_bytes),
                ..Totals::default()
            },
            live: HashMap::new(),
        }
    }

    /// Adds an allocation. What lived at its address was freed by an event that is lost, and is given
    /// back.
    pub(super) fn add(&mut self, address: u64, bytes: u64, own: T, is_pending: bool) -> Option<T> {
        let replaced = self.remove(address);
        let bytes = signed(bytes);
        self.add_active(bytes);
        if !is_pending {
            self.add_allocated(bytes);
        }
        self.live.insert(
            address,
            Live {
                bytes,
                is_pending,
                own,
            },
        );
        replaced
    }

    /// Ends an allocation.
    pub(super) fn remove(&mut self, address: u64) -> Option<T> {
        let ended = self.live.remove(&address)?;
        self.add_active(-ended.bytes);
        if !ended.is_pending {
            self.add_allocated(-ended.bytes);
        }
        Some(ended.own)
    }

    /// Its free was requested.
    pub(super) fn request_free(&mut self, address: u64) -> Option<&mut T> {
        let live = self.live.get_mut(&address)?;
        let bytes = live.bytes;
        if !std::mem::replace(&mut live.is_pending, true) {
            self.add_allocated(-bytes);
        }
        self.live.get_mut(&address).map(|live| &mut live.own)
    }

    /// A segment that came or went, or a part of one.
    pub(super) fn reserve(&mut self, event: Event) {
        let bytes = match event.kind {
            EventKind::SegmentAlloc | EventKind::SegmentMap => signed(event.bytes),
            EventKind::SegmentFree | EventKind::SegmentUnmap => -signed(event.bytes),
            _ => 0,
        };
        self.totals.reserved_bytes = self.totals.reserved_bytes.saturating_add(bytes);
    }

    fn add_active(&mut self, bytes: i64) {
        self.totals.active_bytes = self.totals.active_bytes.saturating_add(bytes);
    }

    fn add_allocated(&mut self, bytes: i64) {
        self.totals.allocated_bytes = self.totals.allocated_bytes.saturating_add(bytes);
    }
}

/// The sizes are a file's: whatever they are, sums neither overflow nor change their sign.
fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Addresses of what was waiting for its free when the trace began.
pub(super) fn pending_at_the_beginning(
    snapshot: &Snapshot,
    ledger: &Ledger,
    events: Option<&Events>,
) -> HashSet<u64> {
    let older = ledger.older().iter();
    let mut undecided: HashSet<u64> = older.map(|block| block.address).collect();
    let mut pending = HashSet::new();
    for event in events.into_iter().flat_map(Events::iter) {
        if undecided.is_empty() {
            break;
        }
        match event.kind {
            EventKind::FreeRequested => {
                undecided.remove(&event.address);
            }
            EventKind::FreeCompleted if undecided.remove(&event.address) => {
                pending.insert(event.address);
            }
            _ => {}
        }
    }
    let still_live = ledger.older().iter();
    let still_live: HashSet<u64> = still_live
        .filter(|block| block.origin == Origin::OlderStillLive)
        .map(|block| block.address)
        .collect();
    let waiting = snapshot
        .segments_of(ledger.device())
        .flat_map(|segment| &segment.blocks)
        .filter(|block| block.state == BlockState::PendingFree)
        .map(|block| block.address);
    pending.extend(waiting.filter(|at| undecided.contains(at) && still_live.contains(at)));
    pending
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_snapshot::TestSnapshot;

    fn totals(allocated_bytes: i64, active_bytes: i64) -> Totals {
        Totals {
            allocated_bytes,
            active_bytes,
            reserved_bytes: 0,
        }
    }

    #[test]
    fn a_block_is_active_and_not_allocated_while_its_free_waits() {
        let mut follower = Follower::new(0);
        follower.add(0, 100, 'a', false);
        follower.add(512, 60, 'b', true);
        assert_eq!(follower.totals, totals(100, 160));
        assert_eq!(follower.request_free(0), Some(&mut 'a'));
        follower.request_free(512);
        follower.request_free(512);
        assert_eq!(follower.totals, totals(0, 160));
        assert_eq!(follower.remove(0), Some('a'));
        assert_eq!(follower.remove(0), None);
        assert_eq!(follower.totals, totals(0, 60));
    }

    #[test]
    fn an_address_that_is_allocated_again_was_freed_by_an_event_that_is_lost() {
        let mut follower = Follower::new(0);
        follower.add(0, 100, 'a', false);
        assert_eq!(follower.add(0, 30, 'b', false), Some('a'));
        assert_eq!(follower.totals, totals(30, 30));
    }

    #[test]
    fn what_completes_without_a_request_was_waiting_from_the_beginning() {
        let mut test = TestSnapshot::new();
        test.event(EventKind::FreeCompleted, 0, 100).free(512, 100);
        test.event(EventKind::FreeRequested, 1024, 100);
        test.segment(&[
            (1024, 100, BlockState::PendingFree),
            (1536, 100, BlockState::PendingFree),
            (2048, 100, BlockState::Allocated),
        ]);
        let ledger = Ledger::new(&test.snapshot, 0);
        let events = crate::holdings::events_of(&test.snapshot, 0);
        let pending = pending_at_the_beginning(&test.snapshot, &ledger, events);
        assert_eq!(pending, HashSet::from([0, 1536]));
    }
}

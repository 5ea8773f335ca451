//! Exact replay: the recorded operations under the recorded settings must lead to every recorded
//! address, segment and entry.

mod adopt;

use super::checker::Checker;
use super::environment::Environment;
use super::groups::{Group, Groups, Plain};
use super::operations::Recording;
use super::outcome::{Difference, ExactReplay};
use super::private_pools::PrivatePools;
use super::scripted_driver::ScriptedDriver;
use super::start::Start;
use super::warning::Warning;
use crate::allocator::{Allocation, Allocator, Request, Room};
use crate::ids::{Address, BlockId, PoolId, StreamId};
use crate::stats::Stats;
use crate::trace::{Action, TraceEvent};

type Replica<'a> = Allocator<ScriptedDriver, Checker<'a>>;

/// No block has this number.
const NO_BLOCK: BlockId = Allocation::NULL.block;

/// A stream that no program has, for uses on streams that the recording does not name.
pub(super) const OTHER_STREAM: StreamId = StreamId(u64::MAX);

/// Replays a recording as it was.
#[must_use]
pub fn exact(recording: &Recording, environment: &Environment) -> ExactReplay {
    let mut run = ExactRun::new(recording, environment);
    run.run();
    run.finish()
}

/// An exact replay in three parts: [`new`](Self::new) learns from the recording how much memory is
/// needed, and allocates it; [`run`](Self::run) replays the entries without touching the heap, except for
/// requests that can be read in several ways (with releases before them), private pools, and figures at
/// `snapshot` entries; [`finish`](Self::finish) evaluates the result.
pub struct ExactRun<'a> {
    recording: &'a Recording,
    environment: &'a Environment,
    start: Start,
    allocator: Replica<'a>,
    /// The block of each lifetime ([`Start::slots`]).
    live: Vec<BlockId>,
    pools: PrivatePools,
    segment_events: Vec<(usize, TraceEvent)>,
    stats_at_snapshots: Vec<Stats>,
    entries: usize,
    difference: Option<Difference>,
    flushes: Vec<usize>,
    warnings: Vec<Warning>,
}

/// What has to be restored if a group turns out to have been something else.
struct State<'a> {
    allocator: Replica<'a>,
    pools: PrivatePools,
    live: Vec<BlockId>,
    entries: usize,
    segment_events: usize,
}

impl<'a> ExactRun<'a> {
    #[must_use]
    pub fn new(recording: &'a Recording, environment: &'a Environment) -> Self {
        let start = Start::of(recording);
        let operations = &recording.operations;
        let count = |is_it: &dyn Fn(Action) -> bool| {
            let actions = operations.actions().iter();
            actions.filter(|&&action| is_it(action)).count()
        };
        let segment_events = count(&Action::is_segment);
        let mappings = operations
            .iter()
            .filter(|entry| entry.action == Action::SegmentMap && entry.is_possible());
        let mappings = mappings.map(|entry| entry.address.0).collect();
        let driver = ScriptedDriver::new(environment.total_or_large(), mappings);
        let checker = Checker::new(operations, segment_events);
        let settings = environment.settings.clone();
        let allocator = Allocator::with_trace(environment.release, settings, driver, checker);
        let mut warnings = start.warnings.clone();
        warnings.extend(environment.doubts(&start));
        let mut run = Self {
            recording,
            environment,
            allocator: allocator.without_addresses(),
            live: vec![NO_BLOCK; start.slot_count],
            pools: PrivatePools::new(&start, recording),
            segment_events: Vec::with_capacity(segment_events),
            stats_at_snapshots: Vec::with_capacity(count(&|action| action == Action::Snapshot)),
            entries: 0,
            difference: None,
            flushes: Vec::new(),
            warnings,
            start,
        };
        run.allocator.reserve(Room {
            live: run.start.slot_count,
            segments: run.start.segment_count,
            places: operations.contexts().len(),
        });
        run.allocator.set_limit(environment.limit_bytes);
        run.adopt();
        run
    }

    /// Replays the entries up to the first difference.
    pub fn run(&mut self) {
        let premises = self.environment.premises();
        let mut groups = Groups::new(&self.recording.operations, &self.start, premises);
        loop {
            // One branch for most entries: the processor cannot predict it.
            match groups.next_plain() {
                Some(Plain::Alloc { at }) if self.start.is_possible(at, at + 1) => {
                    self.plain_alloc(at)
                }
                Some(Plain::Free { at }) if self.start.is_possible(at, at + 2) => {
                    self.plain_free(at)
                }
                Some(Plain::Alloc { at }) => self.repeat(Group::Request {
                    first: at,
                    last: at,
                }),
                Some(Plain::Free { at }) => self.repeat(Group::Free {
                    at,
                    completes: true,
                }),
                None => match groups.next() {
                    Some(group) => self.repeat(group),
                    None => break,
                },
            }
            if self.difference.is_some() {
                break;
            }
        }
        self.warnings.extend(groups.warnings());
    }

    #[must_use]
    pub fn finish(mut self) -> ExactReplay {
        if self
            .difference
            .is_some_and(|difference| difference.is_growth_without_need())
        {
            self.warnings.push(Warning::PrivatePoolsLikely);
        }
        ExactReplay {
            difference: self.difference,
            entries: self.entries,
            segment_events: self.segment_events,
            stats_at_snapshots: self.stats_at_snapshots,
            stats: self.allocator.stats().clone(),
            segments: self.allocator.segments(),
            flushes: self.flushes,
            warnings: self.warnings,
        }
    }

    /// A request that got something from the cache.
    #[inline]
    fn plain_alloc(&mut self, at: usize) {
        self.allocator.sink_mut().expect(at, at + 1);
        self.request(at, at);
        self.compare(at);
    }

    /// A free of a block that no other stream used.
    #[inline]
    fn plain_free(&mut self, at: usize) {
        self.allocator.sink_mut().expect(at, at + 2);
        if let Some(block) = self.block_of(at) {
            let _ = self.allocator.free_block(block);
        }
        self.compare(at);
    }

    /// Takes the result of comparing the group that began at an entry.
    #[inline]
    fn compare(&mut self, first: usize) {
        let checker = self.allocator.sink_mut();
        self.entries += checker.agreed_since(first);
        if !checker.is_content() {
            self.difference = checker.finish();
        }
    }

    /// Repeats a group. A request that begins with completions or releases has three readings, and the
    /// one that fits is what happened: all of it belongs to the request; the completions came before its
    /// search; or the program flushed the cache before it.
    fn repeat(&mut self, group: Group) {
        let actions = self.recording.operations.actions();
        let Group::Request { first, last } = group else {
            return self.repeat_once(group);
        };
        let is_plain = |action: &Action| {
            let grows = matches!(action, Action::SegmentAlloc | Action::SegmentMap);
            grows || !(action.is_segment() || *action == Action::FreeCompleted)
        };
        if is_plain(&actions[first]) {
            return self.repeat_once(group);
        }
        let completes = |action: &Action| *action == Action::FreeCompleted;
        let of_run = |run: &dyn Fn(&Action) -> bool| {
            first
                + actions[first..last]
                    .iter()
                    .take_while(|&action| run(action))
                    .count()
        };
        let completed = of_run(&completes);
        let released = of_run(&|action| !is_plain(action));
        let before = self.state();
        self.repeat_once(group);
        if let Some(difference) = self.difference {
            let mut completions: Vec<Group> = (first..completed)
                .map(|at| Group::Complete { at })
                .collect();
            completions.push(Group::Request {
                first: completed,
                last,
            });
            let flush = Group::Flush {
                first,
                end: released,
            };
            let flushed = vec![
                flush,
                Group::Request {
                    first: released,
                    last,
                },
            ];
            for (reading, is_flush) in [(completions, false), (flushed, true)] {
                self.go_back(&before);
                for group in reading {
                    if self.difference.is_none() {
                        self.repeat_once(group);
                    }
                }
                if self.difference.is_none() {
                    self.flushes.extend(is_flush.then_some(first));
                    return;
                }
            }
            self.difference = Some(difference);
        }
    }

    #[cold]
    fn state(&self) -> State<'a> {
        State {
            allocator: self.allocator.clone(),
            pools: self.pools.clone(),
            live: self.live.clone(),
            entries: self.entries,
            segment_events: self.segment_events.len(),
        }
    }

    #[cold]
    fn go_back(&mut self, state: &State<'a>) {
        self.allocator = state.allocator.clone();
        self.pools = state.pools.clone();
        self.live.clone_from(&state.live);
        self.entries = state.entries;
        self.segment_events.truncate(state.segment_events);
        self.difference = None;
    }

    fn repeat_once(&mut self, group: Group) {
        let (first, end) = group.span();
        let operations = &self.recording.operations;
        if !self.start.is_possible(first, end) {
            let index = self.start.first_impossible;
            self.difference = Some(Difference {
                index,
                recorded: Some(operations.at(index)),
                predicted: None,
            });
            return;
        }
        self.allocator.sink_mut().expect(first, end);
        match group {
            Group::Request { first, last } => self.request(first, last),
            Group::Free { at, completes } => {
                // An unknown address produces no entry, which the comparison detects.
                if let Some(block) = self.block_of(at) {
                    if !completes {
                        // Other streams use it; which is not recorded.
                        let _ = self.allocator.record_stream_of(block, OTHER_STREAM);
                    }
                    let _ = self.allocator.free_block(block);
                }
            }
            Group::Complete { at } => {
                if let Some(block) = self.block_of(at) {
                    self.allocator.complete_block(block);
                }
            }
            Group::Flush { first, end } => {
                self.write_script(first, end, 0);
                self.pools
                    .flush(&mut self.allocator, operations, first, end);
            }
            Group::Snapshot { .. } => {
                self.allocator.record_snapshot();
                self.stats_at_snapshots.push(self.allocator.stats().clone());
            }
            Group::Stray { .. } => {}
        }
        self.pools.follow(operations, first, end, &self.start);
        self.compare(first);
        let segment_events = self.allocator.sink().segment_events();
        self.segment_events.extend_from_slice(segment_events);
    }

    /// The block that an entry names, if it is in use.
    #[inline]
    fn block_of(&self, index: usize) -> Option<BlockId> {
        let slot = self.start.slots[index] as usize;
        let block = *self.live.get(slot)?;
        let address = Address(self.recording.operations.addresses()[index]);
        self.allocator.is_in_use_at(block, address).then_some(block)
    }

    #[inline]
    fn request(&mut self, first: usize, last: usize) {
        let operations = &self.recording.operations;
        let entry = operations.at(last);
        let pool = self.pools.of_request(operations, first, last, &self.start);
        let request = Request {
            pool: Some(pool.unwrap_or(PoolId::DEFAULT)),
            ..Request::new(entry.bytes, entry.context.stream)
        };
        let fails = entry.action == Action::Oom;
        self.write_script(first, last, if fails { entry.address.0 } else { 0 });
        if first < last {
            self.pools
                .prepare_releases(&mut self.allocator, operations, first, last);
        }
        if let Some(pool) = pool {
            self.pools.open(&mut self.allocator, pool);
        }
        // What went wrong shows in the entries.
        let got = self.allocator.malloc_request(request);
        let slot = self.start.slots[last] as usize;
        if let (Ok(allocation), Some(place)) = (got, self.live.get_mut(slot)) {
            *place = allocation.block;
        }
    }

    /// Tells the driver what it did on behalf of the group.
    #[inline]
    fn write_script(&mut self, first: usize, end: usize, free_bytes: u64) {
        self.allocator.driver_mut().start_script(free_bytes);
        if first < end {
            self.write_driver_calls(first, end);
        }
    }

    #[cold]
    fn write_driver_calls(&mut self, first: usize, end: usize) {
        let operations = &self.recording.operations;
        let completed = |&index: &usize| operations.actions()[index] == Action::FreeCompleted;
        if (first..end).filter(completed).count() > 1 {
            let addresses = (first..end).filter(completed);
            let addresses = addresses.map(|index| Address(operations.addresses()[index]));
            self.allocator
                .set_completion_order(&addresses.collect::<Vec<_>>());
        }
        let driver = self.allocator.driver_mut();
        for index in first..end {
            let entry = operations.at(index);
            if entry.action.is_segment() {
                driver.expect(entry.action, entry.address.0, entry.bytes);
            }
        }
    }
}

//! Exact replay: the recorded operations under the recorded settings must lead to every recorded
//! address, segment and entry.

use std::fmt;

use super::circumstances::Circumstances;
use super::groups::{Group, Groups};
use super::images::images;
use super::operations::{Operation, Recording};
use super::private_pools::PrivatePools;
use super::scripted_driver::ScriptedDriver;
use super::sizes::RequestSizes;
use super::start::Start;
use super::warning::Warning;
use crate::allocator::{Allocator, Request, SegmentView};
use crate::ids::{Address, PoolId, StreamId};
use crate::stats::Stats;
use crate::trace::{Action, TraceEvent};

/// What came out.
#[derive(Clone, Debug)]
pub struct ExactReplay {
    /// The first thing that was not as recorded; the replay ends there.
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
    fn is_growth_without_need(&self) -> bool {
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

type Replica = Allocator<ScriptedDriver, Vec<TraceEvent>>;

/// A stream that no program has, for uses that the recording does not name.
pub(super) const OTHER_STREAM: StreamId = StreamId(u64::MAX);

/// Replays a recording as it was.
#[must_use]
pub fn exact(recording: &Recording, circumstances: &Circumstances) -> ExactReplay {
    let start = Start::of(recording);
    let mut warnings = start.warnings.clone();
    warnings.extend(circumstances.doubts(&start));
    let mappings = recording
        .operations
        .iter()
        .filter(|entry| entry.action == Action::SegmentMap && entry.is_possible());
    let mappings = mappings.map(|entry| entry.address.0).collect();
    let driver = ScriptedDriver::new(circumstances.total_or_large(), mappings);
    let settings = circumstances.settings.clone();
    let mut replay = Replay {
        recording,
        allocator: Allocator::with_trace(circumstances.release, settings, driver, Vec::new()),
        pools: PrivatePools::new(&start, recording),
        segment_events: Vec::new(),
        stats_at_snapshots: Vec::new(),
        entries: 0,
        difference: None,
        flushes: Vec::new(),
    };
    replay.allocator.set_limit(circumstances.limit_bytes);
    warnings.extend(replay.adopt(&start, circumstances));
    let mut groups = Groups::new(&recording.operations, &start, circumstances.premises());
    for group in &mut groups {
        replay.repeat(group, &start);
        if replay.difference.is_some() {
            break;
        }
    }
    warnings.extend(groups.warnings());
    if replay
        .difference
        .is_some_and(|difference| difference.is_growth_without_need())
    {
        warnings.push(Warning::PrivatePoolsLikely);
    }
    ExactReplay {
        difference: replay.difference,
        entries: replay.entries,
        segment_events: replay.segment_events,
        stats_at_snapshots: replay.stats_at_snapshots,
        stats: replay.allocator.stats().clone(),
        segments: replay.allocator.segments(),
        flushes: replay.flushes,
        warnings,
    }
}

struct Replay<'a> {
    recording: &'a Recording,
    allocator: Replica,
    pools: PrivatePools,
    segment_events: Vec<(usize, TraceEvent)>,
    stats_at_snapshots: Vec<Stats>,
    entries: usize,
    difference: Option<Difference>,
    flushes: Vec<usize>,
}

impl Replay<'_> {
    fn adopt(&mut self, start: &Start, circumstances: &Circumstances) -> Vec<Warning> {
        let sizes = RequestSizes::new(circumstances.release, &circumstances.settings);
        let total = circumstances.total_or_large();
        let reserve = circumstances.settings.expandable_reserve(total);
        let (images, mut warnings) = images(start, &self.recording.operations, &sizes, reserve);
        let mut refused = 0;
        for image in &images {
            if let Some((address, bytes)) = image.reserved {
                self.allocator
                    .driver_mut()
                    .adopt_reservation(address.0, bytes);
            }
            refused += usize::from(self.allocator.adopt(image).is_err());
        }
        if refused > 0 {
            warnings.push(Warning::Contradictions {
                entries: refused,
                first: 0,
            });
        }
        warnings
    }

    /// Repeats a group. Where a request begins with completions or releases, it is tried in three ways,
    /// and what fits is what happened: all of it on behalf of the request; the completions seen before
    /// it looked for a block; a flush that the program asked for before it.
    fn repeat(&mut self, group: Group, start: &Start) {
        let actions = self.recording.operations.actions();
        let Group::Request { first, last } = group else {
            return self.repeat_once(group, start);
        };
        let is_plain = |action: &Action| {
            let grows = matches!(action, Action::SegmentAlloc | Action::SegmentMap);
            grows || !(action.is_segment() || *action == Action::FreeCompleted)
        };
        if is_plain(&actions[first]) {
            return self.repeat_once(group, start);
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
        self.repeat_once(group, start);
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
            for (way, is_flush) in [(completions, false), (flushed, true)] {
                self.go_back(&before);
                for group in way {
                    if self.difference.is_none() {
                        self.repeat_once(group, start);
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

    fn state(&self) -> (Replica, PrivatePools, usize, usize) {
        let events = self.segment_events.len();
        (
            self.allocator.clone(),
            self.pools.clone(),
            self.entries,
            events,
        )
    }

    fn go_back(&mut self, state: &(Replica, PrivatePools, usize, usize)) {
        self.allocator = state.0.clone();
        self.pools = state.1.clone();
        self.entries = state.2;
        self.segment_events.truncate(state.3);
        self.difference = None;
    }

    fn repeat_once(&mut self, group: Group, start: &Start) {
        self.allocator.sink_mut().clear();
        let (first, end) = group.span();
        let operations = &self.recording.operations;
        let impossible = (first..end).find(|&index| !operations.at(index).is_possible());
        if let Some(index) = impossible {
            self.difference = Some(Difference {
                index,
                recorded: Some(operations.at(index)),
                predicted: None,
            });
            return;
        }
        match group {
            Group::Request { first, last } => self.request(first, last, start),
            Group::Free { at, completes } => {
                let address = Address(operations.addresses()[at]);
                if !completes {
                    // Other streams use it; which is not recorded.
                    let _ = self.allocator.record_stream(address, OTHER_STREAM);
                }
                // An unknown address leaves no entry, which the comparison sees.
                let _ = self.allocator.free(address);
            }
            Group::Complete { at } => {
                self.allocator.complete(Address(operations.addresses()[at]));
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
        self.pools.follow(operations, first, end, start);
        self.compare(first, end);
    }

    fn request(&mut self, first: usize, last: usize, start: &Start) {
        let operations = &self.recording.operations;
        let entry = operations.at(last);
        let pool = self.pools.of_request(operations, first, last, start);
        let request = Request {
            pool: Some(pool.unwrap_or(PoolId::DEFAULT)),
            ..Request::new(entry.bytes, entry.context.stream)
        };
        let fails = entry.action == Action::Oom;
        self.write_script(first, last, if fails { entry.address.0 } else { 0 });
        self.pools
            .prepare_releases(&mut self.allocator, operations, first, last);
        if let Some(pool) = pool {
            self.pools.open(&mut self.allocator, pool);
        }
        // What went wrong shows in the entries.
        let _ = self.allocator.malloc_request(request);
    }

    fn write_script(&mut self, first: usize, end: usize, free_bytes: u64) {
        let operations = &self.recording.operations;
        let completed: Vec<Address> = (first..end)
            .filter(|&index| operations.actions()[index] == Action::FreeCompleted)
            .map(|index| Address(operations.addresses()[index]))
            .collect();
        if completed.len() > 1 {
            self.allocator.set_completion_order(&completed);
        }
        let driver = self.allocator.driver_mut();
        driver.start_script(free_bytes);
        for index in first..end {
            let entry = self.recording.operations.at(index);
            if entry.action.is_segment() {
                driver.expect(entry.action, entry.address.0, entry.bytes);
            }
        }
    }

    /// Compares what the group did with what is recorded.
    fn compare(&mut self, first: usize, end: usize) {
        let predicted = self.allocator.sink().len();
        for place in 0..predicted.max(end - first) {
            let here = self.allocator.sink().get(place).copied();
            let there = (first + place < end).then(|| self.recording.operations.at(first + place));
            if let (Some(here), Some(there)) = (here, there)
                && is_same(here, there)
            {
                if here.action.is_segment() {
                    self.segment_events.push((first + place, here));
                }
                self.entries += 1;
                continue;
            }
            self.difference = Some(Difference {
                index: first + place,
                recorded: there,
                predicted: here,
            });
            break;
        }
    }
}

fn is_same(here: TraceEvent, there: Operation) -> bool {
    here.action == there.action
        && here.bytes == there.bytes
        && (here.address == there.address || here.action == Action::Oom)
        && (here.stream == there.context.stream || here.action == Action::Snapshot)
        && there.context.pool.is_none_or(|pool| pool == here.pool)
}

//! The recording as a whole.

use crate::allocation::Allocation;
use crate::answer::Answer;
use crate::events::{ChangeId, Event, Failure, FailureId, Pool, SegmentChange};
use crate::names::Names;
use crate::phases::{NamedRange, Phase};

/// What happened to the memory of one process, or of every rank of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    pub about: About,
    pub names: Names,
    /// The cards that were used; in a job with several ranks, those of each rank, in ascending order.
    pub cards: Vec<CardMemory>,
    /// The run that ran out of memory, if the rest describes a later run with unlimited memory. It uses the same names.
    pub failed_run: Option<FailedRun>,
    /// What is missing from the recording, in sentences.
    pub warnings: Vec<String>,
}

impl Recording {
    /// What other processes of the rehearsal used of a card when its use was highest, according to the answer. If they
    /// used all of it, they did not run at the same time as this one, but before or after it.
    pub fn other_processes_bytes(&self, card: &CardMemory) -> u64 {
        let answer = self.about.answer.as_ref();
        let of_rank = answer.and_then(|answer| {
            let ranks = answer.ranks.iter();
            let own = ranks.filter(|rank| Some(rank.rank) == card.rank);
            own.map(|rank| rank.device).next()
        });
        let place = of_rank.unwrap_or(card.index as usize);
        let mut devices = answer.into_iter().flat_map(|answer| &answer.devices);
        devices
            .find(|device| device.device == place)
            .map(|device| (device.other_processes_bytes, device.peak_device_bytes))
            .filter(|(others, all)| others < all)
            .map_or(0, |(others, _)| others)
    }
}

/// Where a recording comes from, which decides what it knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// GhostGPU, in a rehearsal: owners, stages, modules and the rest of the card are known.
    #[default]
    Rehearsal,
    /// PyTorch's own allocator, in a memory snapshot: only stacks, sizes, lifetimes, segments and streams are known. Its
    /// allocations have the category [`Unknown`](crate::Category::Unknown).
    Snapshot,
}

/// What was recorded, where, and with which result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    pub source: Source,
    /// The script and its arguments.
    pub command: Vec<String>,
    pub torch: String,
    /// The card's name, its memory, its capability (`9.0`).
    pub gpu: String,
    pub gpu_total_bytes: u64,
    pub capability: String,
    /// The allocator's settings, as in `PYTORCH_CUDA_ALLOC_CONF`; empty if unknown.
    pub allocator_settings: String,
    /// The number of completed optimizer steps.
    pub steps: u32,
    /// The answer of the rehearsal, if it was one.
    pub answer: Option<Answer>,
}

/// A run up to the request that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailedRun {
    /// The number of completed optimizer steps when memory ran out.
    pub steps: u32,
    pub cards: Vec<CardMemory>,
}

/// What happened on one card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardMemory {
    /// The rank whose memory it is, if the job has several.
    pub rank: Option<u32>,
    /// The number of the card in its process.
    pub index: u32,
    /// Memory on the card outside PyTorch's allocator: the CUDA context and libraries. 0 for a
    /// [snapshot](Source::Snapshot), which does not have it.
    pub outside_bytes: u64,
    /// The part of it that NCCL holds for groups of several ranks.
    pub nccl_bytes: u64,
    /// Streams and pools; the first is the default one.
    pub pools: Vec<Pool>,
    /// Memory that PyTorch's allocator had reserved before the first event.
    pub reserved_before: Vec<SegmentChange>,
    pub allocations: Vec<Allocation>,
    pub events: Vec<Event>,
    /// The ranges that events reserve and release, in the order of events.
    pub changes: Vec<SegmentChange>,
    /// Requests that failed, in the order of their events.
    pub failures: Vec<Failure>,
    /// When the first event happened, in microseconds since 1970; 0 if unknown.
    pub began_us: u64,
    /// The time of each event in microseconds since the first; all 0 if times were not recorded.
    pub times_us: Vec<u64>,
    /// What the script was doing; empty if unknown.
    pub phases: Vec<Phase>,
    /// Ranges that the script itself named with `record_function`.
    pub ranges: Vec<NamedRange>,
}

impl Default for CardMemory {
    fn default() -> Self {
        Self {
            rank: None,
            index: 0,
            outside_bytes: 0,
            nccl_bytes: 0,
            pools: vec![Pool::default()],
            reserved_before: Vec::new(),
            allocations: Vec::new(),
            events: Vec::new(),
            changes: Vec::new(),
            failures: Vec::new(),
            began_us: 0,
            times_us: Vec::new(),
            phases: Vec::new(),
            ranges: Vec::new(),
        }
    }
}

impl CardMemory {
    /// `card 0`, or `rank 3` in a job with several ranks.
    pub fn title(&self) -> String {
        match self.rank {
            Some(rank) => format!("rank {rank}"),
            None => format!("card {}", self.index),
        }
    }

    /// Stores a range, and returns the event that reserves it, which must be pushed next.
    pub fn reserve(&mut self, change: SegmentChange) -> Event {
        self.changes.push(change);
        Event::Reserve(ChangeId(self.changes.len() as u32 - 1))
    }

    /// Stores a range, and returns the event that releases it, which must be pushed next.
    pub fn release(&mut self, change: SegmentChange) -> Event {
        self.changes.push(change);
        Event::Release(ChangeId(self.changes.len() as u32 - 1))
    }

    /// Stores a failed request, and returns its event, which must be pushed next.
    pub fn fail(&mut self, failure: Failure) -> Event {
        self.failures.push(failure);
        Event::OutOfMemory(FailureId(self.failures.len() as u32 - 1))
    }

    /// The range that an event reserves or releases; an empty one if there is none.
    pub fn change(&self, id: ChangeId) -> SegmentChange {
        self.changes.get(id.0 as usize).copied().unwrap_or_default()
    }

    /// The request that failed in an event; an empty one if there is none.
    pub fn failure(&self, id: FailureId) -> Failure {
        self.failures
            .get(id.0 as usize)
            .copied()
            .unwrap_or_default()
    }

    /// Every range that was reserved or released, with its event and whether it was reserved.
    pub fn segment_changes(
        &self,
    ) -> impl DoubleEndedIterator<Item = (u32, bool, SegmentChange)> + '_ {
        let events = self.events.iter().enumerate();
        events.filter_map(|(at, event)| match *event {
            Event::Reserve(id) => Some((at as u32, true, self.change(id))),
            Event::Release(id) => Some((at as u32, false, self.change(id))),
            _ => None,
        })
    }

    /// Every request that failed, with its event.
    pub fn failed_requests(&self) -> impl DoubleEndedIterator<Item = (u32, Failure)> + '_ {
        let events = self.events.iter().enumerate();
        events.filter_map(|(at, event)| match *event {
            Event::OutOfMemory(id) => Some((at as u32, self.failure(id))),
            _ => None,
        })
    }

    /// The phase that an event belongs to.
    pub fn phase_of(&self, event: u32) -> Option<&Phase> {
        let after = self
            .phases
            .partition_point(|phase| phase.first_event <= event);
        self.phases.get(after.checked_sub(1)?)
    }
}

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
    /// The cards that were used; of a job of several ranks, those of each rank, in their order.
    pub cards: Vec<CardMemory>,
    /// The run that ran out of memory, where the rest is of a later run that had enough. It has the same names.
    pub failed_run: Option<FailedRun>,
    /// What is missing from it, in sentences.
    pub warnings: Vec<String>,
}

impl Recording {
    /// What other processes of the rehearsal held beside this one on a card when its use was highest, by the
    /// answer. Where they held all of it, they were not beside this one but before or after it.
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

/// Who watched the memory, and so what can be known about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// GhostGPU, in a rehearsal: owners, stages, modules and the rest of the card are known.
    #[default]
    Rehearsal,
    /// PyTorch's own allocator, in a memory snapshot: stacks, sizes, lifetimes, segments, streams, and
    /// nothing else. Its allocations are of the category [`Unknown`](crate::Category::Unknown).
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
    /// How the allocator was set, as in `PYTORCH_CUDA_ALLOC_CONF`; empty if that is not known.
    pub allocator_settings: String,
    /// Optimizer steps that were complete at the end.
    pub steps: u32,
    /// The answer of the rehearsal, if it was one.
    pub answer: Option<Answer>,
}

/// A run up to the request that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailedRun {
    /// Optimizer steps that were complete when memory ran out.
    pub steps: u32,
    pub cards: Vec<CardMemory>,
}

/// What happened on one card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardMemory {
    /// The rank whose memory it is, in a job of several.
    pub rank: Option<u32>,
    /// As the process numbers its cards.
    pub index: u32,
    /// On the card, but not from PyTorch's allocator: the CUDA context and what libraries hold. 0 in a
    /// recording of a [snapshot](Source::Snapshot), which does not say.
    pub outside_bytes: u64,
    /// Of that, what NCCL holds for groups of several ranks.
    pub nccl_bytes: u64,
    /// Streams and pools; the first is the default one.
    pub pools: Vec<Pool>,
    /// Memory that PyTorch's allocator had reserved before the first event.
    pub reserved_before: Vec<SegmentChange>,
    pub allocations: Vec<Allocation>,
    pub events: Vec<Event>,
    /// What events reserve and release, in their order.
    pub changes: Vec<SegmentChange>,
    /// Requests that failed, in the order of their events.
    pub failures: Vec<Failure>,
    /// When the first event happened, in microseconds since 1970; 0 if that is not known.
    pub began_us: u64,
    /// Time of each event in microseconds since the first; as many as there are events. All are 0 where
    /// times were not recorded.
    pub times_us: Vec<u64>,
    /// What the script was doing; empty if nobody looked.
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
    /// `card 0`, or `rank 3` of a job of several.
    pub fn title(&self) -> String {
        match self.rank {
            Some(rank) => format!("rank {rank}"),
            None => format!("card {}", self.index),
        }
    }

    /// Takes down a range, and gives the event that reserves it, to be pushed next.
    pub fn reserve(&mut self, change: SegmentChange) -> Event {
        self.changes.push(change);
        Event::Reserve(ChangeId(self.changes.len() as u32 - 1))
    }

    /// Takes down a range, and gives the event that releases it, to be pushed next.
    pub fn release(&mut self, change: SegmentChange) -> Event {
        self.changes.push(change);
        Event::Release(ChangeId(self.changes.len() as u32 - 1))
    }

    /// Takes down a failed request, and gives its event, to be pushed next.
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

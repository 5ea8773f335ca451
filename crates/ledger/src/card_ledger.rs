//! The one pass over a card's events, and queries about it.

use ghostgpu_recording::{Allocation, AllocationId, CardMemory, Recording};

use crate::accounts::Accounts;
use crate::by_category::ByCategory;
use crate::cached::releasable_bytes;
use crate::moment::{Level, Moment};
use crate::segments_at::reserved_at;
use crate::steps::{StepSummary, steps_of};
use crate::sweep::{Sweep, SweepState};

/// The memory of one card of a recording, after one pass over its events.
#[derive(Clone, Debug)]
pub struct CardLedger<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) card: &'a CardMemory,
    start: Level,
    peak: Level,
    peak_reserved: Level,
    end: Level,
    steps: Vec<StepSummary>,
}

impl<'a> CardLedger<'a> {
    /// Goes through the events of a card of the recording.
    pub fn new(recording: &'a Recording, card: &'a CardMemory) -> Self {
        Self::with_steps(recording, card, recording.about.steps)
    }

    /// Goes through the events of a card in the recording's [failed run](Recording::failed_run).
    pub fn of_failed_run(recording: &'a Recording, card: &'a CardMemory) -> Self {
        let failed = recording.failed_run.as_ref();
        Self::with_steps(recording, card, failed.map_or(0, |failed| failed.steps))
    }

    fn with_steps(recording: &'a Recording, card: &'a CardMemory, complete: u32) -> Self {
        let mut steps = steps_of(card, complete);
        let start = SweepState::before(card).level(Moment(0));
        let source = recording.about.source;
        let (mut peak, mut peak_reserved, mut end) = (start, start, start);
        let mut current = 0;
        for step in steps.iter_mut().take_while(|step| step.from.0 == 0) {
            step.see(start);
        }
        for (moment, state) in Sweep::new(card) {
            let level = state.level(moment);
            if level.height(source) > peak.height(source) {
                peak = level;
            }
            if level.reserved_bytes > peak_reserved.reserved_bytes {
                peak_reserved = level;
            }
            while steps.get(current).is_some_and(|step| step.to < moment) {
                current += 1;
            }
            // A moment may be the last of one step and the first of the next.
            for step in steps.iter_mut().skip(current) {
                if step.from > moment {
                    break;
                }
                step.see(level);
            }
            end = level;
        }
        Self {
            recording,
            card,
            start,
            peak,
            peak_reserved,
            end,
            steps,
        }
    }

    /// The card of a recording with the highest peak, if there is one.
    pub fn of_fullest(recording: &'a Recording) -> Option<Self> {
        let source = recording.about.source;
        let ledgers = recording
            .cards
            .iter()
            .map(|card| Self::new(recording, card));
        ledgers.reduce(|best, next| {
            if next.peak.height(source) > best.peak.height(source) {
                next
            } else {
                best
            }
        })
    }

    pub fn recording(&self) -> &'a Recording {
        self.recording
    }

    pub fn card(&self) -> &'a CardMemory {
        self.card
    }

    /// The level before the first event.
    pub fn start(&self) -> Level {
        self.start
    }

    /// The first moment with the highest [`Level::height`].
    pub fn peak(&self) -> Level {
        self.peak
    }

    /// The first moment with the most reserved memory.
    pub fn peak_reserved(&self) -> Level {
        self.peak_reserved
    }

    /// The level after the last event.
    pub fn end(&self) -> Level {
        self.end
    }

    /// How much of the most that was reserved was never in use at one time.
    pub fn never_used_bytes(&self) -> u64 {
        let reserved = self.peak_reserved.reserved_bytes;
        reserved.saturating_sub(self.peak.allocated_bytes)
    }

    /// The steps in their order, each with its peaks.
    pub fn steps(&self) -> &[StepSummary] {
        &self.steps
    }

    /// What is live at a moment, in the order of the recording.
    pub fn live_at(&self, moment: Moment) -> impl Iterator<Item = (AllocationId, &'a Allocation)> {
        let allocations = self.card.allocations.iter().enumerate();
        allocations
            .filter(move |(_, one)| is_live(one, moment))
            .map(|(at, one)| (AllocationId(at as u32), one))
    }

    /// Whether an allocation of the card is live at a moment.
    pub fn is_live(&self, id: AllocationId, moment: Moment) -> bool {
        let one = self.card.allocations.get(id.0 as usize);
        one.is_some_and(|one| is_live(one, moment))
    }

    /// Every byte on the card at a moment.
    pub fn accounts(&self, moment: Moment) -> Accounts {
        let mut requested = ByCategory::default();
        let mut allocated_bytes = 0_u64;
        for (_, one) in self.live_at(moment) {
            requested.add(one.category, one.requested_bytes);
            allocated_bytes = allocated_bytes.saturating_add(one.block_bytes);
        }
        let reserved_bytes = self.reserved_bytes(moment);
        let ranges = reserved_at(self.card, moment);
        let releasable = releasable_bytes(&ranges, self.live_at(moment).map(|(_, one)| one));
        Accounts {
            moment,
            time_us: self.time_us(moment),
            requested,
            allocated_bytes,
            reserved_bytes,
            releasable_bytes: releasable.min(reserved_bytes.saturating_sub(allocated_bytes)),
            outside_bytes: self.card.outside_bytes,
            nccl_bytes: self.card.nccl_bytes,
            other_processes_bytes: self.recording.other_processes_bytes(self.card),
        }
    }

    /// Time of the event before a moment, since the first event.
    pub fn time_us(&self, moment: Moment) -> u64 {
        let event = moment.0.checked_sub(1);
        event
            .and_then(|event| self.card.times_us.get(event))
            .copied()
            .unwrap_or(0)
    }

    /// Bytes that are reserved at a moment.
    pub fn reserved_bytes(&self, moment: Moment) -> u64 {
        let changes = self.card.segment_changes();
        changes.take_while(|one| (one.0 as usize) < moment.0).fold(
            self.start.reserved_bytes,
            |sum, (_, is_reserved, change)| match is_reserved {
                true => sum.saturating_add(change.bytes),
                false => sum.saturating_sub(change.bytes),
            },
        )
    }
}

/// Whether an allocation is live at a moment.
fn is_live(allocation: &Allocation, moment: Moment) -> bool {
    let has_begun = allocation
        .allocated_at
        .is_none_or(|event| (event as usize) < moment.0);
    let has_ended = allocation
        .freed_at
        .is_some_and(|event| (event as usize) < moment.0);
    has_begun && !has_ended
}

impl StepSummary {
    fn see(&mut self, level: Level) {
        self.peak_allocated_bytes = self.peak_allocated_bytes.max(level.allocated_bytes);
        self.peak_reserved_bytes = self.peak_reserved_bytes.max(level.reserved_bytes);
        if level.moment <= self.optimizer_done.unwrap_or(self.to) {
            self.allocated_after_bytes = level.allocated_bytes;
        }
    }
}

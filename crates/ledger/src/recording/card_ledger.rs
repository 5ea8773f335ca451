//! The one pass over a card's events, and what is asked of it afterwards.

use ghostgpu_recording::{Allocation, AllocationId, CardMemory, Recording};

use super::accounts::Accounts;
use super::by_category::ByCategory;
use super::cached::releasable_bytes;
use super::reserved::ReservedRanges;
use super::steps::{StepSummary, steps_of};
use super::sweep::{Sweep, SweepState};
use crate::ledger::Moment;

/// How much there was at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    pub moment: Moment,
    pub allocated_bytes: u64,
    pub reserved_bytes: u64,
}

/// The memory of one card of a recording.
#[derive(Clone, Debug)]
pub struct CardLedger<'a> {
    pub(super) recording: &'a Recording,
    pub(super) card: &'a CardMemory,
    start: Level,
    peak: Level,
    peak_reserved: Level,
    end: Level,
    steps: Vec<StepSummary>,
}

impl<'a> CardLedger<'a> {
    /// Goes through the events of a card of the recording.
    pub fn new(recording: &'a Recording, card: &'a CardMemory) -> Self {
        let mut steps = steps_of(card);
        let start = Level::of(Moment(0), SweepState::before(card));
        let (mut peak, mut peak_reserved, mut end) = (start, start, start);
        let mut current = 0;
        for step in steps.iter_mut().take_while(|step| step.from.0 == 0) {
            step.see(start);
        }
        for (moment, state) in Sweep::new(card) {
            let level = Level::of(moment, state);
            if level.allocated_bytes > peak.allocated_bytes {
                peak = level;
            }
            if level.reserved_bytes > peak_reserved.reserved_bytes {
                peak_reserved = level;
            }
            while steps.get(current).is_some_and(|step| step.to < moment) {
                current += 1;
            }
            // A moment is the last of one step and the first of the next.
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

    /// The card of a recording on which most was allocated, if there is one.
    pub fn of_fullest(recording: &'a Recording) -> Option<Self> {
        let ledgers = recording
            .cards
            .iter()
            .map(|card| Self::new(recording, card));
        ledgers.reduce(|best, next| {
            if next.peak.allocated_bytes > best.peak.allocated_bytes {
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

    /// Before the first event.
    pub fn start(&self) -> Level {
        self.start
    }

    /// When most was allocated; the first such moment.
    pub fn peak(&self) -> Level {
        self.peak
    }

    /// When most was reserved; the first such moment.
    pub fn peak_reserved(&self) -> Level {
        self.peak_reserved
    }

    /// After the last event.
    pub fn end(&self) -> Level {
        self.end
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
        let ranges = ReservedRanges::at(self.card, moment);
        let releasable = releasable_bytes(&ranges, self.live_at(moment).map(|(_, one)| one));
        Accounts {
            moment,
            time_us: self.time_us(moment),
            requested,
            allocated_bytes,
            reserved_bytes,
            releasable_bytes: releasable.min(reserved_bytes.saturating_sub(allocated_bytes)),
            outside_bytes: self.card.outside_bytes,
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

    fn reserved_bytes(&self, moment: Moment) -> u64 {
        use ghostgpu_recording::Event;
        let mut sum = self.start.reserved_bytes;
        for event in self.card.events.iter().take(moment.0) {
            match event {
                Event::Reserve(change) => sum = sum.saturating_add(change.bytes),
                Event::Release(change) => sum = sum.saturating_sub(change.bytes),
                _ => {}
            }
        }
        sum
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

impl Level {
    fn of(moment: Moment, state: SweepState) -> Self {
        Self {
            moment,
            allocated_bytes: state.allocated_bytes,
            reserved_bytes: state.reserved_bytes,
        }
    }
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

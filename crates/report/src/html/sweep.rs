//! One pass over a card's events: when each allocation lived, what every stretch of events held at most,
//! and what came and went in every phase.
//!
//! Recordings come from files: an event that names no allocation, or frees what is not live, is passed
//! over, and sums saturate.

use ghostgpu_recording::{Allocation, CardMemory, Category, Event, Phase};

/// An overview has at most this many stretches: more than any screen has columns of pixels.
const MOST_STRETCHES: usize = 16_384;

const CATEGORIES: usize = Category::ALL.len();

/// What was held after an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moment {
    pub event: u32,
    pub allocated_bytes: u64,
    /// Requested bytes of each category; the rest of `allocated_bytes` is rounding.
    pub requested_bytes: [u64; CATEGORIES],
    pub reserved_bytes: u64,
}

impl Moment {
    pub fn rounding_bytes(&self) -> u64 {
        self.requested_bytes
            .iter()
            .fold(self.allocated_bytes, |rest, bytes| {
                rest.saturating_sub(*bytes)
            })
    }
}

/// A stretch of events: its highest moment, so that no peak is lost when a screen shows it as one pixel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub highest: Moment,
    pub highest_reserved_bytes: u64,
}

/// When an allocation lived, in events; `begin` is `None` for one that is older than the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life {
    pub begin: Option<u32>,
    pub end: Option<u32>,
}

/// What happened between two events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PhaseSums {
    pub phase: Phase,
    pub before_bytes: u64,
    pub came_bytes: u64,
    pub went_bytes: u64,
    /// Of what came, what was still there at its end.
    pub stayed_bytes: u64,
    pub peak_bytes: u64,
    pub peak_event: u32,
}

/// What the pass found.
pub(super) struct Swept {
    /// Of each allocation; `None` if it never began.
    pub lives: Vec<Option<Life>>,
    pub events_per_stretch: usize,
    pub stretches: Vec<Stretch>,
    pub phases: Vec<PhaseSums>,
    pub peak: Moment,
    /// The first moment with the most reserved memory.
    pub reserved_peak: Moment,
}

pub(super) fn sweep(card: &CardMemory) -> Swept {
    let events_per_stretch = card
        .events
        .len()
        .div_ceil(MOST_STRETCHES)
        .max(1)
        .next_power_of_two();
    let mut state = State::before(card);
    let mut stretches = Vec::with_capacity(card.events.len() / events_per_stretch + 1);
    let mut phases = PhaseCounter::new(card, &state.now);
    let mut peak = state.now;
    let mut reserved_peak = state.now;
    for (index, event) in card.events.iter().enumerate() {
        let index = index as u32;
        phases.enter(index, &state.now);
        let change = state.apply(index, event, card);
        phases.count(&change, &state.now);
        if (index as usize).is_multiple_of(events_per_stretch) {
            stretches.push(Stretch::new(&state.now));
        } else if let Some(stretch) = stretches.last_mut() {
            stretch.extend(&state.now);
        }
        // The first event counts, whatever was there before it: the peak is a moment of the recording.
        if index == 0 || state.now.allocated_bytes > peak.allocated_bytes {
            peak = state.now;
        }
        if index == 0 || state.now.reserved_bytes > reserved_peak.reserved_bytes {
            reserved_peak = state.now;
        }
    }
    if stretches.is_empty() {
        stretches.push(Stretch::new(&state.now));
    }
    Swept {
        lives: state.lives,
        events_per_stretch,
        stretches,
        phases: phases.finish(),
        peak,
        reserved_peak,
    }
}

impl Stretch {
    fn new(now: &Moment) -> Self {
        Self {
            highest: *now,
            highest_reserved_bytes: now.reserved_bytes,
        }
    }

    fn extend(&mut self, now: &Moment) {
        if now.allocated_bytes > self.highest.allocated_bytes {
            self.highest = *now;
        }
        self.highest_reserved_bytes = self.highest_reserved_bytes.max(now.reserved_bytes);
    }
}

/// What an event changed.
enum Change {
    Came { bytes: u64 },
    Went { bytes: u64, begin: Option<u32> },
    Neither,
}

struct State {
    now: Moment,
    lives: Vec<Option<Life>>,
}

impl State {
    fn before(card: &CardMemory) -> Self {
        let mut state = Self {
            now: Moment::default(),
            lives: vec![None; card.allocations.len()],
        };
        for segment in &card.reserved_before {
            state.now.reserved_bytes = state.now.reserved_bytes.saturating_add(segment.bytes);
        }
        for (allocation, life) in card.allocations.iter().zip(&mut state.lives) {
            if allocation.allocated_at.is_none() {
                *life = Some(Life {
                    begin: None,
                    end: None,
                });
                add(&mut state.now, allocation);
            }
        }
        state
    }

    fn apply(&mut self, index: u32, event: &Event, card: &CardMemory) -> Change {
        self.now.event = index;
        match *event {
            Event::Allocate(id) => {
                let place = id.0 as usize;
                if let (Some(allocation), Some(life @ None)) =
                    (card.allocations.get(place), self.lives.get_mut(place))
                {
                    *life = Some(Life {
                        begin: Some(index),
                        end: None,
                    });
                    add(&mut self.now, allocation);
                    return Change::Came {
                        bytes: allocation.block_bytes,
                    };
                }
            }
            Event::Free(id) => {
                let place = id.0 as usize;
                if let (Some(allocation), Some(Some(life))) =
                    (card.allocations.get(place), self.lives.get_mut(place))
                    && life.end.is_none()
                {
                    life.end = Some(index);
                    remove(&mut self.now, allocation);
                    return Change::Went {
                        bytes: allocation.block_bytes,
                        begin: life.begin,
                    };
                }
            }
            Event::Reserve(change) => {
                self.now.reserved_bytes = self.now.reserved_bytes.saturating_add(change.bytes);
            }
            Event::Release(change) => {
                self.now.reserved_bytes = self.now.reserved_bytes.saturating_sub(change.bytes);
            }
            Event::OutOfMemory { .. } => {}
        }
        Change::Neither
    }
}

fn add(now: &mut Moment, allocation: &Allocation) {
    let requested = &mut now.requested_bytes[allocation.category as usize];
    *requested = requested.saturating_add(allocation.requested_bytes);
    now.allocated_bytes = now.allocated_bytes.saturating_add(allocation.block_bytes);
}

fn remove(now: &mut Moment, allocation: &Allocation) {
    let requested = &mut now.requested_bytes[allocation.category as usize];
    *requested = requested.saturating_sub(allocation.requested_bytes);
    now.allocated_bytes = now.allocated_bytes.saturating_sub(allocation.block_bytes);
}

/// Follows the phases, in their order.
struct PhaseCounter {
    /// Those that begin later; the next one at the end.
    later: Vec<Phase>,
    done: Vec<PhaseSums>,
    now: Option<PhaseSums>,
}

impl PhaseCounter {
    fn new(card: &CardMemory, before: &Moment) -> Self {
        let mut later = card.phases.clone();
        later.sort_by_key(|phase| phase.first_event);
        later.reverse();
        let mut counter = Self {
            later,
            done: Vec::new(),
            now: None,
        };
        counter.enter(0, before);
        counter
    }

    fn enter(&mut self, event: u32, before: &Moment) {
        // Of several that begin here, only the last has events.
        while let Some(phase) = self.later.pop_if(|next| next.first_event <= event) {
            self.close();
            self.now = Some(PhaseSums {
                phase,
                before_bytes: before.allocated_bytes,
                came_bytes: 0,
                went_bytes: 0,
                stayed_bytes: 0,
                peak_bytes: 0,
                peak_event: event,
            });
        }
    }

    fn count(&mut self, change: &Change, now: &Moment) {
        let Some(sums) = &mut self.now else { return };
        match *change {
            Change::Came { bytes } => {
                sums.came_bytes = sums.came_bytes.saturating_add(bytes);
                sums.stayed_bytes = sums.stayed_bytes.saturating_add(bytes);
            }
            Change::Went { bytes, begin } => {
                sums.went_bytes = sums.went_bytes.saturating_add(bytes);
                if begin.is_some_and(|begin| begin >= sums.phase.first_event) {
                    sums.stayed_bytes = sums.stayed_bytes.saturating_sub(bytes);
                }
            }
            Change::Neither => {}
        }
        if now.allocated_bytes > sums.peak_bytes {
            sums.peak_bytes = now.allocated_bytes;
            sums.peak_event = now.event;
        }
    }

    fn close(&mut self) {
        self.done.extend(self.now.take());
    }

    fn finish(mut self) -> Vec<PhaseSums> {
        self.close();
        let ends: Vec<u32> = self
            .done
            .iter()
            .skip(1)
            .map(|next| next.phase.first_event)
            .chain([u32::MAX])
            .collect();
        self.done
            .into_iter()
            .zip(ends)
            .filter(|(sums, end)| sums.phase.first_event < *end)
            .map(|(sums, _)| sums)
            .collect()
    }
}

#[cfg(test)]
mod tests;

//! The state of a card after each of its events, computed in one pass.

use ghostgpu_recording::{Allocation, CardMemory, Event};

use crate::by_category::ByCategory;
use crate::moment::{Level, Moment};

/// Sums at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepState {
    /// Requested bytes, by category.
    pub requested: ByCategory,
    /// The sum over all categories.
    pub requested_bytes: u64,
    /// Bytes of the live blocks.
    pub allocated_bytes: u64,
    /// Bytes that the allocator has from the driver.
    pub reserved_bytes: u64,
}

impl SweepState {
    /// The state before the first event.
    pub fn before(card: &CardMemory) -> Self {
        let mut state = Self::default();
        for older in card
            .allocations
            .iter()
            .filter(|one| one.allocated_at.is_none())
        {
            state.begin(older);
        }
        for segment in &card.reserved_before {
            state.reserved_bytes = state.reserved_bytes.saturating_add(segment.bytes);
        }
        state
    }

    /// These sums, at their moment.
    pub fn level(&self, moment: Moment) -> Level {
        Level {
            moment,
            requested_bytes: self.requested_bytes,
            allocated_bytes: self.allocated_bytes,
            reserved_bytes: self.reserved_bytes,
        }
    }

    fn begin(&mut self, one: &Allocation) {
        self.requested.add(one.category, one.requested_bytes);
        self.requested_bytes = self.requested_bytes.saturating_add(one.requested_bytes);
        self.allocated_bytes = self.allocated_bytes.saturating_add(one.block_bytes);
    }

    fn end(&mut self, one: &Allocation) {
        self.requested.subtract(one.category, one.requested_bytes);
        self.requested_bytes = self.requested_bytes.saturating_sub(one.requested_bytes);
        self.allocated_bytes = self.allocated_bytes.saturating_sub(one.block_bytes);
    }

    /// Applies one event.
    pub fn apply(&mut self, card: &CardMemory, event: Event) {
        match event {
            Event::Allocate(id) => {
                if let Some(one) = card.allocations.get(id.0 as usize) {
                    self.begin(one);
                }
            }
            Event::Free(id) => {
                if let Some(one) = card.allocations.get(id.0 as usize) {
                    self.end(one);
                }
            }
            Event::Reserve(id) => {
                let bytes = card.change(id).bytes;
                self.reserved_bytes = self.reserved_bytes.saturating_add(bytes);
            }
            Event::Release(id) => {
                let bytes = card.change(id).bytes;
                self.reserved_bytes = self.reserved_bytes.saturating_sub(bytes);
            }
            Event::FreeRequested(_) | Event::OutOfMemory(_) | Event::Other => {}
        }
    }
}

/// Iterates over the moments of a card after each event, with the state at each.
#[derive(Clone, Debug)]
pub struct Sweep<'a> {
    card: &'a CardMemory,
    state: SweepState,
    next_event: usize,
}

impl<'a> Sweep<'a> {
    pub fn new(card: &'a CardMemory) -> Self {
        Self {
            card,
            state: SweepState::before(card),
            next_event: 0,
        }
    }

    /// The state at the moment returned last; initially, the state before the first event.
    pub fn state(&self) -> &SweepState {
        &self.state
    }
}

impl Iterator for Sweep<'_> {
    type Item = (Moment, SweepState);

    fn next(&mut self) -> Option<Self::Item> {
        let event = *self.card.events.get(self.next_event)?;
        self.next_event += 1;
        self.state.apply(self.card, event);
        Some((Moment(self.next_event), self.state))
    }
}

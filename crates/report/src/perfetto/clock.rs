//! The times of a timeline.

use ghostgpu_recording::CardMemory;

/// Times that never run backwards; where the recording has none, events are a microsecond apart.
#[derive(Debug)]
pub(super) struct Clock {
    counts_events: bool,
    start_us: u64,
    pub(super) latest_ns: u64,
}

impl Clock {
    pub(super) fn of(card: &CardMemory) -> Self {
        Self {
            counts_events: card.began_us == 0 && card.times_us.iter().all(|us| *us == 0),
            start_us: card.began_us,
            latest_ns: card.began_us.saturating_mul(1000),
        }
    }

    /// Whether times mean something.
    pub(super) fn has_times(&self) -> bool {
        !self.counts_events
    }

    /// A time since the first event.
    pub(super) fn since_first_ns(&self, time_us: u64) -> u64 {
        self.start_us.saturating_add(time_us).saturating_mul(1000)
    }

    /// Goes on to an event.
    pub(super) fn advance(&mut self, card: &CardMemory, event: usize) {
        let time_ns = match self.counts_events {
            true => event as u64 * 1000,
            false => self.since_first_ns(card.times_us.get(event).copied().unwrap_or(0)),
        };
        self.latest_ns = self.latest_ns.max(time_ns);
    }
}

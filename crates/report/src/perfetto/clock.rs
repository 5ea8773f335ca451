//! The times of a timeline.

use ghostgpu_trace::{Event, Events};

/// Times that never run backwards; where the file has none, events are a microsecond apart.
#[derive(Debug)]
pub(super) struct Clock {
    pub(super) counts_events: bool,
    pub(super) start_ns: u64,
    latest_ns: u64,
}

impl Clock {
    pub(super) fn of(events: Option<&Events>) -> Self {
        let first_us =
            events.and_then(|events| events.times_us().iter().copied().find(|us| *us > 0));
        let start_ns = first_us.map_or(0, nanoseconds);
        Self {
            counts_events: first_us.is_none(),
            start_ns,
            latest_ns: start_ns,
        }
    }

    pub(super) fn at(&mut self, position: usize, event: Event) -> u64 {
        let time_ns = if self.counts_events {
            position as u64 * 1000
        } else {
            nanoseconds(event.time_us)
        };
        self.latest_ns = self.latest_ns.max(time_ns);
        self.latest_ns
    }
}

/// Microseconds since 1970 in nanoseconds.
pub(super) fn nanoseconds(time_us: i64) -> u64 {
    u64::try_from(time_us).unwrap_or(0).saturating_mul(1000)
}

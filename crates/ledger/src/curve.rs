//! Live bytes over time, in as many points as a drawing has room for.

use ghostgpu_trace::EventKind;

use crate::ledger::{Ledger, Moment};

/// A stretch of events, and between which levels memory moved in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CurvePoint {
    /// The stretch: after `from` events up to after `to`.
    pub from: Moment,
    pub to: Moment,
    pub lowest_live_bytes: u64,
    pub highest_live_bytes: u64,
    pub highest_reserved_bytes: u64,
    /// Time of the stretch's last event.
    pub time_us: i64,
}

impl Ledger<'_> {
    /// The whole recording in at most this many stretches of equally many events. No peak is lost: each
    /// stretch has its highest level.
    pub fn curve(&self, points: usize) -> Vec<CurvePoint> {
        let events = self.events;
        let stretch = events.len().div_ceil(points.max(1)).max(1);
        let mut live = self.start().live_bytes.min(i64::MAX as u64) as i64;
        let mut reserved = self.start().reserved_bytes.min(i64::MAX as u64) as i64;
        let mut replaced = crate::ledger::ByAddress::default();
        let mut curve = Vec::new();
        for from in (0..events.len()).step_by(stretch) {
            let to = (from + stretch).min(events.len());
            let (mut lowest, mut highest, mut highest_reserved) = (live, live, reserved);
            for at in from..to {
                let bytes = events.bytes()[at].min(i64::MAX as u64) as i64;
                match events.kinds()[at] {
                    EventKind::Alloc => {
                        live = live.saturating_add(bytes);
                        // Memory that is allocated twice without a free counts once, as in the ledger.
                        if let Some(earlier) = replaced.insert(events.addresses()[at], bytes) {
                            live = live.saturating_sub(earlier);
                        }
                    }
                    EventKind::FreeCompleted => {
                        live = live.saturating_sub(bytes);
                        replaced.remove(&events.addresses()[at]);
                    }
                    EventKind::SegmentAlloc | EventKind::SegmentMap => {
                        reserved = reserved.saturating_add(bytes);
                    }
                    EventKind::SegmentFree | EventKind::SegmentUnmap => {
                        reserved = reserved.saturating_sub(bytes);
                    }
                    _ => {}
                }
                lowest = lowest.min(live);
                highest = highest.max(live);
                highest_reserved = highest_reserved.max(reserved);
            }
            curve.push(CurvePoint {
                from: Moment(from),
                to: Moment(to),
                lowest_live_bytes: lowest.max(0) as u64,
                highest_live_bytes: highest.max(0) as u64,
                highest_reserved_bytes: highest_reserved.max(0) as u64,
                time_us: events.times_us()[to - 1],
            });
        }
        curve
    }
}

//! Compares the replica with the recording, entry by entry, as it runs.

use super::operations::Operations;
use super::outcome::Difference;
use crate::trace::{TraceEvent, TraceSink};

/// Takes the replica's entries. One group of recorded entries is expected at a time.
#[derive(Clone, Debug)]
pub(super) struct Checker<'a> {
    operations: &'a Operations,
    /// The next entry that is expected, and one past the last of the group.
    at: usize,
    end: usize,
    /// Driver calls of the group.
    segment_events: Vec<(usize, TraceEvent)>,
    difference: Option<Difference>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(operations: &'a Operations, segment_events: usize) -> Self {
        Self {
            operations,
            at: 0,
            end: 0,
            segment_events: Vec::with_capacity(segment_events),
            difference: None,
        }
    }

    /// From now on these entries are expected.
    #[inline]
    pub(super) fn expect(&mut self, first: usize, end: usize) {
        self.at = first;
        self.end = end;
        self.segment_events.clear();
        self.difference = None;
    }

    /// Whether all expected entries came as recorded.
    #[inline]
    pub(super) fn is_content(&self) -> bool {
        self.at == self.end && self.difference.is_none()
    }

    /// The first difference in the group, now that it is complete.
    #[cold]
    pub(super) fn finish(&mut self) -> Option<Difference> {
        if self.at < self.end {
            self.differ(None);
        }
        self.difference
    }

    /// Entries of the group, from `first` on, that were as recorded.
    #[inline]
    pub(super) fn agreed_since(&self, first: usize) -> usize {
        self.at - first
    }

    /// Driver calls of the group that were as recorded.
    #[inline]
    pub(super) fn segment_events(&self) -> &[(usize, TraceEvent)] {
        &self.segment_events
    }

    /// Notes a difference from the recording. Only the first one counts; nothing after it is compared.
    #[cold]
    fn differ(&mut self, predicted: Option<TraceEvent>) {
        if self.difference.is_none() {
            self.difference = Some(Difference {
                index: self.at,
                recorded: (self.at < self.end).then(|| self.operations.at(self.at)),
                predicted,
            });
            self.end = self.at;
        }
    }
}

impl TraceSink for Checker<'_> {
    // The action is known where an entry is emitted, and with it half of the comparison.
    #[inline(always)]
    fn record(&mut self, event: TraceEvent) {
        if self.at == self.end || !self.operations.has(self.at, &event) {
            return self.differ(Some(event));
        }
        if event.action.is_segment() {
            self.segment_events.push((self.at, event));
        }
        self.at += 1;
    }
}

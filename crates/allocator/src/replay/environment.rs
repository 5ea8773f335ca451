//! The environment in which a recording was made.

use super::groups::Premises;
use super::sizes::RequestSizes;
use super::start::Start;
use super::warning::Warning;
use crate::release::{Release, TieBreak};
use crate::settings::Settings;

/// What is known about the process that was recorded.
#[derive(Clone, Debug)]
pub struct Environment {
    pub release: Release,
    pub settings: Settings,
    /// The card's total memory, from its properties.
    pub total_bytes: Option<u64>,
    /// The limit from a memory fraction; `None` if there was none or it is unknown.
    pub limit_bytes: Option<u64>,
    /// How much the allocator could get from the driver.
    pub capacity_bytes: Option<u64>,
}

impl Environment {
    #[must_use]
    pub fn new(release: Release, settings: Settings) -> Self {
        Self {
            release,
            settings,
            total_bytes: None,
            limit_bytes: None,
            capacity_bytes: None,
        }
    }

    /// For address ranges of expandable segments a large card does no harm.
    pub(super) fn total_or_large(&self) -> u64 {
        self.total_bytes.unwrap_or(256 << 30)
    }

    pub(super) fn premises(&self) -> Premises {
        Premises {
            sizes: RequestSizes::new(self.release, &self.settings),
            limit: self.limit_bytes,
            capacity: self.capacity_bytes,
            collects: self.limit_bytes.is_some()
                && self.settings.garbage_collection_threshold > 0.0,
            expandable: self.settings.expandable_segments,
        }
    }

    /// What a recording made in this environment leaves unknown.
    pub(super) fn doubts(&self, start: &Start) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let release = self.release;
        if release.is_unchecked() {
            warnings.push(Warning::ReleaseUnchecked(release));
        }
        let collects = self.settings.garbage_collection_threshold > 0.0;
        if collects && self.limit_bytes.is_none() {
            warnings.push(Warning::LimitUnknown);
        }
        if start.ranges.is_empty() {
            return warnings;
        }
        match release.behaviour().tie_break {
            TieBreak::Address => {}
            TieBreak::ConstructionOrder => warnings.push(Warning::BlockOrderUnknown),
            TieBreak::SegmentThenAddress => warnings.push(Warning::SegmentOrderAssumed {
                segments: start.ranges.len(),
            }),
        }
        if collects && self.limit_bytes.is_some() {
            warnings.push(Warning::AgesUnknown);
        }
        warnings
    }
}

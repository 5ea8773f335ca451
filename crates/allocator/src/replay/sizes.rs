//! How large blocks and segments were under the settings of a recording.

use crate::release::Release;
use crate::rounding::{self, DEFAULT_LARGE_SEGMENT_BYTES, Divisions, SMALL_MAX_BYTES};
use crate::settings::Settings;

#[derive(Clone, Copy, Debug)]
pub(super) struct RequestSizes {
    divisions: Divisions,
    one_division_leaves_unrounded: bool,
    pub(super) large_segment_bytes: u64,
}

impl Default for RequestSizes {
    fn default() -> Self {
        Self {
            divisions: Divisions::default(),
            one_division_leaves_unrounded: false,
            large_segment_bytes: DEFAULT_LARGE_SEGMENT_BYTES,
        }
    }
}

impl RequestSizes {
    pub(super) fn new(release: Release, settings: &Settings) -> Self {
        Self {
            divisions: settings.roundup_power2_divisions,
            one_division_leaves_unrounded: release.behaviour().one_division_leaves_unrounded,
            large_segment_bytes: settings.large_segment_size,
        }
    }

    /// The block that serves a request.
    pub(super) fn block(&self, request: u64) -> u64 {
        let request = request.min(rounding::ABSURD_BYTES);
        rounding::block_size(request, &self.divisions, self.one_division_leaves_unrounded)
    }

    /// What the driver is asked for.
    pub(super) fn segment(&self, request: u64) -> u64 {
        rounding::segment_size(self.block(request), self.large_segment_bytes)
    }

    pub(super) fn is_small(&self, request: u64) -> bool {
        self.block(request) <= SMALL_MAX_BYTES
    }
}

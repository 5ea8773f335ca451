//! How long a step takes with tricks, against the plain job on the same card.

use ghostgpu_rehearse::Run;

/// The predicted time for the same samples, where 1 is the plain job; none where a rehearsal does not tell.
///
/// Both runs ended: `plain` is the job as it is with unlimited memory. No rehearsal records its operations yet, so
/// nothing is predicted, and the ranking falls back on the order of [`coarse_time`](super::coarse_time).
pub fn relative_time(_plain: &Run, _candidate: &Run) -> Option<f64> {
    None
}

//! How long a step takes with tricks, against the plain job on the same card.

use ghostgpu_cost::{Rates, step_time};
use ghostgpu_device::DeviceSheet;
use ghostgpu_rehearse::Run;

use super::combination::Combination;

/// The predicted time for the same samples, where 1 is the plain job; none where the rehearsals do not tell.
///
/// Both runs ended: `plain` is the job as it is with unlimited memory. With smaller batches, a step of one is not a
/// step of the other.
pub fn relative_time(
    plain: &Run,
    candidate: &Run,
    tricks: &Combination,
    card: &DeviceSheet,
) -> Option<f64> {
    if tricks.has("accumulation") || tricks.has("smaller-batch") {
        return None;
    }
    let rates = Rates::of(card);
    let seconds = |run: &Run| Some(step_time(run.findings.main_work()?, &rates).seconds);
    let (plain, candidate) = (seconds(plain)?, seconds(candidate)?);
    (plain > 0.0 && candidate > 0.0).then(|| candidate / plain)
}

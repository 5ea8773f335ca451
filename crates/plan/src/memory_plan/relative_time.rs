//! How long a step takes with tricks, relative to the plain job on the same card.

use ghostgpu_cost::{Rates, step_time};
use ghostgpu_device::DeviceSheet;
use ghostgpu_rehearse::Run;

use super::combination::Combination;

/// The predicted time for the same samples, where 1 is the plain job; `None` if the runs do not give it.
///
/// Both runs must have completed; `plain` is the job as it is with unlimited memory. Tricks with smaller batches are not
/// predicted, because their steps have fewer samples.
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

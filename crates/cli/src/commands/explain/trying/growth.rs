//! Memory that grows with every step: a script may fit for as long as it is watched, and still fill
//! any card.

use ghostgpu_explain::Explanation;
use ghostgpu_session::ProcessReport;

use super::super::trials::{AsItIs, Trials};
use super::{Bench, mends};
use ghostgpu_text::human;

/// Fewer steps do not tell growth from a beginning.
const FEWEST_STEPS: usize = 8;

/// By how many bytes the peak of what is allocated grew with every step, if it went on growing.
pub fn growth_per_step(processes: &[ProcessReport]) -> Option<u64> {
    let busiest = processes
        .iter()
        .max_by_key(|process| process.step_peaks.len())?;
    let peaks: Vec<u64> = busiest
        .step_peaks
        .iter()
        .map(|step| {
            let devices = step.devices.iter();
            devices.map(|device| device.peak_allocated_bytes).sum()
        })
        .collect();
    growth_of(&peaks)
}

/// The peaks only ever rise; what grows rises in each quarter of the second half.
fn growth_of(peaks: &[u64]) -> Option<u64> {
    let last = peaks.len().checked_sub(1)?;
    if peaks.len() < FEWEST_STEPS {
        return None;
    }
    let (half, later) = (last / 2, last * 3 / 4);
    let rises = peaks[half] < peaks[later] && peaks[later] < peaks[last];
    rises.then(|| (peaks[last] - peaks[half]) / (last - half) as u64)
}

impl Bench<'_> {
    /// The script fits and grows: what mends lines is tried, and works where the growth ends.
    pub(super) fn try_against_growth(
        &mut self,
        explanation: &Explanation,
        growth_bytes: u64,
        trials: &mut Trials,
    ) -> anyhow::Result<()> {
        for advice in &explanation.advice {
            match advice.candidate {
                Some(trial) => {
                    if let Some(rules) = mends::rules_for(trial) {
                        self.try_mended(advice, rules, trials)?;
                    }
                }
                None => trials.untried.push(advice.clone()),
            }
        }
        debug_assert!(matches!(trials.as_it_is, AsItIs::Fits { .. }));
        for works in &mut trials.works {
            let before = format!("no more growth of {} with every step", human(growth_bytes));
            works.did = Some(match works.did.take() {
                Some(did) => format!("{did}; {before}"),
                None => before,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rises_to_the_end_grows_and_what_settles_does_not() {
        let cases: [(Vec<u64>, Option<u64>); 5] = [
            ((0..20).map(|step| 100 + 5 * step).collect(), Some(5)),
            (vec![100; 20], None),
            ([vec![10, 50, 90], vec![100; 17]].concat(), None),
            (vec![1, 2, 3], None),
            (vec![], None),
        ];
        for (peaks, expected) in cases {
            assert_eq!(growth_of(&peaks), expected, "{peaks:?}");
        }
    }
}

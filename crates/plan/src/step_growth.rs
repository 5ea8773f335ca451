//! Memory that grows with every step: a script may fit during the rehearsal and still fill any card in the end.

use ghostgpu_ledger::{CardLedger, GrowthSource, lasting_rise};
use ghostgpu_rehearse::Run;
use ghostgpu_session::ProcessReport;

/// Where only peaks are known, fewer steps than this do not distinguish growth from a warm-up.
const FEWEST_STEPS: usize = 8;

/// Shortened passes have at least five batches, so something kept once per epoch looks as if it were kept every fifth
/// step. In such runs, growth with a longer period than this is not counted.
const LONGEST_PERIOD_IN_SHORT_PASSES: usize = 4;

/// Memory that grows from step to step without settling.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepGrowth {
    /// What each step keeps.
    pub bytes_per_step: u64,
    /// By how much each step raises the peak: more than it keeps if it copies what it makes longer.
    pub peak_bytes_per_step: u64,
    /// The line that keeps most of it, if the run was recorded.
    pub line: Option<KeepingLine>,
}

/// A line whose results are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeepingLine {
    /// `train.py:20 in main`.
    pub place: String,
    /// The variable that keeps them, in words; empty if unknown.
    pub kept_in: String,
    pub bytes_per_step: u64,
}

impl StepGrowth {
    /// The growth of a run: on its fullest card if memory was recorded, else of the peaks of its steps.
    pub fn of(run: &Run) -> Option<Self> {
        let Some(ledger) = run.memory.recording().and_then(CardLedger::of_fullest) else {
            return growth_per_step(&run.findings.processes).map(|bytes_per_step| Self {
                bytes_per_step,
                peak_bytes_per_step: bytes_per_step,
                line: None,
            });
        };
        let mut processes = run.findings.processes.iter();
        let has_short_passes = processes.any(|process| {
            let coverage = process.coverage.as_ref();
            coverage.is_some_and(|coverage| coverage.is_training_shortened)
        });
        let longest = match has_short_passes {
            true => LONGEST_PERIOD_IN_SHORT_PASSES,
            false => usize::MAX,
        };
        let growth = ledger.growth();
        let sources: Vec<&GrowthSource> = growth
            .sources
            .iter()
            .filter(|source| source.period <= longest)
            .collect();
        let first = sources.first()?;
        let sum = |rate: fn(&GrowthSource) -> u64| {
            let rates = sources.iter().map(|source| rate(source));
            rates.fold(0, u64::saturating_add)
        };
        Some(Self {
            bytes_per_step: sum(|source| source.bytes_per_step),
            peak_bytes_per_step: sum(GrowthSource::peak_bytes_per_step),
            line: Some(KeepingLine {
                place: first.label.clone(),
                kept_in: first.kept_in.clone(),
                bytes_per_step: first.bytes_per_step,
            }),
        })
    }
}

/// By how many bytes per step peak allocated memory grew, if it kept growing to the end.
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

fn growth_of(peaks: &[u64]) -> Option<u64> {
    if peaks.len() < FEWEST_STEPS {
        return None;
    }
    let rise = lasting_rise(peaks)?;
    Some((peaks[rise.to] - peaks[rise.from]) / (rise.to - rise.from).max(1) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rises_to_the_end_grows_and_what_settles_does_not() {
        let cases: [(Vec<u64>, Option<u64>); 6] = [
            ((0..20).map(|step| 100 + 5 * step).collect(), Some(5)),
            // A smaller batch does not raise the peak, so one step shows no growth.
            (vec![10, 20, 30, 40, 40, 60, 70, 80, 90], Some(10)),
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

//! How much of the peak depends on assumed sizes.
//!
//! A size that depends on values on the card is assumed to be the largest possible. To see how much memory that
//! assumption accounts for, the job is rehearsed once more with half of each assumed size.

use ghostgpu_recording::AssumedSizes;
use ghostgpu_rehearse::{Change, Completion, Purpose, Rehearsal, Rehearse, Run, Stop};

/// The peak with full and with half assumed sizes; `None` if `run` assumed no sizes, or if there is nothing to compare.
///
/// `allocated_bytes` is the job's peak as it is, from `run` or from a rehearsal with enough memory.
pub fn assumed_sizes(
    runner: &mut dyn Rehearse,
    run: &Run,
    allocated_bytes: Option<u64>,
) -> Result<Option<AssumedSizes>, Stop> {
    let processes = &run.findings.processes;
    let lines = processes.iter().map(|process| process.assumed_sizes).sum();
    let Some(allocated_bytes) = allocated_bytes.filter(|_| lines > 0) else {
        return Ok(None);
    };
    let changes = vec![Change::HalfOfAssumedSizes, Change::UnlimitedMemory];
    let rehearsal = Rehearsal::figures(Purpose::AssumedSizes, changes);
    let half = Run::even_if_timed_out(runner.rehearse(&rehearsal))?;
    // A script may fail with smaller sizes than the largest; then there is nothing to compare.
    let is_whole = half.completion() == Completion::Completed;
    let half_bytes = half.findings.peak_allocated_bytes();
    Ok(half_bytes
        .filter(|_| is_whole)
        .map(|half_allocated_bytes| AssumedSizes {
            lines,
            allocated_bytes,
            half_allocated_bytes,
        }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_runner::{FakeRunner, fits};

    fn assuming(lines: u64, allocated_bytes: u64) -> Run {
        let mut run = fits(allocated_bytes).expect("a run");
        run.findings.processes[0].assumed_sizes = lines;
        run
    }

    #[test]
    fn a_job_without_assumed_sizes_is_not_rehearsed_again() {
        let mut runner = FakeRunner::new(|_| fits(1));
        let found = assumed_sizes(&mut runner, &assuming(0, 100), Some(100));
        assert_eq!(found.expect("no stop"), None);
        assert!(runner.seen.is_empty());
    }

    #[test]
    fn a_rehearsal_with_half_the_sizes_shows_how_much_memory_depends_on_them() {
        let mut runner = FakeRunner::new(|rehearsal| {
            assert!(rehearsal.changes.contains(&Change::HalfOfAssumedSizes));
            Ok(assuming(2, 70))
        });
        let found = assumed_sizes(&mut runner, &assuming(2, 100), Some(100));
        let expected = AssumedSizes {
            lines: 2,
            allocated_bytes: 100,
            half_allocated_bytes: 70,
        };
        assert_eq!(found.expect("no stop"), Some(expected));
        let unknown = assumed_sizes(&mut runner, &assuming(2, 100), None);
        assert_eq!(unknown.expect("no stop"), None);
    }
}

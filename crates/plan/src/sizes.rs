//! Rehearsals with other sizes at one size point: in forks where forking is sound, else in whole runs.

use ghostgpu_rehearse::{
    Change, Dimension, Held, Purpose, Rehearsal, Rehearse, Run, Runner, SizePoint, SizePointReport,
    Sizes, Stop,
};

/// Rehearses sizes at one point, one after the other.
pub struct AtPoint<'a> {
    rehearse: &'a mut dyn Rehearse,
    point: &'a SizePoint,
    /// Changes in addition to the sizes; empty for forks, which already have them.
    changes: &'a [Change],
    count: usize,
}

impl AtPoint<'_> {
    /// A run with these sizes. One that reached its time limit counts as a run, not as a stop.
    pub fn rehearse(&mut self, dimension: Dimension, sizes: Sizes) -> Result<Run, Stop> {
        self.count += 1;
        let size = match dimension {
            Dimension::Batch => sizes.batch,
            Dimension::Sequence => sizes.sequence,
        };
        let purpose = match size {
            Some(size) => Purpose::Size {
                dimension,
                size,
                count: self.count,
            },
            None => Purpose::AsItIs,
        };
        let mut changes = vec![Change::Sizes {
            point: self.point.clone(),
            sizes,
        }];
        changes.extend_from_slice(self.changes);
        let rehearsal = Rehearsal::figures(purpose, changes);
        Run::even_if_timed_out(self.rehearse.rehearse(&rehearsal))
    }
}

/// Whether a size point was reached.
pub enum Reached<T> {
    Done(T),
    /// The script ended before it reached the point.
    NotThere {
        seen: Box<SizePointReport>,
        run: Box<Run>,
    },
}

/// Lets `work` rehearse sizes at `point`, with `changes` in addition.
///
/// If the script can be forked at the point, `work` gets the agent's report about it. If forking is not sound or
/// breaks down, `work` is called with `None` and rehearses in whole runs.
pub fn at_point<T>(
    runner: &mut dyn Runner,
    point: &SizePoint,
    changes: &[Change],
    mut work: impl FnMut(&mut AtPoint, Option<&SizePointReport>) -> Result<T, Stop>,
) -> Result<Reached<T>, Stop> {
    match runner.hold_at(point, changes) {
        Ok(Held::Waiting { seen, mut forks }) => {
            let mut at = AtPoint {
                rehearse: &mut *forks,
                point,
                changes: &[],
                count: 0,
            };
            match work(&mut at, Some(&seen)) {
                // The forks share one time limit; whole runs have one each.
                Err(Stop::Failed(_) | Stop::TimedOut(_)) => {}
                result => return result.map(Reached::Done),
            }
        }
        Ok(Held::Ended { seen, .. }) if seen.unforkable.is_some() => {}
        Ok(Held::Ended { seen, run }) => {
            let seen = Box::new(seen);
            return Ok(Reached::NotThere { seen, run });
        }
        Err(Stop::TimedOut(run)) => {
            let seen = Box::new(run.size_point().cloned().unwrap_or_default());
            return Ok(Reached::NotThere { seen, run });
        }
        Err(stop) => return Err(stop),
    }
    by_runs(runner, point, changes, |at| work(at, None)).map(Reached::Done)
}

/// Lets `work` rehearse sizes at `point` in whole runs.
pub fn by_runs<T>(
    runner: &mut dyn Runner,
    point: &SizePoint,
    changes: &[Change],
    work: impl FnOnce(&mut AtPoint) -> Result<T, Stop>,
) -> Result<T, Stop> {
    work(&mut AtPoint {
        rehearse: runner,
        point,
        changes,
        count: 0,
    })
}

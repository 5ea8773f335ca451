//! Searches in whole runs: the script is started anew for every batch.

use std::ops::ControlFlow;

use ghostgpu_rehearse::{Change, Completion, Run, Runner, SizePoint, SizePointReport, Stop};

use super::Goal;
use super::forked::{Forked, never_there};
use super::result::{LargestBatch, NotFound, WholeBecause, found, nothing_found};
use super::two_stages::{BatchRunner, rehearsal, search};

pub fn by_runs(
    runner: &mut dyn Runner,
    goal: &Goal,
    point: &SizePoint,
    because: WholeBecause,
    own: Option<u64>,
) -> Result<LargestBatch, Stop> {
    let start = own.or(goal.given).unwrap_or(1);
    let mut runner = WholeBatches {
        runner,
        point,
        card: goal.card(),
        seen: None,
        largest: None,
        last_lines: Vec::new(),
    };
    let stage = match search(goal, start, None, false, &mut runner)? {
        ControlFlow::Break(over) => return Ok(over),
        ControlFlow::Continue(searched) => searched.stage,
    };
    let WholeBatches {
        seen,
        largest,
        last_lines,
        ..
    } = runner;
    if let Some(reason) = nothing_found(&stage.search, last_lines) {
        return Ok(LargestBatch::NotFound(reason));
    }
    let mut found = found(stage, point, seen.unwrap_or_default(), Some(because));
    found.run = largest.filter(|run| run.0 == found.batch).map(|run| run.1);
    Ok(LargestBatch::Found(Box::new(found)))
}

struct WholeBatches<'a> {
    runner: &'a mut dyn Runner,
    point: &'a SizePoint,
    card: Vec<Change>,
    /// The agent's report about the size point, once the script has reached it.
    seen: Option<SizePointReport>,
    /// The largest batch that fits with the job's own extent, and its run.
    largest: Option<(u64, Run)>,
    /// Of the last run that failed.
    last_lines: Vec<String>,
}

impl BatchRunner for WholeBatches<'_> {
    fn rehearse_batch(
        &mut self,
        batch: u64,
        steps: Option<u64>,
        count: usize,
    ) -> Result<ControlFlow<LargestBatch, Run>, Stop> {
        let rehearsal = rehearsal(self.point, batch, steps, &self.card, count);
        let run = self.runner.rehearse(&rehearsal)?;
        if !matches!(self.point, SizePoint::Option(_)) && self.seen.is_none() {
            // A run that ended before the point says nothing about the batch.
            let report = run.size_point().cloned().unwrap_or_default();
            match report.is_found {
                true => self.seen = Some(report),
                false if run.completion() == Completion::OutOfMemory => {}
                false => {
                    return Ok(ControlFlow::Break(
                        match never_there(self.point, run, report) {
                            Forked::Over(result) => result,
                            _ => LargestBatch::NotFound(NotFound::NoLoader {
                                options: Vec::new(),
                            }),
                        },
                    ));
                }
            }
        }
        Ok(ControlFlow::Continue(run))
    }

    fn keep(&mut self, batch: u64, steps: Option<u64>, run: Run) {
        match run.completion() {
            Completion::Completed => {
                if steps.is_none() && self.largest.as_ref().is_none_or(|fit| fit.0 < batch) {
                    self.largest = Some((batch, run));
                }
            }
            Completion::OutOfMemory => {}
            _ => self.last_lines = run.last_lines,
        }
    }
}

//! Searches in forks of a script that waits where the batch is set.

use std::ops::ControlFlow;

use ghostgpu_rehearse::{
    Completion, Held, Outcome, Rehearse, Run, Runner, SizePoint, SizePointReport, Stop,
};

use super::Goal;
use super::result::{LargestBatch, NotFound, WholeBecause, found, nothing_found};
use super::search::Search;
use super::stage::Stage;
use super::two_stages::{BatchRunner, Searched, rehearsal, search};

/// The result of searching in forks.
pub enum Forked {
    Over(LargestBatch),
    /// Whole runs are necessary, for this reason; with the script's own batch, if known.
    Whole(WholeBecause, Option<u64>),
    OnlyOtherLoaders,
}

pub fn forked(runner: &mut dyn Runner, goal: &Goal, point: &SizePoint) -> Result<Forked, Stop> {
    let (seen, mut forks) = match runner.hold_at(point, &goal.card())? {
        Held::Waiting { seen, forks } => (seen, forks),
        Held::Ended { seen, run } => return Ok(never_there(point, *run, seen)),
    };
    let stage = match search_forks(&mut *forks, goal, point, &seen) {
        // The connection to the forks broke, but whole runs may work.
        Err(Stop::Failed(failure)) => {
            let because = WholeBecause::ForkingFailed(failure.to_string());
            return Ok(Forked::Whole(because, seen.batch));
        }
        Ok(ControlFlow::Break(over)) => return Ok(Forked::Over(over)),
        Ok(ControlFlow::Continue(stage)) => stage,
        Err(stop) => return Err(stop),
    };
    Ok(match nothing_found(&stage.search, Vec::new()) {
        Some(NotFound::Fails { reason, .. }) => {
            Forked::Whole(WholeBecause::ForkFails(reason), seen.batch)
        }
        Some(reason) => Forked::Over(LargestBatch::NotFound(reason)),
        None => Forked::Over(LargestBatch::Found(Box::new(found(
            stage, point, seen, None,
        )))),
    })
}

struct ForkedBatches<'a> {
    forks: &'a mut dyn Rehearse,
    point: &'a SizePoint,
}

impl BatchRunner for ForkedBatches<'_> {
    fn rehearse_batch(
        &mut self,
        batch: u64,
        steps: Option<u64>,
        count: usize,
    ) -> Result<ControlFlow<LargestBatch, Run>, Stop> {
        // A fork inherits the card of its script.
        let rehearsal = rehearsal(self.point, batch, steps, &[], count);
        Ok(ControlFlow::Continue(self.forks.rehearse(&rehearsal)?))
    }
}

fn search_forks(
    forks: &mut dyn Rehearse,
    goal: &Goal,
    point: &SizePoint,
    seen: &SizePointReport,
) -> Result<ControlFlow<LargestBatch, Stage>, Stop> {
    // A fork made where the arguments are read still has to build the model, which takes a second or more.
    let is_cheap = !matches!(point, SizePoint::Option(_));
    let mut runner = ForkedBatches { forks, point };
    let start = seen.batch.unwrap_or(1);
    let searched = search(goal, start, seen.samples, is_cheap, &mut runner)?;
    let Searched { mut stage, count } = match searched {
        ControlFlow::Break(over) => return Ok(ControlFlow::Break(over)),
        ControlFlow::Continue(searched) => searched,
    };
    let sizes = sizes_for_growth(&stage.search).into_iter();
    for (number, batch) in sizes.filter(|_| is_cheap).enumerate() {
        if let ControlFlow::Continue(run) =
            runner.rehearse_batch(batch, None, count + number + 1)?
        {
            stage.note(batch, &run);
        }
    }
    Ok(ControlFlow::Continue(stage))
}

/// Smaller batches that show how memory grows.
fn sizes_for_growth(search: &Search) -> Vec<u64> {
    let Some(largest) = search.largest() else {
        return Vec::new();
    };
    let mut sizes = vec![largest / 4, largest / 2];
    sizes.retain(|size| *size > 0 && *size < largest && !search.outcomes().contains_key(size));
    sizes.dedup();
    sizes
}

/// What follows if the script ended, or cannot be forked, before any batch could be rehearsed.
pub fn never_there(point: &SizePoint, run: Run, seen: SizePointReport) -> Forked {
    if let Some(because) = seen.unforkable {
        return Forked::Whole(WholeBecause::Unforkable(because), seen.batch);
    }
    let over = |reason| Forked::Over(LargestBatch::NotFound(reason));
    if let Some(problem) = seen.problem {
        return over(NotFound::NotSettable {
            problem,
            options: seen.batch_options,
        });
    }
    let completion = run.completion();
    if completion == Completion::OutOfMemory {
        return over(NotFound::DoesNotFit(Box::new(run)));
    }
    if let (SizePoint::Option(option), false) = (point, seen.similar_options.is_empty()) {
        return over(NotFound::NoOption {
            option: option.clone(),
            similar: seen.similar_options,
        });
    }
    if let Outcome::Fails { reason, code } = Outcome::of(&run) {
        return over(NotFound::Fails {
            batch: None,
            reason,
            code,
            last_lines: run.last_lines,
        });
    }
    match point {
        SizePoint::Option(_) => Forked::Whole(WholeBecause::NotArgparse, None),
        SizePoint::TrainingLoader if seen.has_other_loader => Forked::OnlyOtherLoaders,
        _ => over(NotFound::NoLoader {
            options: seen.batch_options,
        }),
    }
}

//! Searches in two stages: with the first steps only, then with the job's own extent.

use std::ops::ControlFlow;

use ghostgpu_rehearse::{Change, Dimension, Outcome, Purpose, Rehearsal, Run, SizePoint, Stop};

use super::result::{LargestBatch, NotFound};
use super::search::Search;
use super::stage::Stage;
use super::{Goal, with_batch};

/// The result of both stages of a search.
pub struct Searched {
    /// The stage with the job's own extent.
    pub stage: Stage,
    /// How many rehearsals there were.
    pub count: usize,
}

/// How a batch is rehearsed: in a fork, or in a whole run.
pub trait BatchRunner {
    /// Rehearses `batch` with at most `steps` steps, or with the job's own extent. `count` numbers the rehearsals.
    /// Breaks with an answer if the search cannot go on.
    fn rehearse_batch(
        &mut self,
        batch: u64,
        steps: Option<u64>,
        count: usize,
    ) -> Result<ControlFlow<LargestBatch, Run>, Stop>;

    /// Is given each run after it has been evaluated.
    fn keep(&mut self, _batch: u64, _steps: Option<u64>, _run: Run) {}
}

/// Searches in two stages: with the first steps only, then, from that answer downwards, with the job's own extent.
///
/// A batch that runs out of memory in its first steps needs no longer rehearsal. So only batches whose first steps fit
/// are rehearsed in full, beginning with the largest. In the end, the answer was rehearsed in full, and the next larger
/// batch was too, or ran out of memory in its first steps.
pub fn search(
    goal: &Goal,
    start: u64,
    samples: Option<u64>,
    is_cheap: bool,
    runner: &mut dyn BatchRunner,
) -> Result<ControlFlow<LargestBatch, Searched>, Stop> {
    let further = |search: Search| match is_cheap {
        true => search,
        false => search.without_looking_further(),
    };
    let mut count = 0;
    let mut first = Stage::new(further(goal.search(start)), samples);
    let over = rehearse_stage(&mut first, goal, goal.first_steps, &mut count, runner)?;
    if let ControlFlow::Break(over) = over {
        return Ok(ControlFlow::Break(over));
    }
    let Some(largest) = first
        .search
        .largest()
        .filter(|_| goal.first_steps.is_some())
    else {
        let stage = first;
        return Ok(ControlFlow::Continue(Searched { stage, count }));
    };
    let close = goal.search(largest).starting_close_above();
    let mut stage = Stage::new(close, first.all_samples);
    stage.same_from = first.same_from;
    stage.has_stepped = first.has_stepped;
    if let Some(same) = stage.same_from {
        stage.search.limit(same);
    }
    for (&size, outcome) in first.search.outcomes() {
        if matches!(outcome, Outcome::DoesNotFit(_)) {
            stage.search.note(size, outcome.clone());
        }
    }
    let over = rehearse_stage(&mut stage, goal, None, &mut count, runner)?;
    Ok(match over {
        ControlFlow::Break(over) => ControlFlow::Break(over),
        ControlFlow::Continue(()) => ControlFlow::Continue(Searched { stage, count }),
    })
}

/// Rehearses the sizes that a stage asks for until it has its answer.
fn rehearse_stage(
    stage: &mut Stage,
    goal: &Goal,
    steps: Option<u64>,
    count: &mut usize,
    runner: &mut dyn BatchRunner,
) -> Result<ControlFlow<LargestBatch>, Stop> {
    loop {
        if let Some((smaller, larger)) = stage.without_effect() {
            return Ok(ControlFlow::Break(LargestBatch::NotFound(
                NotFound::NoEffect {
                    point: goal.point.clone(),
                    smaller,
                    larger,
                },
            )));
        }
        let Some(batch) = stage.search.next() else {
            return Ok(ControlFlow::Continue(()));
        };
        *count += 1;
        match runner.rehearse_batch(batch, steps, *count)? {
            ControlFlow::Break(over) => return Ok(ControlFlow::Break(over)),
            ControlFlow::Continue(run) => {
                stage.note(batch, &run);
                runner.keep(batch, steps, run);
            }
        }
    }
}

/// One rehearsal of a search.
pub fn rehearsal(
    point: &SizePoint,
    batch: u64,
    steps: Option<u64>,
    card: &[Change],
    count: usize,
) -> Rehearsal {
    let purpose = Purpose::Size {
        dimension: Dimension::Batch,
        size: batch,
        count,
    };
    let mut changes = vec![with_batch(point, batch)];
    changes.extend(steps.map(Change::Steps));
    changes.extend_from_slice(card);
    Rehearsal::figures(purpose, changes)
}

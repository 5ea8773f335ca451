//! The largest batch that fits: searched in forks, or else in whole runs.

mod search;
mod stage;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use ghostgpu_rehearse::{
    Change, Completion, Dimension, Held, OutOfMemory, Outcome, Purpose, Reason, Records, Rehearsal,
    Rehearse, Run, Runner, SizePoint, SizePointReport, Sizes, Stop,
};
use serde::Serialize;

use crate::need::flushes;
use crate::placement::TightRun;

use search::Search;
use stage::Stage;

/// What to search for, and where.
#[derive(Clone, Debug)]
pub struct Goal {
    /// Where the batch is set.
    pub point: SizePoint,
    /// The batch that the script's command line sets there, if any.
    pub given: Option<u64>,
    pub at_most: Option<u64>,
    /// Why the script must be started anew for each batch; `None` lets it be forked where that is sound.
    pub whole_because: Option<WholeBecause>,
    /// The card's memory.
    pub capacity_bytes: u64,
    /// How much of it must stay free.
    pub margin_bytes: u64,
    /// The number of steps of the first stage of the search; `None` if the job's own extent is no longer than that.
    pub first_steps: Option<u64>,
}

/// The result of a search.
#[derive(Debug)]
pub enum LargestBatch {
    Found(Box<Found>),
    NotFound(NotFound),
}

/// The largest batch that fits, and what was seen on the way.
#[derive(Debug)]
pub struct Found {
    pub batch: u64,
    pub point: SizePoint,
    pub seen: SizePointReport,
    /// The outcome of every batch that was rehearsed with the job's own extent, or that ran out of memory in the first
    /// steps.
    pub outcomes: BTreeMap<u64, Outcome>,
    /// The batch that contains all samples of the data.
    pub samples: Option<u64>,
    /// Why a part of the training was not rehearsed with this batch.
    pub not_reached: Option<String>,
    /// The script does the same with every larger batch, because there is no more data.
    pub is_all_there_is: bool,
    /// A smaller batch that does not fit.
    pub gap: Option<u64>,
    /// The larger batch that was found first, if it fits only for some placements of segments by the driver.
    pub lowered_from: Option<u64>,
    /// Why the script was started anew for every batch.
    pub whole_because: Option<WholeBecause>,
    /// The run with this batch, if it was a whole run.
    run: Option<Run>,
}

/// Why rehearsals were whole runs instead of forks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WholeBecause {
    /// The user asked for whole runs.
    Asked,
    /// Ranks meet as the processes of one run; forks of them could not meet.
    SeveralCards,
    /// The agent says why a fork at that point would not be sound.
    Unforkable(String),
    /// The script fails in a fork, for example because forks share its open files.
    ForkFails(Reason),
    /// Forking itself did not work.
    ForkingFailed(String),
    /// The script does not read its arguments with `argparse`.
    NotArgparse,
}

/// Why there is no largest batch.
#[derive(Debug)]
pub enum NotFound {
    /// No `DataLoader` was iterated. `options` are the script's options that look as if they set a batch.
    NoLoader { options: Vec<String> },
    /// The agent says why the batch cannot be set at this point.
    NotSettable {
        problem: String,
        options: Vec<String>,
    },
    NoOption {
        option: String,
        similar: Vec<String>,
    },
    /// Even the smallest batch does not fit: 1, or 2 if the script fails with 1.
    NotEvenOne { batch: u64, place: OutOfMemory },
    /// The script does exactly the same with two sizes, so the option does not set the batch.
    NoEffect {
        point: SizePoint,
        smaller: u64,
        larger: u64,
    },
    /// It runs out of memory before the first batch.
    DoesNotFit(Box<Run>),
    Fails {
        batch: Option<u64>,
        reason: Reason,
        code: u8,
        last_lines: Vec<String>,
    },
}

/// How a whole run with the batch that was found compares with the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confirmation {
    /// It has the same figures as the fork, to the byte.
    Equal,
    /// It fits too, with other figures.
    FitsDifferently,
    /// It fits, but the search had not tried this batch.
    NotCompared,
    /// It does not fit, or fails.
    Contradicts,
    /// The search was made of whole runs.
    FoundByRuns,
}

pub fn find(runner: &mut dyn Runner, goal: &Goal) -> Result<LargestBatch, Stop> {
    if let Some(because) = goal.whole_because.clone() {
        return by_runs(runner, goal, &goal.point, because, None);
    }
    let mut point = goal.point.clone();
    loop {
        match forked(runner, goal, &point)? {
            Forked::Over(result) => return Ok(result),
            Forked::Whole(because, own) => return by_runs(runner, goal, &point, because, own),
            // Evaluation or inference: no loader is iterated with gradients enabled.
            Forked::OnlyOtherLoaders => point = SizePoint::FirstLoader,
        }
    }
}

/// Confirms the batch that was found with a whole run. A batch that was found by whole runs counts as confirmed if
/// PyTorch never flushed its cache.
///
/// Whether a batch barely fits may depend on where the driver places segments, which differs between machines. If so,
/// `found` is lowered to a slightly smaller batch.
pub fn confirm(
    runner: &mut dyn Rehearse,
    goal: &Goal,
    found: &mut Found,
) -> Result<(Confirmation, Run), Stop> {
    if let Some(run) = found.run.take_if(|run| flushes(run) == Some(0)) {
        return Ok((Confirmation::FoundByRuns, run));
    }
    let was_found_by_runs = found.run.take().is_some();
    for _ in 0..LOWERINGS {
        let run = whole_run(runner, goal, found)?;
        let outcome = Outcome::of(&run);
        let is_certain = run.completion() != Completion::Completed
            || ends_elsewhere(&run, goal, found.batch) != Some(false);
        let below = found.batch - (found.batch / LOWERING_PARTS).max(1).min(found.batch);
        if !is_certain && below > 0 {
            found.lowered_from.get_or_insert(found.batch);
            found.outcomes.insert(found.batch, outcome);
            found.batch = below;
            continue;
        }
        let confirmation = match (outcome, found.outcomes.get(&found.batch)) {
            (Outcome::Fits(_), _) if was_found_by_runs => Confirmation::FoundByRuns,
            (Outcome::Fits(whole), Some(Outcome::Fits(fork))) if whole == *fork => {
                Confirmation::Equal
            }
            (Outcome::Fits(_), Some(Outcome::Fits(_))) => Confirmation::FitsDifferently,
            (Outcome::Fits(_), _) => Confirmation::NotCompared,
            _ => Confirmation::Contradicts,
        };
        return Ok((confirmation, run));
    }
    let run = whole_run(runner, goal, found)?;
    let confirmation = match Outcome::of(&run) {
        Outcome::Fits(_) => Confirmation::NotCompared,
        _ => Confirmation::Contradicts,
    };
    Ok((confirmation, run))
}

/// How often a batch that depends on the layout is lowered, each time by one part in `LOWERING_PARTS` of it.
const LOWERINGS: u32 = 4;
const LOWERING_PARTS: u64 = 400;

/// Below this batch, pages of kernel code are not considered: one sample less would be too large a loss.
const FEW_SAMPLES: u64 = 50;

/// A whole run with the batch that was found. A timeout is no stop here: the batch is reported all the same.
fn whole_run(runner: &mut dyn Rehearse, goal: &Goal, found: &Found) -> Result<Run, Stop> {
    let mut changes = vec![with_batch(&found.point, found.batch)];
    changes.extend(goal.card());
    let rehearsal = Rehearsal {
        purpose: Purpose::Confirmation { batch: found.batch },
        changes,
        records: Records::History,
    };
    Run::even_if_timed_out(runner.rehearse(&rehearsal))
}

/// Whether a job that completed on this card would also complete with its segments placed elsewhere; `None` if the
/// placement does not matter, or if that cannot be determined.
fn ends_elsewhere(run: &Run, goal: &Goal, batch: u64) -> Option<bool> {
    let tight = TightRun::of(run, goal.memory_bytes())?;
    let ends_beside_code = || batch < FEW_SAMPLES || tight.ends_beside_code();
    Some(tight.ends_in_other_layouts() && ends_beside_code())
}

impl Goal {
    fn search(&self, start: u64) -> Search {
        // Leaves room to multiply sizes without overflow.
        let most = self.at_most.unwrap_or(u64::MAX >> 8);
        Search::new(start, most, self.memory_bytes())
    }

    /// The memory that a batch must fit into.
    fn memory_bytes(&self) -> u64 {
        self.capacity_bytes.saturating_sub(self.margin_bytes)
    }

    /// The change that reduces the card of every rehearsal by the margin.
    fn card(&self) -> Vec<Change> {
        match self.margin_bytes {
            0 => Vec::new(),
            bytes => vec![Change::LessMemory(bytes)],
        }
    }
}

fn with_batch(point: &SizePoint, batch: u64) -> Change {
    Change::Sizes {
        point: point.clone(),
        sizes: Sizes::batch(batch),
    }
}

/// The result of both stages of a search.
struct Searched {
    /// The stage with the job's own extent.
    stage: Stage,
    /// How many rehearsals there were.
    count: usize,
}

/// How a batch is rehearsed: in a fork, or in a whole run.
trait BatchRunner {
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
fn search(
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

fn rehearsal(
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

/// The result of searching in forks.
enum Forked {
    Over(LargestBatch),
    /// Whole runs are necessary, for this reason; with the script's own batch, if known.
    Whole(WholeBecause, Option<u64>),
    OnlyOtherLoaders,
}

fn forked(runner: &mut dyn Runner, goal: &Goal, point: &SizePoint) -> Result<Forked, Stop> {
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

struct ForkedTries<'a> {
    forks: &'a mut dyn Rehearse,
    point: &'a SizePoint,
}

impl BatchRunner for ForkedTries<'_> {
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
    let mut runner = ForkedTries { forks, point };
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
fn never_there(point: &SizePoint, run: Run, seen: SizePointReport) -> Forked {
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

fn by_runs(
    runner: &mut dyn Runner,
    goal: &Goal,
    point: &SizePoint,
    because: WholeBecause,
    own: Option<u64>,
) -> Result<LargestBatch, Stop> {
    let start = own.or(goal.given).unwrap_or(1);
    let mut runner = WholeTries {
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
    let WholeTries {
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

struct WholeTries<'a> {
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

impl BatchRunner for WholeTries<'_> {
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

/// Why a finished search found no batch; `None` if it found one.
fn nothing_found(search: &Search, last_lines: Vec<String>) -> Option<NotFound> {
    if search.largest().is_some() {
        return None;
    }
    // The script may fail with a single sample (batch normalisation); then the answer is that two do not fit.
    let mut smallest = search.outcomes().iter();
    let too_large = smallest
        .clone()
        .take(2)
        .find_map(|(&batch, outcome)| match outcome {
            Outcome::DoesNotFit(place) => Some((batch, place.clone())),
            _ => None,
        });
    if let Some((batch, place)) = too_large.filter(|found| found.0 <= 2) {
        return Some(NotFound::NotEvenOne { batch, place });
    }
    let (&batch, outcome) = smallest.next()?;
    match outcome {
        Outcome::Fails { reason, code } => Some(NotFound::Fails {
            batch: Some(batch),
            reason: reason.clone(),
            code: *code,
            last_lines,
        }),
        _ => None,
    }
}

fn found(
    stage: Stage,
    point: &SizePoint,
    seen: SizePointReport,
    whole_because: Option<WholeBecause>,
) -> Found {
    let batch = stage.search.largest().unwrap_or_default();
    Found {
        batch,
        point: point.clone(),
        gap: stage.search.gap(),
        samples: seen.samples.or(stage.all_samples),
        not_reached: stage.not_reached(batch),
        is_all_there_is: stage.same_from == Some(batch),
        lowered_from: None,
        seen,
        outcomes: stage.search.outcomes().clone(),
        whole_because,
        run: None,
    }
}

#[cfg(test)]
mod tests;

//! The largest batch that fits: searched in forks, or else in whole runs.

mod search;

use std::collections::BTreeMap;

use ghostgpu_rehearse::{
    Change, Completion, Dimension, Held, OutOfMemory, Outcome, Purpose, Reason, Rehearsal,
    Rehearse, Run, Runner, SizePoint, SizePointReport, Sizes, Stop,
};
use serde::Serialize;

use search::Search;

/// What is looked for.
#[derive(Clone, Debug)]
pub struct Goal {
    /// Where the batch is set.
    pub point: SizePoint,
    /// The batch that the command line gives at that point, if it does.
    pub given: Option<u64>,
    pub at_most: Option<u64>,
    /// The script is forked for each batch, where that is sound.
    pub is_forked: bool,
    /// What the card has.
    pub capacity_bytes: u64,
}

/// What a search came to.
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
    /// What every batch that was rehearsed came to.
    pub outcomes: BTreeMap<u64, Outcome>,
    /// A smaller batch that does not fit.
    pub gap: Option<u64>,
    /// Why the script was started anew for every batch.
    pub whole_because: Option<WholeBecause>,
    /// The run with this batch, where it was a whole one.
    run: Option<Run>,
}

/// Why rehearsals were whole runs, and not forks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WholeBecause {
    /// Nobody wanted forks.
    Asked,
    /// The agent says why a fork at that point would not be sound.
    Unforkable(String),
    /// The script fails in a fork: it shares files with its elders.
    ForkFails(Reason),
    /// Forking itself did not work.
    ForkingFailed(String),
    /// The script reads its arguments in a way that is not followed.
    NotArgparse,
}

/// Why there is no largest batch.
#[derive(Debug)]
pub enum NotFound {
    /// No `DataLoader` was iterated; options of the script that look as if they set a batch.
    NoLoader { options: Vec<String> },
    /// The batch cannot be set at this point, as the agent says.
    NotSettable {
        problem: String,
        options: Vec<String>,
    },
    NoOption {
        option: String,
        similar: Vec<String>,
    },
    /// Even the smallest batch does not fit, which is 1, or 2 where the script cannot take 1.
    NotEvenOne { batch: u64, place: OutOfMemory },
    /// It does not fit before there is a batch.
    DoesNotFit(Box<Run>),
    Fails {
        batch: Option<u64>,
        reason: Reason,
        code: u8,
        last_lines: Vec<String>,
    },
}

/// What a whole run with the batch that was found says about the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confirmation {
    /// It has the same figures as the fork, to the byte.
    Equal,
    /// It fits too, with other figures.
    FitsDifferently,
    /// It does not fit, or fails.
    Contradicts,
    /// The search was made of whole runs.
    FoundByRuns,
}

pub fn find(runner: &mut dyn Runner, goal: &Goal) -> Result<LargestBatch, Stop> {
    if !goal.is_forked {
        return by_runs(runner, goal, &goal.point, WholeBecause::Asked, None);
    }
    let mut point = goal.point.clone();
    loop {
        match forked(runner, goal, &point)? {
            Forked::Over(result) => return Ok(result),
            Forked::Whole(because, own) => return by_runs(runner, goal, &point, because, own),
            // Evaluation and inference: nothing is iterated with gradients.
            Forked::OnlyOtherLoaders => point = SizePoint::FirstLoader,
        }
    }
}

/// A whole run with the batch that was found, and what it says about the search. A batch that was found by
/// whole runs has been confirmed.
pub fn confirm(runner: &mut dyn Rehearse, found: &mut Found) -> Result<(Confirmation, Run), Stop> {
    if let Some(run) = found.run.take() {
        return Ok((Confirmation::FoundByRuns, run));
    }
    let purpose = Purpose::Confirmation { batch: found.batch };
    let changes = with_batch(&found.point, found.batch);
    // A batch that was found is told, also where the run that was to confirm it did not end in time.
    let result = runner.rehearse(&Rehearsal::figures(purpose, changes));
    let run = Run::even_if_timed_out(result)?;
    let confirmation = match (Outcome::of(&run), found.outcomes.get(&found.batch)) {
        (Outcome::Fits(whole), Some(Outcome::Fits(fork))) if whole == *fork => Confirmation::Equal,
        (Outcome::Fits(_), _) => Confirmation::FitsDifferently,
        _ => Confirmation::Contradicts,
    };
    Ok((confirmation, run))
}

impl Goal {
    fn search(&self, own: Option<u64>, samples: Option<u64>) -> Search {
        let most = self.at_most.unwrap_or(u64::MAX >> 8);
        let most = most.min(samples.unwrap_or(u64::MAX));
        Search::new(own.unwrap_or(1), most, self.capacity_bytes)
    }
}

fn with_batch(point: &SizePoint, batch: u64) -> Vec<Change> {
    vec![Change::Sizes {
        point: point.clone(),
        sizes: Sizes::batch(batch),
    }]
}

fn rehearsal(point: &SizePoint, batch: u64, count: usize) -> Rehearsal {
    let purpose = Purpose::Size {
        dimension: Dimension::Batch,
        size: batch,
        count,
    };
    Rehearsal::figures(purpose, with_batch(point, batch))
}

/// What forking led to.
enum Forked {
    Over(LargestBatch),
    /// It cannot be done, for this reason; the script's own batch, as far as known.
    Whole(WholeBecause, Option<u64>),
    OnlyOtherLoaders,
}

fn forked(runner: &mut dyn Runner, goal: &Goal, point: &SizePoint) -> Result<Forked, Stop> {
    let (seen, mut forks) = match runner.hold_at(point, &[])? {
        Held::Waiting { seen, forks } => (seen, forks),
        Held::Ended { seen, run } => return Ok(never_there(point, *run, seen)),
    };
    let search = match search_forks(&mut *forks, goal, point, &seen) {
        // The line to the forks broke: whole runs may work.
        Err(Stop::Failed(failure)) => {
            let because = WholeBecause::ForkingFailed(failure.to_string());
            return Ok(Forked::Whole(because, seen.batch));
        }
        search => search?,
    };
    Ok(match nothing_found(&search, Vec::new()) {
        Some(NotFound::Fails { reason, .. }) => {
            Forked::Whole(WholeBecause::ForkFails(reason), seen.batch)
        }
        Some(reason) => Forked::Over(LargestBatch::NotFound(reason)),
        None => Forked::Over(LargestBatch::Found(Box::new(found(
            search, point, seen, None,
        )))),
    })
}

fn search_forks(
    forks: &mut dyn Rehearse,
    goal: &Goal,
    point: &SizePoint,
    seen: &SizePointReport,
) -> Result<Search, Stop> {
    let mut search = goal.search(seen.batch, seen.samples);
    // A fork made where the arguments are read builds the model, which takes a second or more.
    let is_cheap = !matches!(point, SizePoint::Option(_));
    if !is_cheap {
        search = search.without_looking_further();
    }
    let mut look_at = |search: &mut Search, batch| {
        let rehearsal = rehearsal(point, batch, search.outcomes().len() + 1);
        let outcome = Outcome::of(&forks.rehearse(&rehearsal)?);
        search.note(batch, outcome);
        Ok::<(), Stop>(())
    };
    while let Some(batch) = search.next() {
        look_at(&mut search, batch)?;
    }
    for batch in sizes_for_growth(&search).into_iter().filter(|_| is_cheap) {
        look_at(&mut search, batch)?;
    }
    Ok(search)
}

/// Smaller batches that show how memory grows; each costs a second or so.
fn sizes_for_growth(search: &Search) -> Vec<u64> {
    let Some(largest) = search.largest() else {
        return Vec::new();
    };
    let mut sizes = vec![1, largest / 4, largest / 2];
    sizes.retain(|size| *size > 0 && *size < largest && !search.outcomes().contains_key(size));
    sizes.dedup();
    sizes
}

/// The script has ended, or cannot be forked, before any batch could be rehearsed.
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
    let mut search = goal
        .search(own.or(goal.given), None)
        .without_looking_further();
    let mut seen: Option<SizePointReport> = None;
    let mut largest: Option<(u64, Run)> = None;
    let mut last_lines = Vec::new();
    while let Some(batch) = search.next() {
        let run = runner.rehearse(&rehearsal(point, batch, search.outcomes().len() + 1))?;
        let outcome = Outcome::of(&run);
        if !matches!(point, SizePoint::Option(_)) && seen.is_none() {
            // Before the point is reached, nothing about the batch is known.
            let report = run.size_point().cloned().unwrap_or_default();
            match report.is_found {
                true => {
                    search = limited(search, goal, &report);
                    seen = Some(report);
                }
                false if matches!(outcome, Outcome::DoesNotFit(_)) => {}
                false => {
                    return Ok(match never_there(point, run, report) {
                        Forked::Over(result) => result,
                        _ => LargestBatch::NotFound(NotFound::NoLoader {
                            options: Vec::new(),
                        }),
                    });
                }
            }
        }
        match outcome {
            Outcome::Fits(_) if largest.as_ref().is_none_or(|fit| fit.0 < batch) => {
                largest = Some((batch, run));
            }
            Outcome::Fails { .. } => last_lines = run.last_lines,
            _ => {}
        }
        search.note(batch, outcome);
    }
    if let Some(reason) = nothing_found(&search, last_lines) {
        return Ok(LargestBatch::NotFound(reason));
    }
    let mut found = found(search, point, seen.unwrap_or_default(), Some(because));
    found.run = largest.map(|(_, run)| run);
    Ok(LargestBatch::Found(Box::new(found)))
}

/// The search again, from when the size of the data is known.
fn limited(search: Search, goal: &Goal, seen: &SizePointReport) -> Search {
    let mut limited = goal
        .search(seen.batch, seen.samples)
        .without_looking_further();
    for (&size, outcome) in search.outcomes() {
        limited.note(size, outcome.clone());
    }
    limited
}

/// Why a search that is over found nothing.
fn nothing_found(search: &Search, last_lines: Vec<String>) -> Option<NotFound> {
    if search.largest().is_some() {
        return None;
    }
    // One sample alone may be too few for the script: then two that do not fit are the answer.
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
    search: Search,
    point: &SizePoint,
    seen: SizePointReport,
    whole_because: Option<WholeBecause>,
) -> Found {
    Found {
        batch: search.largest().unwrap_or_default(),
        point: point.clone(),
        gap: search.gap(),
        seen,
        outcomes: search.outcomes().clone(),
        whole_because,
        run: None,
    }
}

#[cfg(test)]
mod tests;

//! Rehearses a job at other sizes.

use ghostgpu_rehearse::{
    Change, Dimension, Outcome, Run, Runner, SizePoint, SizePointReport, Sizes, Stop, present_value,
};

use super::sequence::{cut_lengths, lengths_of};
use super::{Goal, NoSeries, Scaling, SequencePoint, Series, SetThrough, around};
use crate::sizes::{AtPoint, Reached, at_point, by_runs};

/// Measures how memory grows with the batch and with the sequence.
pub fn measure(runner: &mut dyn Runner, goal: &Goal) -> Result<Scaling, Stop> {
    let cuts = goal.sequence == SequencePoint::InBatches;
    let found = at(runner, goal, &goal.batch, cuts)?;
    let sequence = match (&goal.sequence, found.sequence) {
        (SequencePoint::Argument(option), _) => {
            let point = SizePoint::Option(option.clone());
            at(runner, goal, &point, false)?.first
        }
        (_, Some(sequence)) => sequence,
        (SequencePoint::InBatches, None) => Series::Unknown(NoSeries::NothingSetsSequence),
        (SequencePoint::Own, None) => Series::Unknown(NoSeries::NoSequences),
    };
    Ok(Scaling {
        batch: found.first,
        sequence,
    })
}

/// What was measured at one size point.
struct Found {
    /// The series of the size that is set there.
    first: Series,
    /// The series of sequence lengths, if the same point sets them.
    sequence: Option<Series>,
}

impl Found {
    fn unknown(because: NoSeries) -> Self {
        Self {
            first: Series::Unknown(because),
            sequence: None,
        }
    }
}

fn at(runner: &mut dyn Runner, goal: &Goal, point: &SizePoint, cuts: bool) -> Result<Found, Stop> {
    let unlimited = [Change::UnlimitedMemory];
    let reached = at_point(runner, point, &unlimited, |at, seen| match seen {
        Some(seen) => found_with(at, point, seen, cuts),
        None => found_by_runs(at, goal, point, cuts),
    })?;
    let (seen, run) = match reached {
        Reached::Done(found) => return Ok(found),
        Reached::NotThere { seen, run } => (seen, run),
    };
    match why_not_there(point, &seen, &run) {
        Some(because) => Ok(Found::unknown(because)),
        None if matches!(point, SizePoint::Option(_)) => by_runs(runner, point, &unlimited, |at| {
            found_by_runs(at, goal, point, cuts)
        }),
        None => at(runner, goal, &SizePoint::FirstLoader, cuts),
    }
}

/// Why the script ended before it reached the point; `None` if another point or whole runs may work.
fn why_not_there(point: &SizePoint, seen: &SizePointReport, run: &Run) -> Option<NoSeries> {
    if let Some(problem) = &seen.problem {
        return Some(NoSeries::Problem(problem.clone()));
    }
    match (Outcome::of(run), point) {
        (_, SizePoint::Option(option)) if !seen.similar_options.is_empty() => {
            Some(NoSeries::NoSuchArgument {
                option: option.clone(),
                similar: seen.similar_options.clone(),
            })
        }
        (Outcome::Fits(_), SizePoint::Option(_)) => None,
        (Outcome::Fits(_), SizePoint::TrainingLoader) if seen.has_other_loader => None,
        (Outcome::Fits(_), _) => Some(NoSeries::NoLoader),
        (Outcome::DoesNotFit(place), _) => Some(NoSeries::OutOfMemory(place)),
        (Outcome::Fails { reason, .. }, _) => Some(NoSeries::Fails(reason)),
    }
}

/// Measures in whole runs, where the script's own size must be found first.
fn found_by_runs(
    at: &mut AtPoint,
    goal: &Goal,
    point: &SizePoint,
    cuts: bool,
) -> Result<Found, Stop> {
    let SizePoint::Option(option) = point else {
        let run = at.rehearse(Dimension::Batch, Sizes::default())?;
        return match run.size_point().filter(|seen| seen.is_found) {
            Some(seen) => found_with(at, point, &seen.clone(), cuts),
            None => Ok(Found::unknown(NoSeries::NoLoader)),
        };
    };
    let Some(own) = present_value(&goal.words, option) else {
        return Ok(Found::unknown(NoSeries::NotArgparse {
            option: option.clone(),
        }));
    };
    let seen = SizePointReport {
        batch: Some(own),
        ..SizePointReport::default()
    };
    found_with(at, point, &seen, cuts)
}

fn found_with(
    at: &mut AtPoint,
    point: &SizePoint,
    seen: &SizePointReport,
    cuts: bool,
) -> Result<Found, Stop> {
    let own = seen.batch.unwrap_or(1);
    let sizes = around(own, seen.samples);
    let first = Series::Measured {
        set_through: match point {
            SizePoint::Option(option) => SetThrough::Argument(option.clone()),
            _ => SetThrough::Place(seen.place.clone()),
        },
        own,
        outcomes: series(at, &sizes, Dimension::Batch)?,
    };
    let sequence = match point {
        SizePoint::Own => lengths_of(at, seen)?,
        SizePoint::Option(_) => None,
        _ if cuts => Some(cut_lengths(at)?),
        _ => None,
    };
    Ok(Found { first, sequence })
}

/// Rehearses each of the sizes.
pub(super) fn series(
    at: &mut AtPoint,
    sizes: &[u64],
    dimension: Dimension,
) -> Result<Vec<(u64, Outcome)>, Stop> {
    let mut outcomes = Vec::new();
    for &size in sizes {
        let sizes = match dimension {
            Dimension::Batch => Sizes::batch(size),
            Dimension::Sequence => Sizes::sequence(size),
        };
        outcomes.push((size, Outcome::of(&at.rehearse(dimension, sizes)?)));
    }
    Ok(outcomes)
}

//! Runs a job at other sizes: in forked copies, or else in whole runs.

use std::path::Path;

use ghostgpu_session::{ProbePlace, ProbeReport};

use super::sequence::{cut_lengths, lengths_of};
use super::{Scaling, SequencePlace, Sizes, Tried, Wish, around};
use crate::judge::Rehearsal;
use crate::probing::Outcome;
use crate::probing::server::{Line, serve};
use crate::probing::whole::{OtherSizes, run_whole};
use crate::probing::words::present_value;
use crate::process::Cause;
use crate::rehearsal::Plan;
use crate::run_dir::temporary_folder;

/// What is known of batch and sequence, or the signal that ended the runs.
pub fn measure(plan: &Plan, wish: &Wish) -> anyhow::Result<Result<Scaling, i32>> {
    let folder = temporary_folder()?;
    let log = folder.path().join("output.txt");
    let cut = wish.sequence == SequencePlace::InBatches;
    let found = match at_place(plan, &wish.batch, cut, &log)? {
        Way::Found(found) => found,
        Way::Interrupted(signal) => return Ok(Err(signal)),
    };
    let sequence = match (&wish.sequence, found.sequence) {
        (SequencePlace::Argument(option), _) => {
            match at_place(plan, &ProbePlace::Option(option.clone()), false, &log)? {
                Way::Found(found) => found.batch,
                Way::Interrupted(signal) => return Ok(Err(signal)),
            }
        }
        (_, Some(sequence)) => sequence,
        (SequencePlace::InBatches, None) => Sizes::unknown(
            "nothing says what sets it: name the script's argument that does, `--seq-arg --max-length`",
        ),
        (SequencePlace::Own, None) => Sizes::unknown("the model takes no sequences"),
    };
    Ok(Ok(Scaling {
        batch: found.batch,
        sequence,
    }))
}

enum Way {
    Found(Box<Found>),
    Interrupted(i32),
}

/// What the sizes at one place came to; the size that is set there is called its batch.
struct Found {
    batch: Sizes,
    /// Lengths, where the same place has them.
    sequence: Option<Sizes>,
}

impl Way {
    fn unknown(because: impl Into<String>) -> Self {
        Self::Found(Box::new(Found {
            batch: Sizes::unknown(because),
            sequence: None,
        }))
    }
}

fn at_place(plan: &Plan, place: &ProbePlace, cut: bool, log: &Path) -> anyhow::Result<Way> {
    let served = serve(plan, place, true, log, &mut |_| {}, |report, line| {
        found_with(place, report, cut, &mut Forked { line })
    })?;
    if let Cause::Interrupted(signal) = served.rehearsal.supervised.cause {
        return Ok(Way::Interrupted(signal));
    }
    match served.result {
        Some(Ok(found)) => Ok(Way::Found(Box::new(found))),
        // Forking failed, or cannot be done: whole runs may work.
        Some(Err(_)) => by_runs(plan, place, cut, log),
        None if served.report.unforkable.is_some() => by_runs(plan, place, cut, log),
        None => not_there(plan, place, cut, log, &served.rehearsal, &served.report),
    }
}

/// The script has ended without coming to the place.
fn not_there(
    plan: &Plan,
    place: &ProbePlace,
    cut: bool,
    log: &Path,
    run: &Rehearsal,
    report: &ProbeReport,
) -> anyhow::Result<Way> {
    if let Some(problem) = &report.problem {
        return Ok(Way::unknown(problem.clone()));
    }
    match (Outcome::of(run), place) {
        (_, ProbePlace::Option(option)) if !report.similar_options.is_empty() => {
            Ok(Way::unknown(format!(
                "the script has no argument `{option}`; it has {}",
                report.similar_options.join(", ")
            )))
        }
        (Outcome::Fits(_), ProbePlace::Option(_)) => by_runs(plan, place, cut, log),
        (Outcome::Fits(_), ProbePlace::TrainingLoader) if report.has_other_loader => {
            at_place(plan, &ProbePlace::FirstLoader, cut, log)
        }
        (Outcome::Fits(_), _) => Ok(Way::unknown(
            "the script goes through no DataLoader: name its argument that sets the batch, `--arg --batch-size`",
        )),
        (Outcome::DoesNotFit(place), _) => Ok(Way::unknown(format!("out of memory {place}"))),
        (Outcome::Fails { because, .. }, _) => Ok(Way::unknown(because)),
    }
}

/// Runs of the job with other sizes.
pub(super) trait Runs {
    fn with(&mut self, sized: OtherSizes) -> anyhow::Result<Rehearsal>;
}

struct Forked<'a> {
    line: &'a mut Line,
}

impl Runs for Forked<'_> {
    fn with(&mut self, sized: OtherSizes) -> anyhow::Result<Rehearsal> {
        self.line.try_sizes(&sized.named())
    }
}

struct Whole<'a> {
    plan: &'a Plan,
    place: &'a ProbePlace,
    log: &'a Path,
}

impl Runs for Whole<'_> {
    fn with(&mut self, sized: OtherSizes) -> anyhow::Result<Rehearsal> {
        run_whole(self.plan, self.place, sized, true, self.log, &mut |_| {})
    }
}

fn by_runs(plan: &Plan, place: &ProbePlace, cut: bool, log: &Path) -> anyhow::Result<Way> {
    let mut runs = Whole { plan, place, log };
    let report = match place {
        ProbePlace::Option(option) => ProbeReport {
            place: format!("the argument {option}"),
            batch: present_value(&plan.words, option),
            ..ProbeReport::default()
        },
        _ => {
            let run = runs.with(OtherSizes::default())?;
            if let Cause::Interrupted(signal) = run.supervised.cause {
                return Ok(Way::Interrupted(signal));
            }
            let mut processes = run.findings.processes.iter();
            match processes.find_map(|process| process.probe.clone().filter(|seen| seen.is_found)) {
                Some(report) => report,
                None => return Ok(Way::unknown("the script goes through no DataLoader")),
            }
        }
    };
    if let (None, ProbePlace::Option(option)) = (report.batch, place) {
        return Ok(Way::unknown(format!(
            "the script does not read `{option}` with argparse, so that its own value is known only \
             if it is given with the script"
        )));
    }
    Ok(Way::Found(Box::new(found_with(
        place, &report, cut, &mut runs,
    )?)))
}

fn found_with(
    place: &ProbePlace,
    report: &ProbeReport,
    cut: bool,
    runs: &mut dyn Runs,
) -> anyhow::Result<Found> {
    let own = report.batch.unwrap_or(1);
    let place_in_words = match place {
        ProbePlace::Option(option) => format!("the argument {option}"),
        _ => report.place.clone(),
    };
    let tried = series(&around(own, report.samples), runs, OtherSizes::batch)?;
    let sequence = match place {
        ProbePlace::Own => lengths_of(report, runs)?,
        ProbePlace::Option(_) => None,
        _ if cut => Some(cut_lengths(runs)?),
        _ => None,
    };
    Ok(Found {
        batch: Sizes::of(place_in_words, own, tried),
        sequence,
    })
}

/// Runs at each of the sizes.
pub(super) fn series(
    sizes: &[u64],
    runs: &mut dyn Runs,
    sized: fn(u64) -> OtherSizes,
) -> anyhow::Result<Vec<Tried>> {
    let mut tried = Vec::new();
    for &size in sizes {
        tried.push(Tried::new(size, &Outcome::of(&runs.with(sized(size))?)));
    }
    Ok(tried)
}

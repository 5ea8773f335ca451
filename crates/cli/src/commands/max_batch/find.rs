//! From a script to the largest batch that fits: in forked copies, or else in whole runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use ghostgpu_session::{ProbePlace, ProbeReport};

use super::progress::Progress;
use super::refusals::Refusal;
use crate::failure::Failure;
use crate::judge::{Rehearsal, Verdict};
use crate::probing::Outcome;
use crate::probing::search::Search;
use crate::probing::server::{Line, serve};
use crate::probing::whole::{OtherSizes, run_whole};
use crate::probing::words::present_value;
use crate::process::Cause;
use crate::rehearsal::Plan;

/// What is looked for, and how.
#[derive(Clone, Debug)]
pub struct Wish {
    pub place: ProbePlace,
    pub at_most: Option<u64>,
    /// The script is forked for each batch, where that can be done.
    pub is_forked: bool,
}

/// The search is over, one way or the other.
pub enum Way {
    Found(Box<Found>),
    Interrupted(i32),
    Refused(Refusal),
}

/// The largest batch that fits, and what was seen on the way.
#[derive(Debug)]
pub struct Found {
    pub batch: u64,
    pub place: ProbePlace,
    pub report: ProbeReport,
    /// Every batch that was tried.
    pub tried: BTreeMap<u64, Outcome>,
    /// A smaller batch that does not fit.
    pub gap: Option<u64>,
    /// Why the script was started anew for every batch.
    pub not_forked: Option<String>,
    /// The run with this batch, where it was a whole one.
    pub last_fit: Option<Rehearsal>,
}

impl Found {
    /// What the place is called in the answer.
    pub fn place_in_words(&self) -> String {
        match &self.place {
            ProbePlace::Option(option) => format!("the argument {option}"),
            _ => self.report.place.clone(),
        }
    }
}

/// What a search among batches needs to know.
struct Bounds {
    at_most: Option<u64>,
    capacity_bytes: u64,
    refusal: fn(&Rehearsal) -> Option<Failure>,
}

impl Bounds {
    fn search(&self, own: Option<u64>, samples: Option<u64>) -> Search {
        let most = self.at_most.unwrap_or(u64::MAX >> 8);
        let most = most.min(samples.unwrap_or(u64::MAX));
        Search::new(own.unwrap_or(1), most, self.capacity_bytes)
    }
}

pub fn find(
    plan: &Plan,
    wish: &Wish,
    refusal: fn(&Rehearsal) -> Option<Failure>,
    log: &Path,
    progress: &mut Progress,
) -> anyhow::Result<Way> {
    let place = &wish.place;
    let bounds = Bounds {
        at_most: wish.at_most,
        capacity_bytes: plan.session.devices[0].total_bytes,
        refusal,
    };
    if !wish.is_forked {
        let because = "because of --no-fork".to_owned();
        return find_by_runs(plan, place, because, None, &bounds, log, progress);
    }
    let way = find_forked(plan, place, &bounds, log, progress)?;
    match way {
        // Evaluation and inference: nothing is gone through with gradients.
        Forked::OnlyOtherLoaders => {
            match find_forked(plan, &ProbePlace::FirstLoader, &bounds, log, progress)? {
                Forked::Way(way) => Ok(way),
                Forked::ByRuns(because, own) => {
                    let place = ProbePlace::FirstLoader;
                    find_by_runs(plan, &place, because, own, &bounds, log, progress)
                }
                Forked::OnlyOtherLoaders => Ok(Way::Refused(Refusal::NoLoader(Vec::new()))),
            }
        }
        Forked::ByRuns(because, own) => {
            find_by_runs(plan, place, because, own, &bounds, log, progress)
        }
        Forked::Way(way) => Ok(way),
    }
}

/// What forking led to.
enum Forked {
    Way(Way),
    /// It cannot be done, for this reason; the script's own batch, as far as known.
    ByRuns(String, Option<u64>),
    OnlyOtherLoaders,
}

fn find_forked(
    plan: &Plan,
    place: &ProbePlace,
    bounds: &Bounds,
    log: &Path,
    progress: &mut Progress,
) -> anyhow::Result<Forked> {
    let shared = Mutex::new(progress);
    let mut tick = |elapsed| {
        // While probes run, they are what is shown.
        if let Ok(mut progress) = shared.try_lock() {
            progress.starting(elapsed);
        }
    };
    let served = serve(plan, place, false, log, &mut tick, |report, line| {
        let mut progress = shared.lock().unwrap_or_else(|lock| lock.into_inner());
        let mut search = bounds.search(report.batch, report.samples);
        // A copy made where the arguments are read builds the model, which takes a second or more.
        let is_cheap = !matches!(place, ProbePlace::Option(_));
        if !is_cheap {
            search = search.without_looking_further();
        }
        while let Some(batch) = search.next() {
            progress.trying(batch, search.tried().len() + 1);
            let outcome = try_batch(line, batch)?;
            search.note(batch, outcome);
        }
        for batch in sizes_for_growth(&search).into_iter().filter(|_| is_cheap) {
            progress.trying(batch, search.tried().len() + 1);
            let outcome = try_batch(line, batch)?;
            search.note(batch, outcome);
        }
        Ok(search)
    })?;
    if let Cause::Interrupted(signal) = served.rehearsal.supervised.cause {
        return Ok(Forked::Way(Way::Interrupted(signal)));
    }
    if let Some(failure) = (bounds.refusal)(&served.rehearsal) {
        return Err(failure.into());
    }
    Ok(match served.result {
        Some(Ok(search)) => match refusal_of(&search) {
            // A copy may fail where a whole run does not: it shares files with its elders.
            Some(Refusal::Fails { because, .. }) => Forked::ByRuns(
                format!("since a forked copy of the script failed: {because}"),
                served.report.batch,
            ),
            Some(refusal) => Forked::Way(Way::Refused(refusal)),
            None => Forked::Way(Way::Found(Box::new(found(
                search,
                place,
                served.report,
                None,
            )))),
        },
        Some(Err(_)) if served.rehearsal.supervised.cause == Cause::TimedOut => {
            Forked::Way(Way::Refused(Refusal::TimedOut))
        }
        Some(Err(error)) => Forked::ByRuns(
            format!("since forking did not work: {error:#}"),
            served.report.batch,
        ),
        None => never_there(place, served.rehearsal, served.report),
    })
}

fn try_batch(line: &mut Line, batch: u64) -> anyhow::Result<Outcome> {
    Ok(Outcome::of(&line.try_sizes(&[("batch", batch)])?))
}

/// Smaller batches that show how memory grows; each costs a second or so.
fn sizes_for_growth(search: &Search) -> Vec<u64> {
    let Some(largest) = search.largest() else {
        return Vec::new();
    };
    let mut sizes = vec![1, largest / 4, largest / 2];
    sizes.retain(|size| *size > 0 && *size < largest && !search.tried().contains_key(size));
    sizes.dedup();
    sizes
}

/// The script has ended, or cannot be forked, before anything could be tried.
fn never_there(place: &ProbePlace, run: Rehearsal, report: ProbeReport) -> Forked {
    if let Some(because) = report.unforkable {
        return Forked::ByRuns(format!("since {because}"), report.batch);
    }
    if let Some(problem) = report.problem {
        return Forked::Way(Way::Refused(Refusal::NotSettable {
            problem,
            options: report.batch_options,
        }));
    }
    let verdict = run.verdict();
    if verdict == Verdict::DoesNotFit {
        return Forked::Way(Way::Refused(Refusal::DoesNotFit(Box::new(run))));
    }
    if let (ProbePlace::Option(option), false) = (place, report.similar_options.is_empty()) {
        return Forked::Way(Way::Refused(Refusal::NoOption {
            option: option.clone(),
            similar: report.similar_options,
        }));
    }
    if verdict == Verdict::TimedOut {
        return Forked::Way(Way::Refused(Refusal::TimedOut));
    }
    if verdict != Verdict::Fits {
        return Forked::Way(Way::Refused(Refusal::of_failure(None, &run)));
    }
    match place {
        // It reads its arguments in another way than with argparse.
        ProbePlace::Option(_) => Forked::ByRuns(
            "since the script does not read its arguments with argparse".to_owned(),
            None,
        ),
        ProbePlace::TrainingLoader if report.has_other_loader => Forked::OnlyOtherLoaders,
        _ => Forked::Way(Way::Refused(Refusal::NoLoader(report.batch_options))),
    }
}

fn find_by_runs(
    plan: &Plan,
    place: &ProbePlace,
    because: String,
    own: Option<u64>,
    bounds: &Bounds,
    log: &Path,
    progress: &mut Progress,
) -> anyhow::Result<Way> {
    let own = own.or_else(|| match place {
        ProbePlace::Option(option) => present_value(&plan.words, option),
        _ => None,
    });
    let mut search = bounds.search(own, None).without_looking_further();
    let mut seen: Option<ProbeReport> = None;
    let mut last_fit: Option<(u64, Rehearsal)> = None;
    while let Some(batch) = search.next() {
        let tries = search.tried().len() + 1;
        progress.trying(batch, tries);
        let run = run_whole(
            plan,
            place,
            OtherSizes::batch(batch),
            false,
            log,
            &mut |_| progress.trying(batch, tries),
        )?;
        if let Cause::Interrupted(signal) = run.supervised.cause {
            return Ok(Way::Interrupted(signal));
        }
        let outcome = Outcome::of(&run);
        if run.supervised.cause == Cause::TimedOut {
            return Ok(Way::Refused(Refusal::TimedOut));
        }
        if !matches!(place, ProbePlace::Option(_)) && seen.is_none() {
            // Before the place is reached, nothing about the batch is known.
            let mut processes = run.findings.processes.iter();
            let report =
                processes.find_map(|process| process.probe.clone().filter(|probe| probe.is_found));
            if let (None, Outcome::Fits(_) | Outcome::Fails { .. }) = (&report, &outcome) {
                let first = run
                    .findings
                    .processes
                    .iter()
                    .find_map(|each| each.probe.clone());
                return Ok(match never_there(place, run, first.unwrap_or_default()) {
                    Forked::Way(way) => way,
                    _ => Way::Refused(Refusal::NoLoader(Vec::new())),
                });
            }
            if let Some(report) = report {
                search = limited(search, &report, bounds);
                seen = Some(report);
            }
        }
        if matches!(outcome, Outcome::Fits(_)) && last_fit.as_ref().is_none_or(|fit| fit.0 < batch)
        {
            last_fit = Some((batch, run.clone()));
        }
        search.note(batch, outcome);
    }
    if let Some(refusal) = refusal_of(&search) {
        return Ok(Way::Refused(refusal));
    }
    let mut found = found(search, place, seen.unwrap_or_default(), Some(because));
    found.last_fit = last_fit.map(|fit| fit.1);
    Ok(Way::Found(Box::new(found)))
}

/// The search again, from when the size of the data is known.
fn limited(search: Search, report: &ProbeReport, bounds: &Bounds) -> Search {
    let mut limited = bounds
        .search(report.batch, report.samples)
        .without_looking_further();
    for (&size, outcome) in search.tried() {
        limited.note(size, outcome.clone());
    }
    limited
}

/// Why a search that is over found nothing.
fn refusal_of(search: &Search) -> Option<Refusal> {
    if search.largest().is_some() {
        return None;
    }
    // One sample alone may be too few for the script: then two that do not fit are the answer.
    let mut smallest = search.tried().iter();
    let too_large = smallest
        .clone()
        .take(2)
        .find_map(|(&batch, outcome)| match outcome {
            Outcome::DoesNotFit(place) => Some((batch, place.clone())),
            _ => None,
        });
    if let Some((batch, place)) = too_large.filter(|found| found.0 <= 2) {
        return Some(Refusal::NotEvenOne { batch, place });
    }
    let (&batch, outcome) = smallest.next()?;
    match outcome {
        Outcome::Fails { because, code } => Some(Refusal::Fails {
            batch: Some(batch),
            because: because.clone(),
            code: *code,
        }),
        _ => None,
    }
}

fn found(
    search: Search,
    place: &ProbePlace,
    report: ProbeReport,
    not_forked: Option<String>,
) -> Found {
    let batch = search.largest().unwrap_or_default();
    Found {
        batch,
        place: place.clone(),
        gap: search.gap(),
        report,
        tried: search.tried().clone(),
        not_forked,
        last_fit: None,
    }
}

//! Rehearses combinations, each once, and keeps the outcomes.

use std::collections::BTreeSet;

use ghostgpu_recording::Verdict;
use ghostgpu_rehearse::{
    Change, Completion, OutOfMemory, Outcome, Peaks, Purpose, Reason, Rehearsal, Rehearse, Run,
    Stop,
};
use ghostgpu_session::{ChangeReport, TrainingPart};
use ghostgpu_tricks::Request;

use super::Question;
use super::combination::{Combination, request};
use super::relative_time::relative_time;
use crate::StepGrowth;
use crate::verdict::{Judgement, judge, need_seen_in};

/// What is added, one after the other, if evaluation runs out of memory.
pub const FOR_EVALUATION: [(&str, &[(&str, &str)]); 6] = [
    ("no-grad-evaluation", &[]),
    ("drop-gradients", &[]),
    ("empty-cache", &[]),
    ("evaluation-chunks", &[("chunks", "2")]),
    ("evaluation-chunks", &[("chunks", "4")]),
    ("evaluation-chunks", &[("chunks", "8")]),
];

/// A combination that was rehearsed.
#[derive(Clone, Debug)]
pub struct RehearsedCombination {
    pub combination: Combination,
    pub outcome: CombinationOutcome,
    /// Predicted time for the same samples, where 1 is the plain job.
    pub relative_time: Option<f64>,
    /// What the tricks report they did.
    pub reports: Vec<ChangeReport>,
    /// The rehearsal covered as much of the training as that of the job itself.
    pub is_thorough: bool,
}

/// Whether a combination fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CombinationOutcome {
    /// The whole training fits.
    Fits {
        peaks: Peaks,
        /// At least this much of the card is left.
        headroom_bytes: u64,
        /// Why it fits only tightly, if so.
        tight_because: Option<String>,
    },
    DoesNotFit {
        /// Where memory ran out; `None` if it was only rehearsed with unlimited memory.
        place: Option<OutOfMemory>,
        /// Its peaks with unlimited memory, if that was rehearsed.
        needed: Option<Peaks>,
    },
    /// A decisive part was not reached, or memory keeps growing. The text is the reason.
    NotKnown(String),
    /// A trick refuses this script, or the script fails with it. The text is the reason.
    Fails(String),
}

impl RehearsedCombination {
    pub fn fits(&self) -> bool {
        matches!(self.outcome, CombinationOutcome::Fits { .. })
    }

    /// Whether it fits with the margin.
    pub fn fits_with_room(&self) -> bool {
        let tight = match &self.outcome {
            CombinationOutcome::Fits { tight_because, .. } => tight_because,
            _ => return false,
        };
        tight.is_none()
    }

    fn ran_out_in_evaluation(&self) -> bool {
        let CombinationOutcome::DoesNotFit {
            place: Some(OutOfMemory::Request { stage, moment, .. }),
            ..
        } = &self.outcome
        else {
            return false;
        };
        stage == "evaluation" || *moment == Some(TrainingPart::Evaluation)
    }
}

/// Rehearses combinations of one job.
pub struct Bench<'a> {
    runner: &'a mut dyn Rehearse,
    question: &'a Question<'a>,
    /// A completed run of the job as it is with unlimited memory.
    plain: &'a Run,
    /// Combinations are rehearsed briefly, because a brief rehearsal of the plain job gave the same figures.
    is_brief: bool,
    pub rehearsed: Vec<RehearsedCombination>,
    /// Tricks that find nothing to change in this script, or with which it fails.
    pub without_place: BTreeSet<String>,
    /// Tricks that evaluation needs, added to every combination from now on.
    for_evaluation: Combination,
    pub rehearsals: usize,
    /// Runs that were made ahead of time, by their changes.
    ahead: Vec<(Vec<Change>, Run)>,
}

/// Whether a combination is rehearsed on the card or with unlimited memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    OnCard,
    Unlimited,
}

impl Where {
    fn change(self) -> Option<Change> {
        match self {
            Self::OnCard => None,
            Self::Unlimited => Some(Change::UnlimitedMemory),
        }
    }
}

impl<'a> Bench<'a> {
    pub fn new(
        runner: &'a mut dyn Rehearse,
        question: &'a Question<'a>,
        plain: &'a Run,
        is_brief: bool,
    ) -> Self {
        Self {
            runner,
            question,
            plain,
            is_brief,
            rehearsed: Vec::new(),
            without_place: BTreeSet::new(),
            for_evaluation: Combination::none(),
            rehearsals: 0,
            ahead: Vec::new(),
        }
    }

    fn relative_time(&self, run: &Run, combination: &Combination) -> Option<f64> {
        relative_time(self.plain, run, combination, self.question.card.sheet)
    }

    /// Whether the allowed number of rehearsals has been made.
    pub fn is_spent(&self) -> bool {
        self.rehearsals >= self.question.most_rehearsals
    }

    /// Rehearses a combination on the card, together with the tricks that evaluation needs, and returns its index in
    /// `rehearsed`. `None` if it cannot be rehearsed: its tricks conflict, none of them has a place, or no rehearsals are
    /// left.
    pub fn on_card(&mut self, wanted: &Combination) -> Result<Option<usize>, Stop> {
        loop {
            let Some(combination) = wanted.and(&self.for_evaluation) else {
                return Ok(None);
            };
            let combination = self.with_place(&combination);
            if combination.is_empty() {
                return Ok(None);
            }
            let index = match self.position(&combination) {
                Some(index) => index,
                None if self.is_spent() && !self.is_ahead(&combination, Where::OnCard) => {
                    return Ok(None);
                }
                None => match self.rehearse_on_card(&combination)? {
                    Some(index) => index,
                    None => return Ok(None),
                },
            };
            if !self.rehearsed[index].ran_out_in_evaluation() || !self.help_evaluation() {
                return Ok(Some(index));
            }
        }
    }

    /// The same for a combination that is known not to fit: it is rehearsed with unlimited memory only, to see its peaks.
    pub fn known_not_to_fit(&mut self, wanted: &Combination) -> Result<Option<usize>, Stop> {
        let combination = self.with_place(wanted);
        if combination.is_empty() || self.position(&combination).is_some() {
            return self.on_card(wanted);
        }
        if self.is_spent() && !self.is_ahead(&combination, Where::Unlimited) {
            return Ok(None);
        }
        let run = self.rehearse(&combination, Some(Change::UnlimitedMemory))?;
        self.forget_what_did_nothing(&run);
        let left = self.with_place(&combination);
        if left.is_empty() || self.position(&left).is_some() {
            return Ok(None);
        }
        let outcome = match Outcome::of(&run) {
            Outcome::Fits(peaks) if peaks.device_bytes > self.question.card.capacity_bytes() => {
                CombinationOutcome::DoesNotFit {
                    place: None,
                    needed: Some(peaks),
                }
            }
            // It saves more than expected and may fit after all.
            Outcome::Fits(_) | Outcome::DoesNotFit(_) => return self.on_card(wanted),
            Outcome::Fails { reason, .. } => CombinationOutcome::Fails(reason.to_string()),
        };
        if let (CombinationOutcome::Fails(_), [only]) = (&outcome, left.requests()) {
            self.without_place.insert(only.name.clone());
        }
        let time = match outcome {
            CombinationOutcome::DoesNotFit { .. } => self.relative_time(&run, &left),
            _ => None,
        };
        self.rehearsed.push(RehearsedCombination {
            combination: left,
            relative_time: time,
            outcome,
            reports: reports(&run),
            is_thorough: !self.is_brief,
        });
        Ok(Some(self.rehearsed.len() - 1))
    }

    /// The peaks of a combination with unlimited memory, if it does not fit.
    pub fn with_unlimited_memory(&mut self, index: usize) -> Result<Option<Peaks>, Stop> {
        let CombinationOutcome::DoesNotFit { needed, .. } = &self.rehearsed[index].outcome else {
            return Ok(None);
        };
        let combination = self.rehearsed[index].combination.clone();
        let is_spent = self.is_spent() && !self.is_ahead(&combination, Where::Unlimited);
        if needed.is_some() || is_spent {
            return Ok(*needed);
        }
        let run = self.rehearse(&combination, Some(Change::UnlimitedMemory))?;
        if run.completion() != Completion::Completed {
            return Ok(None);
        }
        let peaks = run.peaks();
        let time = self.relative_time(&run, &combination);
        self.forget_what_did_nothing(&run);
        let rehearsed = &mut self.rehearsed[index];
        rehearsed.relative_time = time;
        rehearsed.reports = reports(&run);
        if let CombinationOutcome::DoesNotFit { needed, .. } = &mut rehearsed.outcome {
            *needed = Some(peaks);
        }
        Ok(Some(peaks))
    }

    /// Rehearses a combination thoroughly if it was only rehearsed briefly, and replaces its outcome.
    pub fn rehearse_thoroughly(&mut self, index: usize) -> Result<(), Stop> {
        if self.rehearsed[index].is_thorough {
            return Ok(());
        }
        let combination = self.rehearsed[index].combination.clone();
        let (run, outcome) = self.thoroughly(|bench| {
            let run = bench.rehearse(&combination, None)?;
            let outcome = bench.outcome(&combination, &run)?;
            Ok((run, outcome))
        })?;
        let time = match outcome {
            CombinationOutcome::Fits { .. } => self.relative_time(&run, &combination),
            _ => None,
        };
        let rehearsed = &mut self.rehearsed[index];
        rehearsed.relative_time = time.or(rehearsed.relative_time);
        rehearsed.outcome = outcome;
        rehearsed.is_thorough = true;
        Ok(())
    }

    /// Runs `act` with thorough rehearsals.
    pub fn thoroughly<T>(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let before = std::mem::replace(&mut self.is_brief, false);
        let result = act(self);
        self.is_brief = before;
        result
    }

    /// Makes, at the same time, rehearsals that are likely to be asked for next. The result of the search does not depend
    /// on this: it still asks for one after the other, and finds these already made.
    pub fn expect(&mut self, wanted: &[(Combination, Where)]) -> Result<(), Stop> {
        let mut all: Vec<Rehearsal> = Vec::new();
        for (combination, place) in wanted {
            let combination = match place {
                Where::OnCard => combination.and(&self.for_evaluation),
                Where::Unlimited => Some(combination.clone()),
            };
            let Some(combination) = combination else {
                continue;
            };
            let combination = self.with_place(&combination);
            let is_known = *place == Where::OnCard && self.position(&combination).is_some();
            let is_too_many = self.rehearsals + all.len() >= self.question.most_rehearsals;
            if combination.is_empty() || is_known || is_too_many {
                continue;
            }
            let number = self.rehearsals + all.len() + 1;
            let rehearsal = self.rehearsal(&combination, place.change(), number);
            let is_there = self.ahead.iter().any(|it| it.0 == rehearsal.changes);
            if !is_there && !all.iter().any(|it| it.changes == rehearsal.changes) {
                all.push(rehearsal);
            }
        }
        // A single rehearsal is no faster ahead of time.
        if all.len() < 2 {
            return Ok(());
        }
        let runs = self.runner.rehearse_all(&all);
        self.rehearsals += runs.len();
        for (rehearsal, run) in all.into_iter().zip(runs) {
            let run = Run::even_if_timed_out(run)?;
            self.ahead.push((rehearsal.changes, run));
        }
        Ok(())
    }

    /// One rehearsal of a combination.
    pub fn rehearse(
        &mut self,
        combination: &Combination,
        more: Option<Change>,
    ) -> Result<Run, Stop> {
        let rehearsal = self.rehearsal(combination, more, self.rehearsals + 1);
        let mut made = self.ahead.iter();
        let made = made.position(|(changes, _)| *changes == rehearsal.changes);
        match made {
            Some(index) => Ok(self.ahead.swap_remove(index).1),
            None => {
                self.rehearsals += 1;
                Run::even_if_timed_out(self.runner.rehearse(&rehearsal))
            }
        }
    }

    fn rehearsal(
        &self,
        combination: &Combination,
        more: Option<Change>,
        number: usize,
    ) -> Rehearsal {
        let words = match combination.is_empty() {
            true => "the script as it is".to_owned(),
            false => combination.in_words(),
        };
        let purpose = Purpose::Candidate(format!("{words} (rehearsal {number})"));
        let mut changes = combination.changes();
        changes.extend(more);
        changes.extend(self.is_brief.then_some(Change::Briefly));
        Rehearsal::figures(purpose, changes)
    }

    fn is_ahead(&self, combination: &Combination, place: Where) -> bool {
        let wanted = self.rehearsal(combination, place.change(), 0).changes;
        self.ahead.iter().any(|(changes, _)| *changes == wanted)
    }

    /// Whether a combination does not fit and its peaks with unlimited memory are not known yet.
    pub fn lacks_figures(&self, index: usize) -> bool {
        let outcome = &self.rehearsed[index].outcome;
        matches!(outcome, CombinationOutcome::DoesNotFit { needed: None, .. })
    }

    /// No longer adds this trick for evaluation, unless evaluation runs out of memory again.
    pub fn leave_out_in_evaluation(&mut self, name: &str) {
        self.for_evaluation = self.for_evaluation.without(name);
    }

    fn position(&self, combination: &Combination) -> Option<usize> {
        self.rehearsed
            .iter()
            .position(|it| it.combination == *combination)
    }

    /// The combination without the tricks that have no place in this script.
    fn with_place(&self, combination: &Combination) -> Combination {
        let names = self.without_place.iter();
        names.fold(combination.clone(), |left, name| left.without(name))
    }

    fn rehearse_on_card(&mut self, combination: &Combination) -> Result<Option<usize>, Stop> {
        let run = self.rehearse(combination, None)?;
        self.forget_what_did_nothing(&run);
        let outcome = self.outcome(combination, &run)?;
        // Tricks that did nothing do not belong to the combination.
        let combination = match run.completion() {
            Completion::Completed => self.with_place(combination),
            _ => combination.clone(),
        };
        if combination.is_empty() {
            return Ok(None);
        }
        if let Some(index) = self.position(&combination) {
            return Ok(Some(index));
        }
        if let (CombinationOutcome::Fails(_), [only]) = (&outcome, combination.requests()) {
            self.without_place.insert(only.name.clone());
        }
        let time = match outcome {
            CombinationOutcome::Fits { .. } => self.relative_time(&run, &combination),
            _ => None,
        };
        self.rehearsed.push(RehearsedCombination {
            relative_time: time,
            outcome,
            reports: reports(&run),
            is_thorough: !self.is_brief,
            combination,
        });
        Ok(Some(self.rehearsed.len() - 1))
    }

    /// Notes the tricks that did nothing in a completed run.
    fn forget_what_did_nothing(&mut self, run: &Run) {
        if run.completion() != Completion::Completed {
            return;
        }
        let reports = reports(run);
        let names: BTreeSet<&String> = reports.iter().map(|report| &report.name).collect();
        for name in names {
            let did = |report: &ChangeReport| report.name == *name && report.did.is_some();
            if !reports.iter().any(did) {
                self.without_place.insert(name.clone());
            }
        }
    }

    fn outcome(
        &mut self,
        combination: &Combination,
        run: &Run,
    ) -> Result<CombinationOutcome, Stop> {
        let judgement = self.judge(run);
        Ok(match judgement.verdict {
            Verdict::Fits => self.fits(run, None),
            Verdict::FitsTightly => {
                let because = self.tight_because(combination, &judgement)?;
                self.fits(run, because)
            }
            Verdict::DoesNotFit => match Outcome::of(run) {
                Outcome::DoesNotFit(place) => CombinationOutcome::DoesNotFit {
                    place: Some(place),
                    needed: None,
                },
                _ => CombinationOutcome::NotKnown(judgement.reason),
            },
            Verdict::WillRunOut | Verdict::NotKnown | Verdict::DidNotUseCard => {
                CombinationOutcome::NotKnown(judgement.reason)
            }
            _ => CombinationOutcome::Fails(match Outcome::of(run) {
                Outcome::Fails { reason, .. } => reason.to_string(),
                _ => judgement.reason,
            }),
        })
    }

    fn judge(&self, run: &Run) -> Judgement {
        let growth = StepGrowth::of(run);
        let need = need_seen_in(run);
        judge(run, Some(&need), growth.as_ref(), &self.question.card)
    }

    fn fits(&self, run: &Run, tight_because: Option<String>) -> CombinationOutcome {
        let peaks = run.peaks();
        let left = self
            .question
            .card
            .capacity_bytes()
            .saturating_sub(peaks.device_bytes);
        CombinationOutcome::Fits {
            peaks,
            headroom_bytes: match tight_because {
                Some(_) => left,
                // It also completed with the margin taken away, so anything beyond that was PyTorch's cache.
                None => left.max(self.question.card.margin_bytes()),
            },
            tight_because,
        }
    }

    /// Why a combination fits only tightly. `None` if the card was only full of PyTorch's cache, which shows when the job
    /// also completes with the margin taken away.
    fn tight_because(
        &mut self,
        combination: &Combination,
        judgement: &Judgement,
    ) -> Result<Option<String>, Stop> {
        let reason = Some(judgement.reason.clone());
        let margin = self.question.card.margin_bytes();
        let is_below_margin = judgement.headroom_bytes.is_some_and(|left| left < margin);
        if !is_below_margin || self.is_spent() {
            return Ok(reason);
        }
        let run = self.rehearse(combination, Some(Change::LessMemory(margin)))?;
        let is_enough = run.completion() == Completion::Completed
            && !matches!(self.judge(&run).flushes_per_step, Some(flushes) if flushes >= 0.5);
        Ok(reason.filter(|_| !is_enough))
    }

    /// Adds one more trick for evaluation; `false` if none is left.
    fn help_evaluation(&mut self) -> bool {
        for (name, options) in FOR_EVALUATION {
            let options: Vec<(&str, String)> = options
                .iter()
                .map(|(option, value)| (*option, (*value).to_owned()))
                .collect();
            let request = request(name, &options);
            if self.question.allowed.permits(name)
                && !self.without_place.contains(name)
                && !self.has_as_much(&request)
                && let Some(more) = self.for_evaluation.with(request)
            {
                self.for_evaluation = more;
                return true;
            }
        }
        false
    }

    fn has_as_much(&self, wanted: &Request) -> bool {
        let number = |request: &Request| {
            request
                .value("chunks")
                .and_then(|it| it.parse::<u64>().ok())
        };
        let present = self.for_evaluation.get(&wanted.name);
        present.is_some_and(|present| number(present) >= number(wanted))
    }
}

fn reports(run: &Run) -> Vec<ChangeReport> {
    let processes = run.findings.processes.iter();
    processes
        .flat_map(|process| process.changes.clone())
        .collect()
}

/// Why a run failed, if it did.
pub fn failure(run: &Run) -> Option<Reason> {
    match Outcome::of(run) {
        Outcome::Fails { reason, .. } => Some(reason),
        _ => None,
    }
}

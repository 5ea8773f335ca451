//! Which tricks, in which amounts, make a job fit a card at the lowest cost.
//!
//! The job is rehearsed as it is and, if it does not fit, once more with unlimited memory to see what it consists of.
//! Then [`search`] rehearses combinations of tricks. The combination that is recommended was rehearsed thoroughly on
//! the card.

mod allowed;
mod bench;
mod brief;
mod coarse_time;
mod combination;
mod composition;
mod families;
mod least;
mod nothing_fits;
mod number_changes;
mod ranking;
mod relative_time;
mod savings;
mod search;

use ghostgpu_recording::Verdict;
use ghostgpu_rehearse::{
    Change, Completion, Held, Peaks, Purpose, Reason, Records, Rehearsal, Rehearse, Run, Runner,
    SizePoint, Stop,
};

pub use allowed::{Allowance, Allowed};
use bench::{Bench, failure};
pub use bench::{CombinationOutcome, RehearsedCombination};
pub use coarse_time::coarse_time;
pub use combination::Combination;
pub use composition::{Composition, Layers};
pub use nothing_fits::{CardThatFits, SmallerData, SmallerKind};
use nothing_fits::{smaller_data, smallest_card};
pub use search::LeftOut;
use search::Search;

use crate::StepGrowth;
use crate::verdict::{Judgement, OnCard, judge, need_seen_in};

/// A job's card, and what a plan for it may do.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    pub card: OnCard<'a>,
    pub allowed: Allowed,
    /// The largest number of rehearsals that the search may make.
    pub most_rehearsals: usize,
}

/// The answer.
#[derive(Debug)]
pub enum MemoryPlan {
    /// It fits as it is, with the margin.
    Fits {
        judgement: Judgement,
        run: Box<Run>,
    },
    /// Tricks cannot help: the script fails, does not use the card, or cannot be judged.
    NoQuestion {
        judgement: Judgement,
        run: Box<Run>,
        reason: Option<Reason>,
    },
    Searched(Box<Searched>),
}

/// The result of a search.
#[derive(Debug)]
pub struct Searched {
    /// The job as it is.
    pub as_it_is: Judgement,
    /// The job's peaks with unlimited memory, and what they consist of.
    pub needed: Peaks,
    pub composition: Composition,
    /// Every combination that was rehearsed, best first.
    pub rehearsed: Vec<RehearsedCombination>,
    /// The number of rehearsals of combinations, including those with other amounts, less memory or unlimited memory.
    pub rehearsals: usize,
    pub stopped: Stopped,
    pub left_out: LeftOut,
    /// Nothing that the user allowed fits, so `rehearsed` also has combinations that change the numbers.
    pub allowed_more: bool,
    /// If nothing fits: cards on which the job fits, with the best combination and as it is.
    pub cards: Vec<CardThatFits>,
    pub smaller_data: Vec<SmallerData>,
}

/// Why a search ended.
#[derive(Debug)]
pub enum Stopped {
    /// No combination is left that could be better.
    NothingLeft,
    /// The allowed number of rehearsals was made.
    Spent,
    /// The user ended it.
    Interrupted(Stop),
}

impl MemoryPlan {
    /// What ended the search before it was complete.
    pub fn into_stop(self) -> Option<Stop> {
        match self {
            Self::Searched(searched) => match searched.stopped {
                Stopped::Interrupted(stop) => Some(stop),
                Stopped::NothingLeft | Stopped::Spent => None,
            },
            Self::Fits { .. } | Self::NoQuestion { .. } => None,
        }
    }
}

impl Searched {
    /// The best combination, if it fits.
    pub fn recommended(&self) -> Option<&RehearsedCombination> {
        self.rehearsed.first().filter(|rehearsed| rehearsed.fits())
    }
}

/// Searches for a plan.
pub fn find(runner: &mut dyn Rehearse, question: &Question) -> Result<MemoryPlan, Stop> {
    let run = Run::even_if_timed_out(runner.rehearse(&Rehearsal::as_it_is()))?;
    let need = (run.completion() == Completion::Completed).then(|| need_seen_in(&run));
    let growth = StepGrowth::of(&run);
    let judgement = judge(&run, need.as_ref(), growth.as_ref(), &question.card);
    match judgement.verdict {
        Verdict::Fits => {
            let run = Box::new(run);
            return Ok(MemoryPlan::Fits { judgement, run });
        }
        Verdict::DoesNotFit | Verdict::FitsTightly => {}
        _ => {
            return Ok(MemoryPlan::NoQuestion {
                reason: failure(&run),
                judgement,
                run: Box::new(run),
            });
        }
    }
    let rehearsal = Rehearsal {
        purpose: Purpose::Need,
        changes: vec![Change::UnlimitedMemory],
        records: Records::Memory,
    };
    let plain = Run::even_if_timed_out(runner.rehearse(&rehearsal))?;
    if plain.completion() != Completion::Completed {
        return Ok(MemoryPlan::NoQuestion {
            reason: failure(&plain),
            judgement,
            run: Box::new(plain),
        });
    }
    let composition = Composition::of(&plain);
    let needed = plain.peaks();
    let is_brief = brief::tells_the_same(runner, &plain)?;
    let bench = Bench::new(runner, question, &plain, is_brief);
    let mut search = Search::new(bench, question, &composition, needed);
    let mut found = Found::default();
    let stopped = match go(&mut search, question, &composition, needed, &mut found) {
        Err(stop @ Stop::Interrupted(_)) => Stopped::Interrupted(stop),
        Err(stop) => return Err(stop),
        Ok(()) if search.bench.is_spent() => Stopped::Spent,
        Ok(()) => Stopped::NothingLeft,
    };
    let left_out = search.left_out;
    let rehearsals = search.bench.rehearsals;
    let mut rehearsed = std::mem::take(&mut search.bench.rehearsed);
    ranking::rank(&mut rehearsed, composition.blocks);
    Ok(MemoryPlan::Searched(Box::new(Searched {
        as_it_is: judgement,
        needed,
        rehearsed,
        rehearsals,
        stopped,
        left_out,
        allowed_more: found.allowed_more,
        cards: found.cards,
        smaller_data: found.smaller_data,
        composition,
    })))
}

/// What a search finds besides combinations.
#[derive(Default)]
struct Found {
    allowed_more: bool,
    cards: Vec<CardThatFits>,
    smaller_data: Vec<SmallerData>,
}

fn go(
    search: &mut Search,
    question: &Question,
    composition: &Composition,
    needed: Peaks,
    found: &mut Found,
) -> Result<(), Stop> {
    search.without_other_numbers()?;
    search.with_other_numbers(&question.allowed)?;
    let fits = |search: &Search| {
        search
            .bench
            .rehearsed
            .iter()
            .any(RehearsedCombination::fits_with_room)
    };
    if !fits(search) && question.allowed.changes.is_empty() && !question.allowed.keeps_numerics {
        found.allowed_more = true;
        search.with_other_numbers(&question.allowed.with_all_changes())?;
    }
    if fits(search) {
        search.leave_out_what_is_not_needed()?;
        search.rehearse_best_thoroughly()?;
    }
    if fits(search) {
        return Ok(());
    }
    ranking::rank(&mut search.bench.rehearsed, composition.blocks);
    let closest = search
        .bench
        .rehearsed
        .iter()
        .find_map(|rehearsed| match &rehearsed.outcome {
            CombinationOutcome::DoesNotFit {
                needed: Some(peaks),
                ..
            } => Some((rehearsed.combination.clone(), *peaks)),
            _ => None,
        });
    let (best, peaks) = closest.unwrap_or((Combination::none(), needed));
    found.smaller_data = smaller_data(&mut search.bench, &best, peaks, composition)?;
    let capacity = question.card.capacity_bytes();
    for (combination, peaks) in [(best, peaks), (Combination::none(), needed)] {
        let is_new = !found
            .cards
            .iter()
            .any(|card| card.combination == combination);
        if is_new {
            let bytes = peaks.device_bytes;
            let card = smallest_card(&mut search.bench, &combination, bytes, capacity)?;
            found.cards.extend(card);
        }
    }
    Ok(())
}

/// A runner that adds tricks to every rehearsal, for example to find the largest batch with a plan.
pub struct WithTricks<'a> {
    pub runner: &'a mut dyn Runner,
    pub combination: Combination,
}

impl Rehearse for WithTricks<'_> {
    fn rehearse(&mut self, rehearsal: &Rehearsal) -> Result<Run, Stop> {
        let mut with = rehearsal.clone();
        with.changes.extend(self.combination.changes());
        self.runner.rehearse(&with)
    }
}

impl Runner for WithTricks<'_> {
    fn hold_at(&mut self, point: &SizePoint, changes: &[Change]) -> Result<Held<'_>, Stop> {
        let with = [changes, &self.combination.changes()].concat();
        self.runner.hold_at(point, &with)
    }
}

#[cfg(test)]
mod tests;

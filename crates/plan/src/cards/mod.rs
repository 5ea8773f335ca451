//! On which cards does a job fit?
//!
//! The answer for a card is what a rehearsal on it would give, but not every card needs its own. The compute capability
//! decides kernels and library engines. The number of multiprocessors decides into how many parts PyTorch splits sums,
//! each with a buffer, some workspaces, and the size of the context. So for each capability, the cards with the fewest
//! and the most multiprocessors are rehearsed with unlimited memory. If the history of one, replayed beside the other's
//! context, predicts the other's figures, it holds for all cards between them. If not, a card in the middle is rehearsed
//! too, and each half is treated the same way.
//!
//! A card that has about as much memory as the job needs is rehearsed individually, as `run` does, because there
//! flushes, smaller workspaces and the margin decide. So is every card of a job whose history cannot be replayed.

mod alone;
mod group;
mod profile;

use ghostgpu_device::{Capability, Card};
use ghostgpu_recording::Verdict;
use ghostgpu_rehearse::{Completion, Rehearse, Run, Stop, runs_on};

use crate::StepGrowth;
use crate::need::Smallest;
use crate::verdict::{Judgement, Margin, OnCard, judge};
use alone::Alone;

/// The cards in question, and how they are judged.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    pub cards: Vec<&'a Card>,
    /// What others use of every card.
    pub reserve_bytes: u64,
    pub margin: Option<Margin>,
    /// The installed torch, if known.
    pub torch: Option<&'a str>,
}

/// What is known about the job on one card.
#[derive(Clone, Debug, PartialEq)]
pub struct OnOneCard<'a> {
    pub card: &'a Card,
    pub verdict: Verdict,
    /// A sentence without its full stop; `None` if only a rehearsal on this card could give the reason.
    pub reason: Option<String>,
    pub need: Option<Smallest>,
    /// What is left of the card after the job's need.
    pub headroom_bytes: Option<u64>,
    pub margin_bytes: u64,
    /// The job was rehearsed on exactly this card, with its memory.
    pub is_rehearsed: bool,
}

/// What is known about all cards.
#[derive(Debug)]
pub struct Survey<'a> {
    /// Cards with a verdict, in the order of the question.
    pub known: Vec<OnOneCard<'a>>,
    /// Cards that were not reached.
    pub open: Vec<&'a Card>,
    /// How often the job was rehearsed.
    pub rehearsals: usize,
    /// Why every card was rehearsed individually, as a sentence ending.
    pub alone_because: Option<&'static str>,
    /// How the script failed on the first card, if it did; then no other card was rehearsed.
    pub failed_first: Option<FirstFailure>,
    /// What ended the survey before every card had a verdict.
    pub stop: Option<Stop>,
}

/// A script that fails for a reason of its own, on the first card that was rehearsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstFailure {
    pub last_lines: Vec<String>,
    /// The exit code that `run` would return.
    pub exit_code: u8,
}

/// Finds out on which cards the job of `runner` fits.
pub fn survey<'a>(runner: &mut dyn Rehearse, question: &Question<'a>) -> Survey<'a> {
    let mut counting = Counting { runner, count: 0 };
    let mut known = Known {
        question,
        rows: Vec::new(),
        alone_because: None,
        failed_first: None,
    };
    let stop = known.find_all(&mut counting).err();
    let mut rows = known.rows;
    let place = |card: &Card| {
        let mut places = question.cards.iter();
        places.position(|each| each.name == card.name)
    };
    rows.sort_by_key(|row| place(row.card));
    let is_known = |card: &Card| rows.iter().any(|row| row.card.name == card.name);
    let open = question.cards.iter().copied();
    Survey {
        open: open.filter(|card| !is_known(card)).collect(),
        known: rows,
        rehearsals: counting.count,
        alone_because: known.alone_because,
        failed_first: known.failed_first,
        stop,
    }
}

/// The card on which a survey starts: the one with most memory, where the job most likely completes.
pub fn first_card<'a>(cards: &[&'a Card]) -> Option<&'a Card> {
    let cards = cards.iter().copied();
    // `max_by_key` returns the last of equal cards, and the first one is wanted.
    cards.rev().max_by_key(|card| card.total_bytes)
}

/// The survey so far.
struct Known<'q, 'a> {
    question: &'q Question<'a>,
    rows: Vec<OnOneCard<'a>>,
    alone_because: Option<&'static str>,
    failed_first: Option<FirstFailure>,
}

impl<'a> Known<'_, 'a> {
    fn find_all(&mut self, runner: &mut dyn Rehearse) -> Result<(), Stop> {
        let Some(first) = first_card(&self.question.cards) else {
            return Ok(());
        };
        let alone = Alone::rehearse(runner, first)?;
        let run = &alone.run;
        let is_answer = matches!(
            run.completion(),
            Completion::Completed | Completion::OutOfMemory
        );
        let row = alone.row(runner, self.question)?;
        let verdict = row.verdict;
        let architectures = code_of(&alone.run);
        self.rows.push(row);
        if !is_answer {
            self.failed_first = Some(FirstFailure {
                last_lines: alone.run.last_lines.clone(),
                exit_code: verdict
                    .exit_code()
                    .unwrap_or_else(|| alone.run.failure_code()),
            });
            return Ok(());
        }
        if verdict == Verdict::DidNotUseCard {
            // The script will not use any other card either.
            let (judged, cards) = (self.rows[0].clone(), self.others(first));
            let rows = cards.into_iter().map(|card| OnOneCard {
                card,
                is_rehearsed: false,
                ..judged.clone()
            });
            self.rows.extend(rows);
            return Ok(());
        }
        let (with_code, without): (Vec<&Card>, Vec<&Card>) = self
            .others(first)
            .into_iter()
            .partition(|card| runs_on(&architectures, card.capability));
        self.cannot_run(&alone.run, &without);
        let (free, full): (Vec<&Card>, Vec<&Card>) = with_code
            .into_iter()
            .partition(|card| card.total_bytes > self.question.reserve_bytes);
        self.full_already(&full);
        for group in by_capability(&free) {
            self.find_group(runner, &group)?;
        }
        Ok(())
    }

    fn others(&self, first: &Card) -> Vec<&'a Card> {
        let cards = self.question.cards.iter().copied();
        cards.filter(|card| card.name != first.name).collect()
    }

    /// Cards for which torch has no code, whatever the job needs.
    fn cannot_run(&mut self, run: &Run, cards: &[&'a Card]) {
        for card in cards {
            let on_card = Sheet::of(card, self.question);
            let judgement = judge(run, None, None, &on_card.on_card());
            self.rows
                .push(OnOneCard::judged(card, judgement, None, false));
        }
    }

    /// Cards of which others use everything.
    fn full_already(&mut self, cards: &[&'a Card]) {
        for card in cards {
            self.rows.push(OnOneCard {
                card,
                verdict: Verdict::DoesNotFit,
                reason: Some("others use all of the card".to_owned()),
                need: None,
                headroom_bytes: None,
                margin_bytes: Sheet::of(card, self.question).on_card().margin_bytes(),
                is_rehearsed: false,
            });
        }
    }

    /// Judges a job that completes with unlimited memory, for a card whose memory is far from any limit.
    fn judged(&self, run: &Run, card: &'a Card, need: Smallest) -> OnOneCard<'a> {
        let sheet = Sheet::of(card, self.question);
        let on_card = sheet.on_card();
        if need.device_bytes > on_card.capacity_bytes() {
            return OnOneCard {
                card,
                verdict: Verdict::DoesNotFit,
                reason: None,
                need: Some(need),
                headroom_bytes: None,
                margin_bytes: on_card.margin_bytes(),
                is_rehearsed: false,
            };
        }
        let growth = StepGrowth::of(run);
        let judgement = judge(run, Some(&need), growth.as_ref(), &on_card);
        OnOneCard::judged(card, judgement, Some(need), false)
    }
}

impl<'a> OnOneCard<'a> {
    fn judged(
        card: &'a Card,
        judgement: Judgement,
        need: Option<Smallest>,
        is_rehearsed: bool,
    ) -> Self {
        Self {
            card,
            verdict: judgement.verdict,
            reason: Some(judgement.reason),
            need,
            headroom_bytes: judgement.headroom_bytes,
            margin_bytes: judgement.margin_bytes,
            is_rehearsed,
        }
    }

    /// The part of the card that the job may use.
    pub fn capacity_bytes(&self, reserve_bytes: u64) -> u64 {
        self.card.total_bytes.saturating_sub(reserve_bytes)
    }

    /// How much memory the card lacks.
    pub fn missing_bytes(&self, reserve_bytes: u64) -> Option<u64> {
        let need = self.need.as_ref()?.device_bytes;
        let missing = need.saturating_sub(self.capacity_bytes(reserve_bytes));
        (missing > 0).then_some(missing)
    }
}

/// A card's sheet and uncertainty, which [`OnCard`] borrows.
struct Sheet<'q, 'a> {
    sheet: ghostgpu_device::DeviceSheet,
    uncertainty: Option<ghostgpu_device::Uncertainty>,
    question: &'q Question<'a>,
}

impl<'q, 'a> Sheet<'q, 'a> {
    fn of(card: &Card, question: &'q Question<'a>) -> Self {
        Self {
            sheet: card.sheet(),
            uncertainty: card.uncertainty(),
            question,
        }
    }

    fn on_card(&self) -> OnCard<'_> {
        OnCard {
            sheet: &self.sheet,
            count: 1,
            uncertainty: self.uncertainty.as_ref(),
            reserve_bytes: self.question.reserve_bytes,
            margin: self.question.margin,
            torch: self.question.torch,
        }
    }
}

/// The cards of each compute capability, in ascending order of multiprocessors. The largest group comes first, because
/// a survey that is interrupted then has the most verdicts.
fn by_capability<'a>(cards: &[&'a Card]) -> Vec<Vec<&'a Card>> {
    let mut capabilities: Vec<Capability> = cards.iter().map(|card| card.capability).collect();
    capabilities.sort_unstable();
    capabilities.dedup();
    let mut groups: Vec<Vec<&Card>> = capabilities
        .into_iter()
        .map(|capability| {
            let own = cards.iter().copied();
            let mut group: Vec<&Card> = own.filter(|card| card.capability == capability).collect();
            group.sort_by_key(|card| (card.multiprocessors, card.total_bytes));
            group
        })
        .collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    groups
}

/// The architectures that the script's torch has code for.
fn code_of(run: &Run) -> Vec<String> {
    let main = run.findings.main_process();
    main.map(|process| process.code_architectures.clone())
        .unwrap_or_default()
}

/// A runner that counts its rehearsals.
struct Counting<'a> {
    runner: &'a mut dyn Rehearse,
    count: usize,
}

impl Rehearse for Counting<'_> {
    fn rehearse(&mut self, rehearsal: &ghostgpu_rehearse::Rehearsal) -> Result<Run, Stop> {
        self.count += 1;
        self.runner.rehearse(rehearsal)
    }
}

#[cfg(test)]
mod tests;

//! On which cards does a job fit?
//!
//! The answer for a card is that of a rehearsal on it, but not every card needs one. Its compute capability decides
//! kernels and library engines. Its multiprocessors decide how far PyTorch splits sums, with a buffer for the parts, some
//! workspaces, and how large the context is. So for each capability the cards with the fewest and the most
//! multiprocessors are rehearsed with unlimited memory. If the history of one, replayed beside the other's context, says
//! of it what its own says, it holds for the cards between them; if not, one in the middle is rehearsed too, and each
//! half is looked at in the same way.
//!
//! A card that has about as much memory as the job needs is rehearsed by itself, as `run` does it: there retries,
//! smaller workspaces and the margin decide. So is every card of a job whose history cannot be replayed.

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

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    pub cards: Vec<&'a Card>,
    /// What others hold of every card.
    pub reserve_bytes: u64,
    pub margin: Option<Margin>,
    /// The installed torch, if that is known.
    pub torch: Option<&'a str>,
}

/// What is known about the job on one card.
#[derive(Clone, Debug, PartialEq)]
pub struct OnOneCard<'a> {
    pub card: &'a Card,
    pub verdict: Verdict,
    /// A sentence without its full stop; none where only a rehearsal on this card would say why.
    pub reason: Option<String>,
    pub need: Option<Smallest>,
    /// What is left of the card beside what the job needs.
    pub headroom_bytes: Option<u64>,
    pub margin_bytes: u64,
    /// It was rehearsed on this very card and its memory.
    pub is_rehearsed: bool,
}

/// What was found out about all of them.
#[derive(Debug)]
pub struct Survey<'a> {
    /// Cards about which something is known, in the order of the question.
    pub known: Vec<OnOneCard<'a>>,
    /// Cards that were not come to.
    pub open: Vec<&'a Card>,
    /// How often the job was rehearsed.
    pub rehearsals: usize,
    /// Why every card was rehearsed by itself, as the end of a sentence.
    pub alone_because: Option<&'static str>,
    /// The end of what the script printed where it failed on the first card: no other card was tried then.
    pub failed_first: Option<FirstFailure>,
    /// What ended it before every card was known.
    pub stop: Option<Stop>,
}

/// A script that fails for a reason of its own, on the first card that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstFailure {
    pub last_lines: Vec<String>,
    /// What `run` would end with.
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

/// The card on which the job of a survey is prepared: the one with most memory, on which everything may be seen at once.
pub fn first_card<'a>(cards: &[&'a Card]) -> Option<&'a Card> {
    let cards = cards.iter().copied();
    // The first of equals.
    cards.rev().max_by_key(|card| card.total_bytes)
}

/// What is found, while it is being found.
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
                    .unwrap_or_else(|| alone.run.ending.shell_code()),
            });
            return Ok(());
        }
        if verdict == Verdict::DidNotUseCard {
            // Whichever it is.
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

    /// Judges a job that ends with unlimited memory on a card that is far from the limit.
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

    /// What the job may have of the card.
    pub fn capacity_bytes(&self, reserve_bytes: u64) -> u64 {
        self.card.total_bytes.saturating_sub(reserve_bytes)
    }

    /// How much the card has too little.
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

/// The cards of each compute capability, those with fewest multiprocessors first; the largest group first, since it says
/// most.
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

/// Counts rehearsals.
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

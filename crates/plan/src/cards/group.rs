//! The cards of one compute capability.

use ghostgpu_device::Card;
use ghostgpu_rehearse::{Completion, Rehearse, Stop};

use super::alone::{Alone, changes};
use super::profile::{Foreseen, Profile};
use super::{Known, Sheet};
use crate::need::{Need, Smallest, need};

/// A card whose memory is within one part in this many of the job's need, or of what the job needs to run without
/// flushes, is rehearsed individually.
const NEAR: u64 = 33;

/// For this many cards or fewer, rehearsing each takes less than comparing profiles.
const FEW: usize = 2;

/// Cards with the same number of multiprocessors: a rehearsal on one of them holds for all.
type Alike<'a> = Vec<&'a Card>;

impl<'a> Known<'_, 'a> {
    /// Judges cards of one capability, given in ascending order of multiprocessors.
    pub(super) fn find_group(
        &mut self,
        runner: &mut dyn Rehearse,
        cards: &[&'a Card],
    ) -> Result<(), Stop> {
        if cards.len() <= FEW || self.alone_because.is_some() {
            return self.each_alone(runner, cards);
        }
        let alike = by_multiprocessors(cards);
        let (Some(first), Some(last)) = (alike.first(), alike.last()) else {
            return Ok(());
        };
        let mut lowest = Profile::rehearse(runner, first[0])?;
        if lowest.run.completion() != Completion::Completed {
            // It failed for a reason other than memory, so each card is rehearsed to find that reason.
            return self.each_alone(runner, cards);
        }
        let Some(foreseen) = lowest.on(first[0]) else {
            self.alone_because = Some("the allocator's history of this job cannot be replayed");
            return self.each_alone(runner, cards);
        };
        let confirmed = match need(runner, &changes(first[0]), &lowest.run)?.need {
            Need::Found(smallest) if smallest.device_bytes == foreseen.needed_bytes() => smallest,
            // The replay does not predict this job correctly.
            _ => return self.each_alone(runner, cards),
        };
        let mut near = self.judge_by(&mut lowest, first, &confirmed);
        if alike.len() > 1 {
            let mut highest = Profile::rehearse(runner, last[0])?;
            near.extend(self.judge_by(&mut highest, last, &confirmed));
            let between = &alike[1..alike.len() - 1];
            let ends = (&mut lowest, &mut highest);
            near.extend(self.find_between(runner, ends, between, &confirmed)?);
        }
        self.each_alone(runner, &near)
    }

    /// Judges the cards between two that were rehearsed, in number of multiprocessors. Returns the cards that must be
    /// rehearsed individually.
    fn find_between(
        &mut self,
        runner: &mut dyn Rehearse,
        (lowest, highest): (&mut Profile<'a>, &mut Profile<'a>),
        between: &[Alike<'a>],
        confirmed: &Smallest,
    ) -> Result<Vec<&'a Card>, Stop> {
        if between.is_empty() {
            return Ok(Vec::new());
        }
        let expected = lowest.on(highest.card);
        if expected.is_some() && expected == highest.on(highest.card) {
            let all: Vec<&Card> = between.iter().flatten().copied().collect();
            return Ok(self.judge_by(lowest, &all, confirmed));
        }
        let (low, high) = between.split_at(between.len() / 2);
        let Some((alike, high)) = high.split_first() else {
            return Ok(Vec::new());
        };
        let mut middle = Profile::rehearse(runner, alike[0])?;
        let mut near = self.judge_by(&mut middle, alike, confirmed);
        near.extend(self.find_between(runner, (lowest, &mut middle), low, confirmed)?);
        near.extend(self.find_between(runner, (&mut middle, highest), high, confirmed)?);
        Ok(near)
    }

    /// Judges cards by a profile. Returns the cards for which it does not decide.
    fn judge_by(
        &mut self,
        profile: &mut Profile<'a>,
        cards: &[&'a Card],
        confirmed: &Smallest,
    ) -> Vec<&'a Card> {
        let is_completed = profile.run.completion() == Completion::Completed;
        let mut near = Vec::new();
        for &card in cards {
            match profile.on(card).filter(|_| is_completed) {
                Some(foreseen) if !self.is_near(card, &foreseen, confirmed) => {
                    let row = self.judged(&profile.run, card, foreseen.need(confirmed));
                    self.rows.push(row);
                }
                _ => near.push(card),
            }
        }
        near
    }

    /// Whether a card's memory is close to a limit that decides the verdict: the need, the need without flushes, or the
    /// margin.
    fn is_near(&self, card: &Card, foreseen: &Foreseen, confirmed: &Smallest) -> bool {
        let sheet = Sheet::of(card, self.question);
        let on_card = sheet.on_card();
        let capacity = on_card.capacity_bytes();
        let need = foreseen.need(confirmed);
        let least = need.device_bytes - need.device_bytes / NEAR;
        let comfortable = foreseen.comfortable_bytes().max(need.device_bytes);
        let most = comfortable + comfortable / NEAR;
        let margin = on_card.margin_bytes();
        let is_near_margin = match capacity.checked_sub(need.device_bytes) {
            Some(left) => margin > 0 && left.abs_diff(margin) < capacity / NEAR / 2,
            None => false,
        };
        (least..most).contains(&capacity) || is_near_margin
    }

    fn each_alone(&mut self, runner: &mut dyn Rehearse, cards: &[&'a Card]) -> Result<(), Stop> {
        for card in cards {
            let row = Alone::rehearse(runner, card)?.row(runner, self.question)?;
            self.rows.push(row);
        }
        Ok(())
    }
}

/// Groups cards, given in ascending order of multiprocessors, by that number.
fn by_multiprocessors<'a>(cards: &[&'a Card]) -> Vec<Alike<'a>> {
    let same = |one: &&Card, other: &&Card| one.multiprocessors == other.multiprocessors;
    cards.chunk_by(same).map(<[_]>::to_vec).collect()
}

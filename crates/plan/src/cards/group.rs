//! The cards of one compute capability.

use ghostgpu_device::Card;
use ghostgpu_rehearse::{Completion, Rehearse, Stop};

use super::alone::{Alone, changes};
use super::profile::{Foreseen, Profile};
use super::{Known, Sheet};
use crate::need::{Need, Smallest, need};

/// Cards whose memory is within this part of what the job needs, or of what it needs without retries, are rehearsed.
const NEAR: u64 = 33;

/// So few cards are rehearsed sooner than compared.
const FEW: usize = 2;

impl<'a> Known<'_, 'a> {
    /// Cards of one capability, those with fewest multiprocessors first.
    pub(super) fn find_group(
        &mut self,
        runner: &mut dyn Rehearse,
        cards: Vec<&'a Card>,
    ) -> Result<(), Stop> {
        let (Some(first), Some(last)) = (cards.first(), cards.last()) else {
            return Ok(());
        };
        if cards.len() <= FEW || self.alone_because.is_some() {
            return self.each_alone(runner, &cards);
        }
        let mut lowest = Profile::rehearse(runner, first)?;
        if lowest.run.completion() != Completion::Completed {
            // Not a matter of memory: each card says for itself what it is.
            return self.each_alone(runner, &cards);
        }
        if lowest.on(first).is_none() {
            self.alone_because = Some("the allocator's history of this job cannot be replayed");
            return self.each_alone(runner, &cards);
        }
        let highest = Profile::rehearse(runner, last)?;
        self.find_between(runner, lowest, highest, &cards)
    }

    /// The cards from that of one profile to that of another, both included.
    fn find_between(
        &mut self,
        runner: &mut dyn Rehearse,
        mut lowest: Profile<'a>,
        mut highest: Profile<'a>,
        cards: &[&'a Card],
    ) -> Result<(), Stop> {
        let expected = lowest.on(highest.card);
        if highest.run.completion() == Completion::Completed
            && expected.is_some()
            && expected == highest.on(highest.card)
        {
            return self.find_alike(runner, lowest, cards);
        }
        if cards.len() <= FEW {
            return self.each_alone(runner, cards);
        }
        let (low, high) = cards.split_at(cards.len() / 2);
        for (known, half) in [(lowest, low), (highest, high)] {
            self.find_half(runner, known, half)?;
        }
        Ok(())
    }

    /// Some cards, of which the first or the last has a profile.
    fn find_half(
        &mut self,
        runner: &mut dyn Rehearse,
        known: Profile<'a>,
        cards: &[&'a Card],
    ) -> Result<(), Stop> {
        let (Some(first), Some(last)) = (cards.first(), cards.last()) else {
            return Ok(());
        };
        if known.run.completion() != Completion::Completed || cards.len() <= FEW {
            return self.each_alone(runner, cards);
        }
        match known.card.name == first.name {
            true => {
                let highest = Profile::rehearse(runner, last)?;
                self.find_between(runner, known, highest, cards)
            }
            false => {
                let lowest = Profile::rehearse(runner, first)?;
                match lowest.run.completion() {
                    Completion::Completed => self.find_between(runner, lowest, known, cards),
                    _ => self.each_alone(runner, cards),
                }
            }
        }
    }

    /// Cards on which the job needs what one profile says.
    fn find_alike(
        &mut self,
        runner: &mut dyn Rehearse,
        mut profile: Profile<'a>,
        cards: &[&'a Card],
    ) -> Result<(), Stop> {
        let Some(foreseen) = profile.on(profile.card) else {
            return self.each_alone(runner, cards);
        };
        let measured = need(runner, &changes(profile.card), &profile.run)?.need;
        let confirmed = match measured {
            Need::Found(smallest) if smallest.device_bytes == foreseen.needed_bytes() => smallest,
            // The replay is not right about this job.
            _ => return self.each_alone(runner, cards),
        };
        let (near, far): (Vec<_>, Vec<_>) = cards
            .iter()
            .filter_map(|&card| Some((card, profile.on(card)?)))
            .partition(|(card, foreseen)| self.is_near(card, foreseen, &confirmed));
        for (card, foreseen) in far {
            let row = self.judged(&profile.run, card, foreseen.need(&confirmed));
            self.rows.push(row);
        }
        let near: Vec<&Card> = near.into_iter().map(|(card, _)| card).collect();
        self.each_alone(runner, &near)
    }

    /// Whether a card's memory is about what decides.
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

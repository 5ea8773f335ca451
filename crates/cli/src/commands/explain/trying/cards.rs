//! Advice to take a larger card: the smallest of the catalogue that is enough.

use ghostgpu_device::{Card, Catalogue};
use ghostgpu_explain::{Advice, Effect};

use super::super::card::short_name;
use super::super::trials::{Trials, Works};
use super::Bench;
use crate::probing::Outcome;
use ghostgpu_text::human;

impl Bench<'_> {
    pub(super) fn try_larger_card(
        &mut self,
        advice: &Advice,
        needed: Option<u64>,
        trials: &mut Trials,
    ) -> anyhow::Result<()> {
        let Some(needed) = needed else {
            return Ok(());
        };
        let mut cards: Vec<&Card> = Catalogue::builtin()
            .cards()
            .iter()
            .filter(|card| card.total_bytes >= needed && card.total_bytes > self.total_bytes)
            .collect();
        cards.sort_by_key(|card| card.total_bytes);
        // What is just as large as the need may still be too small: contexts differ.
        for card in cards.into_iter().take(2) {
            let mut plan = self.plan.clone();
            plan.session.devices = vec![card.sheet()];
            let what = format!(
                "{}: {} with {}",
                advice.what,
                card.driver_name,
                human(card.total_bytes)
            );
            let seen = self.fresh(&plan, &what)?;
            if let Outcome::Fits(peaks) = seen.outcome {
                trials.works.push(Works {
                    what,
                    command: format!("ghostgpu run --gpu {} {}", short_name(card), self.words),
                    effect: Effect::Identical,
                    did: None,
                    peaks,
                    total_bytes: card.total_bytes,
                    is_other_card: true,
                });
                break;
            }
        }
        Ok(())
    }
}

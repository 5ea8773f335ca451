//! Joins the ranks of one job into one recording, from one or several machines.

use crate::recording::{FailedRun, Recording};
use crate::renumbering::Renumbering;

impl Recording {
    /// Adds the cards of another recording of the same job. `about` stays that of this one.
    pub fn join(&mut self, other: Recording) {
        let numbers = Renumbering::of(&mut self.names, other.names);
        let renumbered = |mut cards: Vec<_>| {
            cards.iter_mut().for_each(|card| numbers.apply(card));
            cards
        };
        self.cards.extend(renumbered(other.cards));
        if let Some(failed) = other.failed_run {
            let run = self.failed_run.get_or_insert_with(FailedRun::default);
            run.steps = run.steps.max(failed.steps);
            run.cards.extend(renumbered(failed.cards));
        }
        for warning in other.warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
        self.cards.sort_by_key(|card| (card.rank, card.index));
        if let Some(failed) = &mut self.failed_run {
            failed.cards.sort_by_key(|card| (card.rank, card.index));
        }
    }
}

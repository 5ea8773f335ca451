//! One card, rehearsed individually, as `ghostgpu run` does.

use ghostgpu_device::Card;
use ghostgpu_rehearse::{Change, Completion, Purpose, Records, Rehearsal, Rehearse, Run, Stop};

use super::{OnOneCard, Question, Sheet};
use crate::StepGrowth;
use crate::need::{Need, need};
use crate::verdict::judge;

/// A job that was rehearsed on a card with that card's own memory.
pub struct Alone<'a> {
    pub card: &'a Card,
    pub run: Run,
}

impl<'a> Alone<'a> {
    pub fn rehearse(runner: &mut dyn Rehearse, card: &'a Card) -> Result<Self, Stop> {
        let rehearsal = Rehearsal {
            purpose: Purpose::OnCard {
                name: card.name.to_owned(),
                is_unlimited: false,
            },
            changes: changes(card),
            records: Records::History,
        };
        let run = Run::even_if_timed_out(runner.rehearse(&rehearsal))?;
        Ok(Self { card, run })
    }

    /// The verdict for this card, with the job's need there.
    pub fn row(
        &self,
        runner: &mut dyn Rehearse,
        question: &Question<'a>,
    ) -> Result<OnOneCard<'a>, Stop> {
        let run = &self.run;
        let need = match run.completion() {
            Completion::Completed | Completion::OutOfMemory => {
                match need(runner, &changes(self.card), run)?.need {
                    Need::Found(smallest) => Some(smallest),
                    Need::Unknown(_) => None,
                }
            }
            _ => None,
        };
        let sheet = Sheet::of(self.card, question);
        let growth = StepGrowth::of(run);
        let judgement = judge(run, need.as_ref(), growth.as_ref(), &sheet.on_card());
        Ok(OnOneCard::judged(self.card, judgement, need, true))
    }
}

/// The changes that put a rehearsal on this card.
pub fn changes(card: &Card) -> Vec<Change> {
    vec![Change::Card(Box::new(card.sheet()))]
}

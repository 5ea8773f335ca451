//! Advice that is a change in the script, made by the agent while it runs.

use ghostgpu_explain::Advice;
use ghostgpu_session::Change;

use super::super::trials::{Fails, Trials};
use super::{Bench, Shown};
use crate::probing::Outcome;

impl Bench<'_> {
    pub(super) fn try_change(
        &mut self,
        advice: &Advice,
        change: Change,
        trials: &mut Trials,
    ) -> anyhow::Result<()> {
        let mut plan = self.plan.clone();
        plan.session.changes.push(change);
        let seen = self.fresh(&plan, &advice.what)?;
        match (seen.change, seen.outcome) {
            (Some(report), outcome) => {
                let command = report.line.unwrap_or_else(|| advice.command.clone());
                let mut shown = Shown::of(advice, command);
                shown.did = report.did;
                self.note(outcome, shown, trials);
            }
            (None, Outcome::Fails { because, .. }) => trials.fails.push(Fails {
                what: advice.what.clone(),
                because,
            }),
            // A dry run without the change shows nothing about it.
            (None, Outcome::DoesNotFit(place)) => {
                let because =
                    format!("found nothing to change before it ran out of memory {place}");
                trials.untried.push(advice.clone().not_rehearsed(because));
            }
            (None, Outcome::Fits(_)) => {
                let because = "found nothing to change in the script";
                trials.untried.push(advice.clone().not_rehearsed(because));
            }
        }
        Ok(())
    }
}

//! Advice that the script has an argument for.

use std::ffi::OsString;

use ghostgpu_explain::Advice;

use super::super::switches::{length, switches};
use super::super::trials::Trials;
use super::{Bench, Shown, Tried, shown_words};
use crate::probing::words::with_value;

impl Bench<'_> {
    /// Switches that the script has itself.
    pub(super) fn try_switches(&mut self, trials: &mut Trials) -> anyhow::Result<Tried<()>> {
        for switch in switches(self.script, &self.arguments.words) {
            let mut plan = self.plan.clone();
            plan.words.push(switch.word.clone().into());
            let what = format!("the script's own {}", switch.word);
            let seen = match self.fresh(&plan, &what)? {
                Ok(seen) => seen,
                Err(interrupted) => return Ok(Err(interrupted)),
            };
            let shown = Shown {
                what,
                command: format!("python {} {}", self.words, switch.word),
                effect: switch.effect,
                did: None,
            };
            self.note(seen.outcome, shown, trials);
        }
        Ok(Ok(()))
    }

    /// Half the length or the side that the script has an argument for.
    pub(super) fn try_shorter(
        &mut self,
        advice: &Advice,
        trials: &mut Trials,
    ) -> anyhow::Result<Tried<()>> {
        let Some(length) = length(self.script, &self.arguments.words) else {
            let because = "the script has no argument for it";
            trials.untried.push(advice.clone().untried(because));
            return Ok(Ok(()));
        };
        let half = length.value / 2;
        let mut plan = self.plan.clone();
        plan.words = with_value(&plan.words, &length.word, half);
        let seen = match self.fresh(&plan, &advice.what)? {
            Ok(seen) => seen,
            Err(interrupted) => return Ok(Err(interrupted)),
        };
        let words: Vec<OsString> = with_value(&self.arguments.words, &length.word, half);
        let command = format!("python {}", shown_words(self.script, &words));
        let mut shown = Shown::of(advice, command);
        shown.did = Some(format!(
            "{} {half} instead of {}",
            length.word, length.value
        ));
        self.note(seen.outcome, shown, trials);
        Ok(Ok(()))
    }
}

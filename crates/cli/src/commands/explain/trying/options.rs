//! Advice that the script has an argument for.

use std::ffi::OsString;

use ghostgpu_explain::Advice;
use ghostgpu_session::ProbePlace;

use super::super::switches::{length, switches};
use super::super::trials::Trials;
use super::{Bench, Interrupted, Shown, shown_words};
use crate::judge::Rehearsal;
use crate::probing::Outcome;
use crate::probing::whole::{OtherSizes, run_whole};
use crate::probing::words::with_value;
use crate::process::Cause;

impl Bench<'_> {
    /// Switches that the script has itself.
    pub(super) fn try_switches(&mut self, trials: &mut Trials) -> anyhow::Result<()> {
        for switch in switches(self.script, &self.arguments.words) {
            let mut plan = self.plan.clone();
            plan.words.push(switch.word.clone().into());
            let what = format!("the script's own {}", switch.word);
            let seen = self.fresh(&plan, &what)?;
            let shown = Shown {
                what,
                command: format!("python {} {}", self.words, switch.word),
                effect: switch.effect,
                did: None,
            };
            self.note(seen.outcome, shown, trials);
        }
        Ok(())
    }

    /// Half the length or the side that the script has an argument for.
    pub(super) fn try_shorter(
        &mut self,
        advice: &Advice,
        trials: &mut Trials,
    ) -> anyhow::Result<()> {
        let Some(length) = length(self.script, &self.arguments.words) else {
            return self.try_cut_batches(advice, trials);
        };
        let half = length.value / 2;
        let mut plan = self.plan.clone();
        plan.words = with_value(&plan.words, &length.word, half);
        let seen = self.fresh(&plan, &advice.what)?;
        let words: Vec<OsString> = with_value(&self.arguments.words, &length.word, half);
        let command = format!("python {}", shown_words(self.script, &words));
        let mut shown = Shown::of(advice, command);
        shown.did = Some(format!(
            "{} {half} instead of {}",
            length.word, length.value
        ));
        self.note(seen.outcome, shown, trials);
        Ok(())
    }

    /// A script without such an argument: its batches are cut to half of their tokens.
    fn try_cut_batches(&mut self, advice: &Advice, trials: &mut Trials) -> anyhow::Result<()> {
        // A length that no batch has leaves them whole, and tells how long they are.
        let whole = self.cut_to(u64::from(u32::MAX), advice)?;
        let mut processes = whole.findings.processes.iter();
        let tokens = processes.find_map(|process| process.probe.as_ref()?.seq);
        let Some(tokens) = tokens.filter(|tokens| *tokens >= 2) else {
            let because = "the script has no argument for it, and no DataLoader with tokens to cut";
            trials.untried.push(advice.clone().not_rehearsed(because));
            return Ok(());
        };
        let half = tokens / 2;
        let run = self.cut_to(half, advice)?;
        let command = format!("tokenizer(text, truncation=True, max_length={half})");
        let mut shown = Shown::of(advice, command);
        shown.did = Some(format!("batches cut to {half} of {tokens} tokens"));
        self.note(Outcome::of(&run), shown, trials);
        Ok(())
    }

    fn cut_to(&mut self, tokens: u64, advice: &Advice) -> anyhow::Result<Rehearsal> {
        let progress = &mut self.progress;
        let run = run_whole(
            &self.plan,
            &ProbePlace::TrainingLoader,
            OtherSizes::sequence(tokens),
            false,
            &self.log,
            &mut |elapsed| progress.tick(&advice.what, elapsed),
        )?;
        match run.supervised.cause {
            Cause::Interrupted(signal) => Err(Interrupted(signal).into()),
            _ => Ok(run),
        }
    }
}

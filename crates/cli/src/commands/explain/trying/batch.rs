//! Advice to take a smaller batch: the largest that fits is looked for, as `max-batch` does.

use ghostgpu_explain::{Advice, Effect};
use ghostgpu_session::ProbePlace;

use super::super::trials::{Fails, Trials};
use super::{Bench, Interrupted, Shown};
use crate::commands::max_batch::{self, Refusal, Wish};
use crate::probing::words::present_value;

impl Bench<'_> {
    pub(super) fn try_batch(&mut self, advice: &Advice, trials: &mut Trials) -> anyhow::Result<()> {
        let place = match &self.arguments.arg {
            Some(option) => ProbePlace::Option(option.clone()),
            None => ProbePlace::TrainingLoader,
        };
        self.try_batch_at(advice, place, trials)
    }

    fn try_batch_at(
        &mut self,
        advice: &Advice,
        place: ProbePlace,
        trials: &mut Trials,
    ) -> anyhow::Result<()> {
        let wish = Wish {
            place: place.clone(),
            at_most: None,
            is_forked: true,
        };
        let mut progress = max_batch::Progress::default();
        let way = max_batch::find(&self.plan, &wish, |_| None, &self.log, &mut progress)?;
        progress.clear();
        match way {
            max_batch::Way::Interrupted(signal) => return Err(Interrupted(signal).into()),
            max_batch::Way::Found(found) => {
                let own = found.report.batch.or(match &place {
                    ProbePlace::Option(option) => present_value(&self.plan.words, option),
                    _ => None,
                });
                let before = own
                    .map(|own| format!(" instead of {own}"))
                    .unwrap_or_default();
                let what = format!("a batch of {}{before}, the largest that fits", found.batch);
                let command = match &place {
                    ProbePlace::Option(option) => {
                        format!("python {} {option} {}", self.words, found.batch)
                    }
                    _ => format!("batch_size={} in {}", found.batch, found.place_in_words()),
                };
                if let Some(outcome) = found.tried.get(&found.batch).cloned() {
                    let shown = Shown {
                        what,
                        command,
                        effect: Effect::Training,
                        did: None,
                    };
                    self.note(outcome, shown, trials);
                }
            }
            max_batch::Way::Refused(refusal) => {
                if place == ProbePlace::TrainingLoader
                    && let Some(option) = self.likely_option(&options_of(&refusal))
                {
                    return self.try_batch_at(advice, ProbePlace::Option(option), trials);
                }
                trials.fails.push(Fails {
                    what: advice.what.clone(),
                    because: refusal_in_words(&refusal),
                });
            }
        }
        Ok(())
    }

    /// Of the script's arguments that look as if they set a batch, the one that the user gave.
    fn likely_option(&self, options: &[String]) -> Option<String> {
        let given = options
            .iter()
            .find(|option| present_value(&self.plan.words, option).is_some());
        given.or(options.first()).cloned()
    }
}

/// The script's arguments that look as if they set a batch, where it goes through no loader.
fn options_of(refusal: &Refusal) -> Vec<String> {
    match refusal {
        Refusal::NoLoader(options) => options.clone(),
        Refusal::DoesNotFit(run) => {
            let processes = run.findings.processes.iter();
            let probes = processes.filter_map(|process| process.probe.as_ref());
            probes
                .flat_map(|probe| probe.batch_options.clone())
                .collect()
        }
        _ => Vec::new(),
    }
}

fn refusal_in_words(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NoLoader(_) => {
            "the script goes through no DataLoader; `--arg --batch-size` names the argument that sets \
             its batch"
                .to_owned()
        }
        Refusal::NotSettable { problem, .. } => problem.clone(),
        Refusal::NoOption { option, .. } => format!("the script has no argument `{option}`"),
        Refusal::NotEvenOne { batch, place } => format!("not even {batch} fits: out of memory {place}"),
        Refusal::DoesNotFit(_) => {
            "it runs out of memory before it goes through a DataLoader; `--arg --batch-size` names the \
             argument that sets its batch"
                .to_owned()
        }
        Refusal::Fails { because, .. } => because.clone(),
        Refusal::TimedOut => "it did not end in time".to_owned(),
    }
}

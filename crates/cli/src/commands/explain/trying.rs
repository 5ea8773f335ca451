//! Tries advice on a virtual card, one dry run after the other.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ghostgpu_device::{Card, Catalogue};
use ghostgpu_explain::{Advice, Effect, Explanation, Log, Trial};
use ghostgpu_session::ProbePlace;

use super::arguments::Arguments;
use super::card::{guess, short_name};
use super::switches::switches;
use super::trials::{AsItIs, Fails, Trials, Works};
use crate::answer::Need;
use crate::commands::breakdown_options::BreakdownOptions;
use crate::commands::max_batch::{self, Refusal, Wish};
use crate::commands::rehearsal_options::RehearsalOptions;
use crate::commands::run;
use crate::commands::run::need::measure_need;
use crate::commands::run::prepare::{Prepared, prepare};
use crate::probing::Outcome;
use crate::probing::words::present_value;
use crate::process::Cause;
use crate::rehearsal::{Plan, ScriptOutput};
use crate::run_dir::{RunDir, temporary_folder};
use crate::size::gib;

/// How it ended.
pub enum Way {
    Tried(Trials),
    Interrupted(i32),
}

/// A signal ended a dry run.
struct Interrupted(i32);

type Tried<T> = Result<T, Interrupted>;

pub fn try_advice(
    arguments: &Arguments,
    script: &Path,
    explanation: &Explanation,
    log: &Log,
) -> anyhow::Result<Way> {
    let guess = guess(arguments.gpu.as_deref(), arguments.memory, explanation, log)?;
    let command: Vec<OsString> = std::iter::once(script.as_os_str().to_owned())
        .chain(arguments.words.iter().cloned())
        .collect();
    let run_arguments = run::Arguments {
        options: RehearsalOptions {
            gpu: Some(guess.name.clone()),
            memory: guess.memory,
            steps: arguments.steps,
            python: arguments.python.clone(),
            timeout: arguments.timeout,
            ..RehearsalOptions::default()
        },
        count: 1,
        breakdown: BreakdownOptions {
            no_breakdown: true,
            ..BreakdownOptions::default()
        },
        command,
        ..run::Arguments::default()
    };
    let prepared = prepare(&run_arguments)?;
    let card = prepared.card();
    eprintln!(
        "ghostgpu: trying the advice on a virtual {} ({}): nothing is computed",
        card.name,
        gib(card.total_bytes)
    );
    let mut assumptions = vec![format!("the card is a {}: {}", card.name, guess.because)];
    assumptions.extend(prepared.assumptions.iter().cloned());
    let folder = temporary_folder()?;
    let bench = Bench {
        arguments,
        script,
        words: shown_words(script, &arguments.words),
        log: folder.path().join("output.txt"),
        progress: Line::default(),
        plan: prepared.plan.clone(),
        card: card.name.clone(),
        total_bytes: card.total_bytes,
    };
    let result = bench.run(prepared, explanation, assumptions)?;
    Ok(match result {
        Ok(trials) => Way::Tried(trials),
        Err(Interrupted(signal)) => Way::Interrupted(signal),
    })
}

fn shown_words(script: &Path, words: &[OsString]) -> String {
    let words = words.iter().map(|word| word.to_string_lossy().into_owned());
    let all: Vec<String> = std::iter::once(script.display().to_string())
        .chain(words)
        .collect();
    all.join(" ")
}

/// Everything that tries share.
struct Bench<'a> {
    arguments: &'a Arguments,
    script: &'a Path,
    /// The script and its arguments, as the user would type them.
    words: String,
    /// What the script prints goes here: it has been seen once.
    log: PathBuf,
    progress: Line,
    plan: Plan,
    card: String,
    total_bytes: u64,
}

impl Bench<'_> {
    fn run(
        mut self,
        prepared: Prepared,
        explanation: &Explanation,
        assumptions: Vec<String>,
    ) -> anyhow::Result<Tried<Trials>> {
        let plan = self.plan.clone();
        let outcome = self.outcome(&plan, prepared.run_dir, "the script as it is")?;
        let as_it_is = match outcome {
            Err(interrupted) => return Ok(Err(interrupted)),
            Ok(Outcome::Fits(peaks)) => AsItIs::Fits { peaks },
            Ok(Outcome::DoesNotFit(place)) => AsItIs::DoesNotFit {
                place,
                needed_bytes: None,
            },
            Ok(Outcome::Fails { because, .. }) => AsItIs::Fails { because },
        };
        let mut trials = Trials {
            card: self.card.clone(),
            total_bytes: self.total_bytes,
            assumptions,
            as_it_is,
            works: Vec::new(),
            fails: Vec::new(),
            untried: Vec::new(),
        };
        if let AsItIs::DoesNotFit { .. } = trials.as_it_is {
            // The card's own answer first: what would the job need?
            self.progress
                .say("the need of the script, with unlimited memory");
            let needed = match measure_need(&plan)?.need {
                Need::Measured { device_bytes, .. } => Some(device_bytes),
                _ => None,
            };
            if let AsItIs::DoesNotFit { needed_bytes, .. } = &mut trials.as_it_is {
                *needed_bytes = needed;
            }
            if let Err(interrupted) = self.try_all(explanation, needed, &mut trials)? {
                return Ok(Err(interrupted));
            }
        } else {
            trials.untried = explanation
                .advice
                .iter()
                .filter(|each| each.trial.is_none())
                .cloned()
                .collect();
        }
        self.progress.clear();
        trials.rank();
        Ok(Ok(trials))
    }

    fn try_all(
        &mut self,
        explanation: &Explanation,
        needed: Option<u64>,
        trials: &mut Trials,
    ) -> anyhow::Result<Tried<()>> {
        for advice in &explanation.advice {
            let tried = match advice.trial {
                None => {
                    trials.untried.push(advice.clone());
                    continue;
                }
                // That is how it has just been tried.
                Some(Trial::EmptyCard) => continue,
                Some(Trial::ExpandableSegments) => {
                    self.try_setting(advice, "expandable_segments:True", trials)?
                }
                Some(Trial::MaxSplitSize) => {
                    self.try_setting(advice, "max_split_size_mb:128", trials)?
                }
                Some(Trial::SmallerBatch) => self.try_batch(advice, trials)?,
                Some(Trial::LargerCard) => self.try_larger_card(advice, needed, trials)?,
            };
            if let Err(interrupted) = tried {
                return Ok(Err(interrupted));
            }
        }
        self.try_switches(trials)
    }

    /// One dry run, with what it came to.
    fn outcome(
        &mut self,
        plan: &Plan,
        run_dir: RunDir,
        what: &str,
    ) -> anyhow::Result<Tried<Outcome>> {
        let output = ScriptOutput::Kept(self.log.clone());
        let progress = &mut self.progress;
        let mut tick = |elapsed: Duration| progress.tick(what, elapsed);
        let run = plan.rehearse(run_dir, false, output, &mut tick)?.rehearsal;
        Ok(match run.supervised.cause {
            Cause::Interrupted(signal) => Err(Interrupted(signal)),
            _ => Ok(Outcome::of(&run)),
        })
    }

    fn fresh(&mut self, plan: &Plan, what: &str) -> anyhow::Result<Tried<Outcome>> {
        let run_dir = RunDir::create(&plan.layout.library)?;
        self.outcome(plan, run_dir, what)
    }

    fn note(
        &self,
        outcome: Outcome,
        what: String,
        command: String,
        effect: Effect,
        trials: &mut Trials,
    ) {
        match outcome {
            Outcome::Fits(peaks) => trials.works.push(Works {
                what,
                command,
                effect,
                peaks,
                total_bytes: self.total_bytes,
                is_other_card: false,
            }),
            Outcome::DoesNotFit(place) => trials.fails.push(Fails {
                what,
                because: format!("out of memory {place}"),
            }),
            Outcome::Fails { because, .. } => trials.fails.push(Fails { what, because }),
        }
    }

    /// A setting of PyTorch's allocator.
    fn try_setting(
        &mut self,
        advice: &Advice,
        setting: &str,
        trials: &mut Trials,
    ) -> anyhow::Result<Tried<()>> {
        let mut plan = self.plan.clone();
        // This name is read by every release that has such settings, and wins over the others.
        let name = "PYTORCH_CUDA_ALLOC_CONF";
        plan.variables.push((name.into(), setting.into()));
        let outcome = match self.fresh(&plan, &advice.what)? {
            Ok(outcome) => outcome,
            Err(interrupted) => return Ok(Err(interrupted)),
        };
        let command = format!("{name}={setting} python {}", self.words);
        self.note(outcome, advice.what.clone(), command, advice.effect, trials);
        Ok(Ok(()))
    }

    fn try_batch(&mut self, advice: &Advice, trials: &mut Trials) -> anyhow::Result<Tried<()>> {
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
    ) -> anyhow::Result<Tried<()>> {
        let wish = Wish {
            place: place.clone(),
            at_most: None,
            is_forked: true,
        };
        let mut progress = max_batch::Progress::default();
        let way = max_batch::find(&self.plan, &wish, |_| None, &self.log, &mut progress)?;
        progress.clear();
        match way {
            max_batch::Way::Interrupted(signal) => return Ok(Err(Interrupted(signal))),
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
                    let effect = Effect::Training;
                    self.note(outcome, what, command, effect, trials);
                }
            }
            max_batch::Way::Refused(refusal) => {
                if let (Refusal::NoLoader(options), ProbePlace::TrainingLoader) = (&refusal, &place)
                    && let Some(option) = self.likely_option(options)
                {
                    return self.try_batch_at(advice, ProbePlace::Option(option), trials);
                }
                trials.fails.push(Fails {
                    what: advice.what.clone(),
                    because: refusal_in_words(&refusal),
                });
            }
        }
        Ok(Ok(()))
    }

    /// Of the script's arguments that look as if they set a batch, the one that the user gave.
    fn likely_option(&self, options: &[String]) -> Option<String> {
        let given = options
            .iter()
            .find(|option| present_value(&self.plan.words, option).is_some());
        given.or(options.first()).cloned()
    }

    fn try_larger_card(
        &mut self,
        advice: &Advice,
        needed: Option<u64>,
        trials: &mut Trials,
    ) -> anyhow::Result<Tried<()>> {
        let Some(needed) = needed else {
            return Ok(Ok(()));
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
                gib(card.total_bytes)
            );
            let outcome = match self.fresh(&plan, &what)? {
                Ok(outcome) => outcome,
                Err(interrupted) => return Ok(Err(interrupted)),
            };
            if let Outcome::Fits(peaks) = outcome {
                trials.works.push(Works {
                    what,
                    command: format!("ghostgpu run --gpu {} {}", short_name(card), self.words),
                    effect: Effect::Identical,
                    peaks,
                    total_bytes: card.total_bytes,
                    is_other_card: true,
                });
                break;
            }
        }
        Ok(Ok(()))
    }

    /// Switches that the script has itself.
    fn try_switches(&mut self, trials: &mut Trials) -> anyhow::Result<Tried<()>> {
        for switch in switches(self.script, &self.arguments.words) {
            let mut plan = self.plan.clone();
            plan.words.push(switch.word.clone().into());
            let what = format!("the script's own {}", switch.word);
            let outcome = match self.fresh(&plan, &what)? {
                Ok(outcome) => outcome,
                Err(interrupted) => return Ok(Err(interrupted)),
            };
            let command = format!("python {} {}", self.words, switch.word);
            self.note(outcome, what, command, switch.effect, trials);
        }
        Ok(Ok(()))
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
        Refusal::DoesNotFit(_) => "it runs out of memory before its first batch".to_owned(),
        Refusal::Fails { because, .. } => because.clone(),
        Refusal::TimedOut => "it did not end in time".to_owned(),
    }
}

/// One line on standard error that says what is being tried.
#[derive(Debug, Default)]
struct Line {
    said: Option<String>,
}

impl Line {
    const QUIET_FOR: Duration = Duration::from_secs(1);

    fn tick(&mut self, what: &str, elapsed: Duration) {
        if elapsed >= Self::QUIET_FOR {
            let mut stderr = std::io::stderr();
            match stderr.is_terminal() {
                true => {
                    // Nobody can be told that telling failed.
                    let _ = write!(
                        stderr,
                        "\rghostgpu: trying {what} ({} s)\x1b[K",
                        elapsed.as_secs()
                    );
                    self.said = Some(what.to_owned());
                }
                false => self.say(what),
            }
        }
    }

    /// Once for each, where nobody watches.
    fn say(&mut self, what: &str) {
        let stderr = std::io::stderr();
        if !stderr.is_terminal() && self.said.as_deref() != Some(what) {
            eprintln!("ghostgpu: trying {what}");
            self.said = Some(what.to_owned());
        }
    }

    fn clear(&mut self) {
        let mut stderr = std::io::stderr();
        if self.said.is_some() && stderr.is_terminal() {
            let _ = write!(stderr, "\r\x1b[K");
        }
    }
}

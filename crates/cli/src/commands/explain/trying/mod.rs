//! Tries advice on a virtual card, one dry run after the other.

mod batch;
mod cards;
mod changes;
mod growth;
mod mends;
mod options;
mod progress;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ghostgpu_explain::{Advice, Candidate, Effect, Explanation, Log, Situation, Stage};
use ghostgpu_session::{Change, ChangeReport};

use super::arguments::Arguments;
use super::card::guess;
use super::trials::{AsItIs, Fails, Trials, Works};
use crate::answer::Need;
use crate::commands::breakdown_options::BreakdownOptions;
use crate::commands::rehearsal_options::RehearsalOptions;
use crate::commands::run;
use crate::commands::run::need::measure_need;
use crate::commands::run::prepare::{Prepared, prepare};
use crate::probing::Outcome;
use crate::process::Cause;
use crate::rehearsal::{Plan, ScriptOutput};
use crate::run_dir::{RunDir, temporary_folder};
use ghostgpu_text::human;
use growth::growth_per_step;
use progress::Line;

/// Optimizer steps of a try, where nobody said how many.
const STEPS: u64 = 3;

/// What grows needs more of them to be seen.
const STEPS_OF_GROWTH: u64 = 20;

/// How it ended.
pub enum Way {
    Tried(Trials),
    Interrupted(i32),
}

/// A signal ended a dry run: nothing more is tried.
#[derive(Debug)]
struct Interrupted(i32);

impl std::fmt::Display for Interrupted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "interrupted by signal {}", self.0)
    }
}

impl std::error::Error for Interrupted {}

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
    let mut situations = explanation.situations.iter();
    let is_growing = situations.any(|each| each.situation == Situation::Growth);
    // Steps alone would not lead to the evaluation.
    let is_evaluating = arguments.steps.is_none() && explanation.stage == Some(Stage::Evaluation);
    let steps = arguments
        .steps
        .unwrap_or(match (is_evaluating, is_growing) {
            (true, _) => 0,
            (false, true) => STEPS_OF_GROWTH,
            (false, false) => STEPS,
        });
    let run_arguments = run::Arguments {
        options: RehearsalOptions {
            gpu: Some(guess.name.clone()),
            memory: guess.memory,
            steps,
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
    let mut prepared = prepare(&run_arguments)?;
    if is_evaluating {
        prepared.plan.session.changes.push(Change::ShortPasses);
    }
    let card = prepared.card();
    eprintln!(
        "ghostgpu: trying the advice on a virtual {} ({}): nothing is computed",
        card.name,
        human(card.total_bytes)
    );
    let mut assumptions = vec![format!("the card is a {}: {}", card.name, guess.because)];
    assumptions.extend(prepared.assumptions.iter().cloned());
    if is_evaluating {
        assumptions.push(
            "passes over the training data were cut to 3 batches, so that the script comes to its \
             evaluation; --steps goes through all of them"
                .to_owned(),
        );
    }
    let folder = temporary_folder()?;
    let bench = Bench {
        arguments,
        script,
        words: shown_words(script, &arguments.words),
        log: folder.path().join("output.txt"),
        text: folder.path().join("mended.py"),
        progress: Line::default(),
        plan: prepared.plan.clone(),
        card: card.name.clone(),
        total_bytes: card.total_bytes,
    };
    match bench.run(prepared, explanation, assumptions) {
        Ok(trials) => Ok(Way::Tried(trials)),
        Err(error) => {
            let Interrupted(signal) = error.downcast()?;
            Ok(Way::Interrupted(signal))
        }
    }
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
    /// Where the text of a mended script is put.
    text: PathBuf,
    progress: Line,
    plan: Plan,
    card: String,
    total_bytes: u64,
}

/// What a dry run came to.
struct Seen {
    outcome: Outcome,
    /// What the agent says of the change that it was to make.
    change: Option<ChangeReport>,
    /// Bytes by which the memory in use grew with every step, if it did.
    growth_bytes: Option<u64>,
    /// The script was stopped after so many steps.
    stopped_after: Option<u64>,
}

/// Advice in the words in which it is shown when it was tried.
struct Shown {
    what: String,
    command: String,
    effect: Effect,
    did: Option<String>,
}

impl Shown {
    fn of(advice: &Advice, command: impl Into<String>) -> Self {
        Self {
            what: advice.what.clone(),
            command: command.into(),
            effect: advice.effect,
            did: None,
        }
    }
}

impl Bench<'_> {
    fn run(
        mut self,
        prepared: Prepared,
        explanation: &Explanation,
        assumptions: Vec<String>,
    ) -> anyhow::Result<Trials> {
        let plan = self.plan.clone();
        let seen = self.see(&plan, prepared.run_dir, "the script as it is")?;
        let as_it_is = match seen.outcome {
            Outcome::Fits(peaks) => AsItIs::Fits {
                peaks,
                stopped_after_steps: seen.stopped_after,
                grows_by_bytes: seen.growth_bytes,
            },
            Outcome::DoesNotFit(place) => AsItIs::DoesNotFit {
                place,
                needed_bytes: None,
            },
            Outcome::Fails { because, .. } => AsItIs::Fails { because },
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
        match trials.as_it_is {
            AsItIs::DoesNotFit { .. } => self.try_against_the_card(explanation, &mut trials)?,
            AsItIs::Fits {
                grows_by_bytes: Some(bytes),
                ..
            } => self.try_against_growth(explanation, bytes, &mut trials)?,
            // There is nothing to help against.
            _ => {
                let advice = explanation.advice.iter();
                let never = advice.filter(|each| each.candidate.is_none());
                trials.untried = never.cloned().collect();
            }
        }
        self.progress.clear();
        trials.rank();
        Ok(trials)
    }

    fn try_against_the_card(
        &mut self,
        explanation: &Explanation,
        trials: &mut Trials,
    ) -> anyhow::Result<()> {
        // The card's own answer first: what would the job need?
        self.progress
            .say("the need of the script, with unlimited memory");
        let needed = match measure_need(&self.plan)?.need {
            Need::Measured { device_bytes, .. } => Some(device_bytes),
            _ => None,
        };
        if let AsItIs::DoesNotFit { needed_bytes, .. } = &mut trials.as_it_is {
            *needed_bytes = needed;
        }
        for advice in &explanation.advice {
            self.try_one(advice, needed, trials)?;
        }
        self.try_switches(trials)
    }

    fn try_one(
        &mut self,
        advice: &Advice,
        needed: Option<u64>,
        trials: &mut Trials,
    ) -> anyhow::Result<()> {
        let Some(trial) = advice.candidate else {
            trials.untried.push(advice.clone());
            return Ok(());
        };
        match trial {
            // That is how it has just been tried.
            Candidate::EmptyCard => {
                trials.fails.push(Fails {
                    what: advice.what.clone(),
                    because: "it does not fit on an empty card either".to_owned(),
                });
                Ok(())
            }
            Candidate::ExpandableSegments => {
                self.try_setting(advice, "expandable_segments:True", trials)
            }
            Candidate::MaxSplitSize => self.try_setting(advice, "max_split_size_mb:128", trials),
            Candidate::SmallerBatch => self.try_batch(advice, trials),
            Candidate::LargerCard => self.try_larger_card(advice, needed, trials),
            Candidate::ShorterSamples => self.try_shorter(advice, trials),
            Candidate::FixedLosses | Candidate::FixedOutputs | Candidate::FixedState => {
                let rules = mends::rules_for(trial).unwrap_or_default();
                self.try_mended(advice, rules, trials)
            }
            Candidate::Autocast => self.try_change(advice, Change::Autocast, trials),
            Candidate::Checkpointing => self.try_change(advice, Change::Checkpointing, trials),
            Candidate::Bfloat16Weights => self.try_change(advice, Change::Bfloat16Weights, trials),
            Candidate::LeanOptimizer => self.try_change(advice, Change::LeanOptimizer, trials),
            Candidate::NoGradEvaluation => {
                self.try_change(advice, Change::NoGradEvaluation, trials)
            }
            Candidate::SmallEvaluationBatch => {
                self.try_change(advice, Change::SmallEvaluationBatch, trials)
            }
            Candidate::DropGradients => self.try_change(advice, Change::DropGradients, trials),
            Candidate::DropLast => self.try_change(advice, Change::DropLast, trials),
            Candidate::NoCudnnBenchmark => {
                self.try_change(advice, Change::NoCudnnBenchmark, trials)
            }
            Candidate::LeaveRoom => self.try_change(advice, Change::LeaveRoom, trials),
            Candidate::NoLimit => self.try_change(advice, Change::NoLimit, trials),
        }
    }

    /// One dry run, with what it came to.
    fn see(&mut self, plan: &Plan, run_dir: RunDir, what: &str) -> anyhow::Result<Seen> {
        let output = ScriptOutput::Kept(self.log.clone());
        let progress = &mut self.progress;
        let mut tick = |elapsed: Duration| progress.tick(what, elapsed);
        let run = plan.rehearse(run_dir, false, output, &mut tick)?.rehearsal;
        if let Cause::Interrupted(signal) = run.supervised.cause {
            return Err(Interrupted(signal).into());
        }
        let processes = &run.findings.processes;
        let mut changes = processes.iter().flat_map(|process| &process.changes);
        Ok(Seen {
            outcome: Outcome::of(&run),
            change: changes.find(|change| change.did.is_some()).cloned(),
            growth_bytes: growth_per_step(processes),
            stopped_after: run
                .stopped_by_step_limit()
                .then(|| processes.iter().map(|process| process.steps).max())
                .flatten(),
        })
    }

    fn fresh(&mut self, plan: &Plan, what: &str) -> anyhow::Result<Seen> {
        let run_dir = RunDir::create(&plan.layout.library)?;
        self.see(plan, run_dir, what)
    }

    /// Keeps what a dry run said.
    fn note(&self, outcome: Outcome, shown: Shown, trials: &mut Trials) {
        // What was done tells that it was really tried.
        let did = shown.did.as_ref().map(|did| format!("{did}; "));
        let did = did.unwrap_or_default();
        match outcome {
            Outcome::Fits(peaks) => trials.works.push(Works {
                what: shown.what,
                command: shown.command,
                effect: shown.effect,
                did: shown.did,
                peaks,
                total_bytes: self.total_bytes,
                is_other_card: false,
            }),
            Outcome::DoesNotFit(place) => trials.fails.push(Fails {
                what: shown.what,
                because: format!("{did}out of memory {place}"),
            }),
            Outcome::Fails { because, .. } => trials.fails.push(Fails {
                what: shown.what,
                because: format!("{did}{because}"),
            }),
        }
    }

    /// A setting of PyTorch's allocator.
    fn try_setting(
        &mut self,
        advice: &Advice,
        setting: &str,
        trials: &mut Trials,
    ) -> anyhow::Result<()> {
        let mut plan = self.plan.clone();
        // This name is read by every release that has such settings, and wins over the others.
        let name = "PYTORCH_CUDA_ALLOC_CONF";
        plan.variables.push((name.into(), setting.into()));
        let seen = self.fresh(&plan, &advice.what)?;
        let command = format!("{name}={setting} python {}", self.words);
        self.note(seen.outcome, Shown::of(advice, command), trials);
        Ok(())
    }
}

//! Rehearses a plan and advice: makes the job, and chooses the card.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use ghostgpu_answers::explain::{Rehearsed, Typed, rehearsed};
use ghostgpu_answers::plan::{PlanAnswer, Typed as TypedJob};
use ghostgpu_explain::{Catalogue, Explanation, Log};
use ghostgpu_plan::candidates::{AsItIs, Candidates, Question, Script, as_it_is, rehearse_advice};
use ghostgpu_plan::memory_plan::Allowed;
use ghostgpu_plan::verdict::OnCard;
use ghostgpu_rehearse::{Job, Prepared, Stop, WholeRuns};

use super::arguments::Arguments;
use super::card::guess;
use crate::progress::Rehearsing;
use crate::questions::announce;
use crate::questions::plan::{Planned, REHEARSALS, WhichTricks, planned};
use crate::terminal::note;

/// Rehearses the script on the card that the log is about: as it is, with the tricks of a plan, with other advice. What
/// ends that early comes beside what is known by then.
pub fn rehearse(
    arguments: &Arguments,
    script: &Path,
    explanation: &Explanation,
    log: &Log,
    catalogue: &Catalogue,
) -> anyhow::Result<(Rehearsed, Option<Stop>)> {
    let guess = guess(
        arguments.gpu.as_deref(),
        arguments.memory,
        &explanation.finding,
        log,
    )?;
    let command: Vec<OsString> = std::iter::once(script.as_os_str().to_owned())
        .chain(arguments.words.iter().cloned())
        .collect();
    let job = Job {
        command: command.clone(),
        card: Some(guess.name.clone()),
        memory_bytes: guess.memory,
        extent: arguments.extent.extent(),
        python: arguments.python.clone(),
        timeout: arguments.timeout,
        values: arguments.values.policy(),
        ..Job::default()
    };
    let prepared = job.prepare()?;
    announce(&prepared, "rehearsing what may help", "nothing is computed");
    let card = prepared.card().clone();
    let mut assumptions = vec![format!("the card is a {}: {}", card.name, guess.because)];
    assumptions.extend(prepared.assumptions.iter().cloned());
    let mut runner = WholeRuns::new(prepared.clone(), Arc::new(Rehearsing::default()));
    let as_it_is = as_it_is(&mut runner)?;
    let (plan, stop) = match as_it_is {
        AsItIs::DoesNotFit { .. } => {
            let question = plan_for(arguments, &job, guess.name, &command);
            plan(&question, &prepared, &mut runner)?
        }
        _ => (None, None),
    };
    let mut candidates = match stop {
        Some(_) => Candidates {
            as_it_is,
            candidates: Vec::new(),
            stop,
        },
        None => {
            let question = Question {
                advice: &explanation.advice,
                script: &text_of(script),
                words: &arguments.words,
                batch: arguments.batch.point(),
                capacity_bytes: card.total_bytes,
                first_steps: job.extent.first_steps(),
                known: &plan.as_ref().map_or(Vec::new(), PlanAnswer::known_tricks),
            };
            rehearse_advice(&mut runner, &question, as_it_is)
        }
    };
    let stop = candidates.stop.take();
    let typed = Typed {
        script,
        words: &arguments.words,
    };
    let rehearsed = rehearsed(candidates, plan, &card, assumptions, &typed, catalogue);
    Ok((rehearsed, stop))
}

/// The question of `ghostgpu plan` for the same script and card.
fn plan_for<'a>(
    arguments: &Arguments,
    job: &Job,
    gpu: String,
    command: &[OsString],
) -> WhichTricks<'a> {
    let python = arguments.python.as_ref();
    WhichTricks {
        job: job.clone(),
        allowed: Allowed::default(),
        margin: None,
        most_rehearsals: REHEARSALS,
        largest_batch: None,
        plan_file: None,
        is_fresh: false,
        commands: TypedJob {
            gpu,
            options: Vec::new(),
            python: python.map(|python| python.to_string_lossy().into_owned()),
            script: command
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
        },
    }
}

/// The tricks that make it fit, `None` if memory is not the problem after all; and what ended the search early.
fn plan(
    question: &WhichTricks,
    prepared: &Prepared,
    runner: &mut WholeRuns,
) -> anyhow::Result<(Option<PlanAnswer>, Option<Stop>)> {
    let on_card = OnCard::of(prepared, question.margin);
    Ok(match planned(question, prepared, &on_card, runner)? {
        Planned::Answered {
            answer,
            was_known,
            stop,
        } => {
            if was_known {
                note(format_args!(
                    "the plan was found before, with the same script and versions \
                     (`ghostgpu plan --fresh` searches again)"
                ));
            }
            (Some(*answer), stop)
        }
        Planned::Failed(_) => (None, None),
    })
}

fn text_of(script: &Path) -> Script {
    let name = script.file_name().unwrap_or(script.as_os_str());
    Script {
        name: name.to_string_lossy().into_owned(),
        contents: std::fs::read(script).map_err(|error| error.to_string()),
    }
}

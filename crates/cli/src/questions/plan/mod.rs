//! Which tricks make it fit? Answered by rehearsals, or from the cache if the same was asked before.

mod page;

use std::path::Path;
use std::sync::Arc;

use ghostgpu_answer_cache::Key;
use ghostgpu_answers::plan::{Candidate, Circumstances, LargestBatch, PlanAnswer, Typed};
use ghostgpu_plan::largest_batch::{self, Goal, confirm};
use ghostgpu_plan::memory_plan::{Allowed, Combination, MemoryPlan, Question, WithTricks, find};
use ghostgpu_plan::verdict::{Margin, OnCard};
use ghostgpu_rehearse::{
    Completion, Job, Outcome, Prepared, SizePoint, Stop, WholeRuns, present_value,
};
use ghostgpu_text::human;

use super::{announce, known_answers, patch, relative_paths, show_last_lines};
use crate::commands::AnswerOptions;
use crate::failure::{EXIT_FAILURE, Failure};
use crate::output::Output;
use crate::progress::Rehearsing;
use crate::terminal::note;

/// The default number of rehearsals: enough for most jobs, and few enough to wait for.
pub const REHEARSALS: usize = 80;

/// The question.
pub struct WhichTricks<'a> {
    pub job: Job,
    pub allowed: Allowed,
    /// How much of the card must stay free.
    pub margin: Option<Margin>,
    pub most_rehearsals: usize,
    /// Where the batch is set, if the question is also for the largest batch with the recommended tricks.
    pub largest_batch: Option<SizePoint>,
    /// The file for the recommended tricks, which the training command refers to.
    pub plan_file: Option<&'a Path>,
    /// Ignore cached answers.
    pub is_fresh: bool,
    pub commands: Typed,
}

/// Where the answer goes.
pub struct Destinations<'a> {
    pub output: &'a AnswerOptions,
    /// The file for a diff that writes the recommended tricks into the script.
    pub patch: Option<&'a Path>,
    /// The file for a page about the recommended combination.
    pub page: Option<&'a Path>,
}

/// The result of the question.
pub enum Planned {
    Answered {
        answer: Box<PlanAnswer>,
        /// It comes from the cache.
        was_known: bool,
        /// What ended the search before it was complete.
        stop: Option<Stop>,
    },
    /// The script fails, which was already reported; its exit code.
    Failed(u8),
}

/// The cached answer, or that of a search, with the command that trains with it.
pub fn planned(
    question: &WhichTricks,
    prepared: &Prepared,
    on_card: &OnCard,
    runner: &mut WholeRuns,
) -> anyhow::Result<Planned> {
    let cache = known_answers::cache("plans", !question.is_fresh);
    let key = key(question, prepared);
    let known: Option<PlanAnswer> = key.as_ref().and_then(|key| cache.known(key));
    let was_known = known.is_some();
    let (mut answer, stop) = match known {
        Some(answer) => (Box::new(answer), None),
        None => match searched(question, prepared, on_card, runner)? {
            Searched::Found(answer, stop) => {
                if let Some(key) = key.as_ref().filter(|_| stop.is_none()) {
                    cache.keep(key, &*answer);
                }
                (answer, stop)
            }
            Searched::Failed(code) => return Ok(Planned::Failed(code)),
        },
    };
    answer.command = question.commands.next(&answer, question.plan_file);
    Ok(Planned::Answered {
        answer,
        was_known,
        stop,
    })
}

pub fn answer(question: &WhichTricks, destinations: &Destinations) -> anyhow::Result<u8> {
    let output = destinations.output.prepare()?;
    let plan_file = question.plan_file.map(Output::prepare).transpose()?;
    let page = destinations.page.map(Output::prepare).transpose()?;
    let prepared = question.job.prepare()?;
    let on_card = OnCard::of(&prepared, question.margin);
    refuse_card_without_room(&on_card)?;
    let mut runner = WholeRuns::new(prepared.clone(), Arc::new(Rehearsing::default()));
    let (mut answer, stop) = match planned(question, &prepared, &on_card, &mut runner)? {
        Planned::Answered {
            answer,
            was_known,
            stop,
        } => {
            if was_known {
                note(format_args!(
                    "answered before, with the same script and versions (--fresh asks again)"
                ));
            }
            (*answer, stop)
        }
        Planned::Failed(code) => return Ok(code),
    };
    let current_dir = std::env::current_dir().ok();
    if let Some(folder) = &current_dir {
        answer.reason = relative_paths::in_sentence(&answer.reason, folder);
    }
    let text = answer.text(output.style(current_dir.as_deref()));
    output.publish(&text, &answer)?;
    if question.plan_file.is_none() && answer.best().is_some_and(|best| best.flags.is_none()) {
        note(format_args!(
            "no flags say all of it: the same command with --write plan.toml writes the file"
        ));
    }
    if let (Some(file), Some(path)) = (plan_file, question.plan_file) {
        match answer.best() {
            Some(best) => {
                file.write(&answer.file(best))?;
                if path != Path::new("-") {
                    note(format_args!("wrote the plan to {}", path.display()));
                }
            }
            None => note(format_args!(
                "{} was not written: there is nothing to put into it",
                path.display()
            )),
        }
    }
    if let Some(path) = destinations.patch {
        match answer.best() {
            Some(_) => write_patch(question, &answer, path)?,
            None => note(format_args!(
                "{} was not written: there is nothing to put into it",
                path.display()
            )),
        }
    }
    if let Some(stop) = stop {
        return Err(stop.into());
    }
    // It takes another rehearsal, so it comes last.
    if let (Some(page), Some(path)) = (page, destinations.page) {
        page::write(&mut runner, &prepared, &on_card, &answer, page)?;
        note(format_args!("wrote the page to {}", path.display()));
    }
    Ok(answer.exit_code)
}

/// The cache key: everything that the answer depends on; `None` if that cannot be determined.
fn key(question: &WhichTricks, prepared: &Prepared) -> Option<Key> {
    let asked = (
        &question.allowed,
        &question.margin,
        question.most_rehearsals,
        &question.largest_batch,
        &question.job,
    );
    Some(
        known_answers::key(prepared, &question.job.library_sizes)?
            .with("question", format!("{asked:?}")),
    )
}

/// Writes the best combination that can be written into the script, and says which one if it is not the recommended one.
fn write_patch(question: &WhichTricks, answer: &PlanAnswer, path: &Path) -> anyhow::Result<()> {
    let command = &question.job.command;
    let mut not_mechanical = None;
    let allowed = answer.best().map(|best| &best.needs_allowed[..]);
    let allowed = allowed.unwrap_or_default();
    let is_allowed = |it: &&Candidate| it.needs_allowed.iter().all(|it| allowed.contains(it));
    for candidate in answer.fitting().filter(is_allowed) {
        match (
            patch::patch_command(command, &candidate.tricks),
            &not_mechanical,
        ) {
            (Ok(patched), first) => {
                if let Some(failure) = first {
                    note(format_args!(
                        "{failure}; {} has the best combination that can be written: {}",
                        path.display(),
                        candidate.in_words
                    ));
                }
                return patch::show(&patched, path);
            }
            (Err(failure), None) => not_mechanical = Some(failure),
            (Err(_), Some(_)) => {}
        }
    }
    match not_mechanical {
        Some(failure) => Err(failure.into()),
        None => Ok(()),
    }
}

/// The result of a search.
enum Searched {
    /// The answer, and what ended the search before it was complete.
    Found(Box<PlanAnswer>, Option<Stop>),
    /// The script fails, which has been said; its exit code.
    Failed(u8),
}

fn searched(
    question: &WhichTricks,
    prepared: &Prepared,
    on_card: &OnCard,
    runner: &mut WholeRuns,
) -> anyhow::Result<Searched> {
    announce(prepared, "looking for a plan", "nothing is computed");
    let plan = find(
        runner,
        &Question {
            card: on_card.clone(),
            allowed: question.allowed.clone(),
            most_rehearsals: question.most_rehearsals,
        },
    )?;
    if let MemoryPlan::NoQuestion {
        run,
        reason: Some(reason),
        ..
    } = &plan
    {
        show_last_lines(&run.last_lines);
        eprintln!("ghostgpu: the script failed: {reason}");
        let code = match Outcome::of(run) {
            Outcome::Fails { code, .. } => code,
            _ => EXIT_FAILURE,
        };
        return Ok(Searched::Failed(code));
    }
    let torch = prepared.torch.as_ref();
    let circumstances = Circumstances {
        card: on_card,
        torch: torch.map(|torch| torch.version.clone()),
        torch_cuda: torch.and_then(|torch| torch.cuda.clone()),
    };
    let mut answer = PlanAnswer::new(&plan, &circumstances);
    let recommended = recommended(&plan);
    let mut stop = plan.into_stop();
    if let (None, Some(point), Some(combination)) = (&stop, &question.largest_batch, recommended) {
        match largest_batch(question, prepared, on_card, point, combination, runner) {
            Ok(found) => answer.largest_batch = found,
            Err(early) => {
                answer.exit_code = early.exit_code();
                stop = Some(early);
            }
        }
    }
    Ok(Searched::Found(Box::new(answer), stop))
}

/// The tricks with which to search for a larger batch; none if the job fits as it is.
fn recommended(plan: &MemoryPlan) -> Option<Combination> {
    match plan {
        MemoryPlan::Fits { .. } => Some(Combination::none()),
        MemoryPlan::NoQuestion { .. } => None,
        MemoryPlan::Searched(searched) => Some(searched.recommended()?.combination.clone()),
    }
}

fn largest_batch(
    question: &WhichTricks,
    prepared: &Prepared,
    on_card: &OnCard,
    point: &SizePoint,
    combination: Combination,
    runner: &mut WholeRuns,
) -> Result<Option<LargestBatch>, Stop> {
    let goal = Goal {
        point: point.clone(),
        given: match point {
            SizePoint::Option(option) => present_value(&prepared.words, option),
            _ => None,
        },
        at_most: None,
        whole_because: None,
        capacity_bytes: on_card.capacity_bytes(),
        margin_bytes: on_card.margin_bytes(),
        first_steps: question.job.extent.first_steps(),
    };
    let mut with_tricks = WithTricks {
        runner,
        combination,
    };
    let mut found = match largest_batch::find(&mut with_tricks, &goal)? {
        largest_batch::LargestBatch::Found(found) => found,
        largest_batch::LargestBatch::NotFound(_) => {
            note(format_args!(
                "the largest batch was not found (`ghostgpu max-batch` with the same tricks says why)"
            ));
            return Ok(None);
        }
    };
    let (_, run) = confirm(&mut with_tricks, &goal, &mut found)?;
    let is_confirmed = run.completion() == Completion::Completed;
    Ok(is_confirmed.then_some(LargestBatch {
        batch: found.batch,
        own: found.seen.batch,
    }))
}

/// Refuses a card that has no room even for CUDA's context.
fn refuse_card_without_room(card: &OnCard) -> Result<(), Failure> {
    let context = card.sheet.overhead.context_bytes;
    let room = card.capacity_bytes().saturating_sub(card.margin_bytes());
    match room > context {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "{} of the card may be used, and the CUDA context alone takes {}",
            human(room),
            human(context)
        ))
        .with_hint("name a larger card or a larger --memory, or a smaller --margin or --reserve")),
    }
}

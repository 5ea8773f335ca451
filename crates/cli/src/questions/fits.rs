//! Does it fit? The job is rehearsed; if it does not fit, again with unlimited memory; with the smallest memory with
//! which it completes; and, if growth is asked for, at other sizes.

use std::path::Path;
use std::sync::Arc;

use ghostgpu_answers::fits::{
    Answer, Circumstances, FollowUps, Need, add_peak_ranges, assumed_sizes_in_words, json_answer,
    next_command, text_answer,
};
use ghostgpu_answers::growth::Scaling;
use ghostgpu_answers::ranks::{NotRun, add_parts, grounds_in_words};
use ghostgpu_ledger::RankAccounts;
use ghostgpu_plan::growth::{self, NoSeries, SequencePoint};
use ghostgpu_plan::verdict::{Margin, OnCard, judge, need_seen_in};
use ghostgpu_plan::{
    MOST_ROUNDS, StepGrowth, assumed_sizes, need, need_of_distinct_ranks, peak_ranges,
};
use ghostgpu_recording::{AssumedSizes, Verdict};
use ghostgpu_rehearse::{
    Completion, Job, Memory, Prepared, RankChoice, Records, Rehearsal, Rehearse, Run, ScriptOutput,
    SizePoint, Stop, UnknownValues, WholeRuns, user_frame,
};
use ghostgpu_text::seconds;

use super::recorded::{complete, write_recording};
use super::{announce, distinct_ranks, relative_paths};
use crate::commands::AnswerOptions;
use crate::failure::{Failure, TIMEOUT_HINT};
use crate::output::Output;
use crate::progress::Rehearsing;
use crate::terminal::{Stream, note};

/// The question, and where the answer goes in addition to standard output.
pub struct DoesItFit<'a> {
    pub job: Job,
    pub output: &'a AnswerOptions,
    /// The file for the report page.
    pub page: Option<&'a Path>,
    /// The file for the recording.
    pub recording: Option<&'a Path>,
    /// Where batch and sequence are set, if the question is also how memory grows.
    pub growth: Option<(SizePoint, SequencePoint)>,
    /// Rehearse the job again to find its need.
    pub measures_need: bool,
    /// How much of the card must be left.
    pub margin: Option<Margin>,
    /// What the user may type next.
    pub follow_ups: FollowUps,
    /// First find out which ranks must be run.
    pub finds_distinct_ranks: bool,
}

pub fn answer(question: &DoesItFit) -> anyhow::Result<u8> {
    let prepare = |path: Option<&Path>| path.map(Output::prepare).transpose();
    let mut output = question.output.prepare()?;
    let page = prepare(question.page)?;
    let file = prepare(question.recording)?;
    let (prepared, mut runner, mut run) = rehearsed(question, output.stream())?;
    runner.send_output_to(ScriptOutput::Kept);
    let (need, measured) = need_of(question, &run, &mut runner)?;
    let assumed = assumed(question, &run, &need, &mut runner)?;
    let (answer, memory) = told(question, &prepared, &mut run, need, measured, assumed);
    let current_dir = std::env::current_dir().ok();
    let style = output.style(current_dir.as_deref());
    output.say(&text_answer(&answer, &memory, &question.follow_ups, style))?;
    let scaling = scaling(question, &run, &prepared, &mut runner)?;
    if let Some(scaling) = &scaling {
        output.say(&scaling.text(style))?;
    }
    output.finish(|| json_answer(&answer, &memory, scaling.as_ref()))?;
    write_recording(&memory, page, file)?;
    note_files(question);
    ended(question, &run, &answer)
}

/// Which sizes are assumed, and what depends on them.
fn assumed(
    question: &DoesItFit,
    run: &Run,
    need: &Need,
    runner: &mut WholeRuns,
) -> Result<Option<AssumedSizes>, Stop> {
    if !question.measures_need {
        return Ok(None);
    }
    let most = match run.completion() {
        Completion::Completed => run.findings.peak_allocated_bytes(),
        _ => need.smallest().and_then(|need| need.allocated_bytes),
    };
    assumed_sizes(runner, run, most)
}

/// The answer, and what was recorded for it: of the job as it is, or with unlimited memory.
fn told(
    question: &DoesItFit,
    prepared: &Prepared,
    run: &mut Run,
    need: Need,
    measured: Option<Memory>,
    assumed: Option<AssumedSizes>,
) -> (Answer, Memory) {
    let on_card = OnCard::of(prepared, question.margin);
    let growth = StepGrowth::of(run);
    let mut judgement = judge(run, need.smallest(), growth.as_ref(), &on_card);
    if let Ok(folder) = std::env::current_dir() {
        judgement.reason = relative_paths::in_sentence(&judgement.reason, &folder);
    }
    let recorded = std::mem::replace(&mut run.memory, Memory::Unwanted);
    let ranks = recorded.recording().map(RankAccounts::all);
    let mut memory = match measured {
        Some(whole) if run.completion() == Completion::OutOfMemory => {
            beside_failed_run(whole, recorded)
        }
        Some(whole) => whole,
        None => recorded,
    };
    let circumstances = Circumstances::of(prepared);
    let mut answer = ghostgpu_answers::fits::answer(run, judgement, need, &circumstances);
    add_parts(&mut answer.ranks, &ranks.unwrap_or_default());
    // In a failed job, missing ranks were not left out on purpose.
    if matches!(
        run.completion(),
        Completion::Completed | Completion::OutOfMemory
    ) {
        let not_run = match question.job.ranks {
            _ if question.finds_distinct_ranks => NotRun::Alike,
            RankChoice::All if are_elsewhere(run) => NotRun::Elsewhere,
            RankChoice::All => NotRun::NotYet,
            _ => NotRun::NotAsked,
        };
        let grounds = grounds_in_words(&answer.ranks, not_run);
        answer.assumptions.splice(0..0, grounds);
    }
    if let Some(ranges) = peak_ranges(run) {
        add_peak_ranges(&mut answer, &ranges);
    }
    if let Some(sizes) = assumed {
        answer.assumptions.insert(0, assumed_sizes_in_words(&sizes));
        answer.assumed_sizes = Some(sizes);
    }
    answer.next = next_command(&answer, &memory, &question.follow_ups);
    complete(&mut memory, &answer, prepared);
    (answer, memory)
}

/// Whether the launcher runs some of the job's ranks on other machines.
fn are_elsewhere(run: &Run) -> bool {
    let mut processes = run.findings.processes.iter();
    let here = run.findings.started_ranks.here;
    here.is_none_or(|here| processes.any(|each| each.world_size > Some(here)))
}

/// Says which files were written.
fn note_files(question: &DoesItFit) {
    for (what, path) in [
        ("the page", question.page),
        ("the recording", question.recording),
    ] {
        if let Some(path) = path.filter(|path| *path != Path::new("-")) {
            note(format_args!("wrote {what} to {}", path.display()));
        }
    }
}

/// The exit code, or the failure of a script that we ended.
fn ended(question: &DoesItFit, run: &Run, answer: &Answer) -> anyhow::Result<u8> {
    match answer.verdict {
        Verdict::TimedOut => Err(timeout_failure(&question.job).into()),
        Verdict::Refused => Err(refusal_failure(answer).into()),
        verdict => {
            if run.ending.shell_code() == 137 && verdict == Verdict::ScriptKilled {
                eprintln!(
                    "ghostgpu: the script was killed by signal 9\n\nhint: the system does that when \
                     the machine itself runs out of memory"
                );
            }
            Ok(answer.exit_code)
        }
    }
}

/// Rehearses the job as it is, with more ranks if the first ones do not represent all.
fn rehearsed(question: &DoesItFit, stream: Stream) -> anyhow::Result<(Prepared, WholeRuns, Run)> {
    let promise = match question.job.values {
        UnknownValues::Plausible => "nothing is computed, unknown values read as ordinary numbers",
        UnknownValues::Zero => "nothing is computed, unknown values read as 0",
    };
    let rehearsal = Rehearsal {
        records: match question.measures_need {
            true => Records::History,
            false => Records::Memory,
        },
        ..Rehearsal::as_it_is()
    };
    let mut job = match question.finds_distinct_ranks {
        true => distinct_ranks::first_guess(&question.job)?,
        false => question.job.clone(),
    };
    let mut round = 0;
    loop {
        let prepared = job.prepare()?;
        if round == 0 {
            announce(&prepared, "running", promise);
        }
        let mut runner = WholeRuns::new(prepared.clone(), Arc::new(Rehearsing::default()));
        runner.send_output_to(match stream {
            Stream::Error => ScriptOutput::AllToStderr,
            Stream::Output => ScriptOutput::Inherited,
        });
        let run = Run::even_if_timed_out(runner.rehearse(&rehearsal))?;
        let may_go_on = question.finds_distinct_ranks && round < MOST_ROUNDS;
        match may_go_on
            .then(|| distinct_ranks::with_more(&job, &run))
            .flatten()
        {
            Some(more) => (job, round) = (more, round + 1),
            None => return Ok((prepared, runner, run)),
        }
    }
}

/// The job's need and, if it was rehearsed with unlimited memory for that, what was recorded then.
fn need_of(
    question: &DoesItFit,
    run: &Run,
    runner: &mut WholeRuns,
) -> Result<(Need, Option<Memory>), Stop> {
    let unknown = |because: &str| Need::Unknown {
        because: because.to_owned(),
    };
    if question.finds_distinct_ranks
        && question.measures_need
        && let Some(found) = need_of_distinct_ranks(runner, run)
    {
        return Ok((ghostgpu_plan::Need::Found(found).into(), None));
    }
    match run.completion() {
        Completion::Completed | Completion::OutOfMemory if question.measures_need => {
            let measured = need(runner, &[], run)?;
            let is_known = matches!(measured.need, ghostgpu_plan::Need::Found(_));
            let is_recorded = matches!(measured.memory, Memory::Recorded(_));
            let memory = Some(measured.memory).filter(|_| is_known && is_recorded);
            Ok((measured.need.into(), memory))
        }
        // What the run used is enough, even if less might be too.
        Completion::Completed => Ok((
            Need::NotLookedFor {
                took: need_seen_in(run),
                because: "it was not searched for (--no-retry)".to_owned(),
            },
            None,
        )),
        Completion::OutOfMemory => Ok((unknown("it was not searched for (--no-retry)"), None)),
        _ => Ok((unknown("the script did not run to its end"), None)),
    }
}

/// The recording of the run with unlimited memory, together with that of the run that failed.
fn beside_failed_run(mut whole: Memory, failed: Memory) -> Memory {
    if let (Memory::Recorded(whole), Memory::Recorded(failed)) = (&mut whole, failed) {
        whole.keep_failed_run(*failed);
    }
    whole
}

/// How memory grows, if that was asked.
fn scaling(
    question: &DoesItFit,
    run: &Run,
    prepared: &Prepared,
    runner: &mut WholeRuns,
) -> Result<Option<Scaling>, Stop> {
    let Some((batch, sequence)) = question.growth.clone() else {
        return Ok(None);
    };
    let measured = match run.completion() {
        Completion::Completed | Completion::OutOfMemory => growth::measure(
            runner,
            &growth::Goal {
                batch,
                sequence,
                words: prepared.words.clone(),
            },
        )?,
        _ => growth::Scaling::unknown(NoSeries::JobDidNotEnd),
    };
    Ok(Some(Scaling::new(&measured)))
}

fn timeout_failure(job: &Job) -> Failure {
    let limit = job.timeout.map(seconds).unwrap_or_default();
    Failure::new(format!("the script did not end within {limit} (--timeout)"))
        .with_hint(TIMEOUT_HINT)
}

fn refusal_failure(answer: &Answer) -> Failure {
    // The last refused call is the one that ended the script.
    let Some(call) = answer.refused.last() else {
        return Failure::new("the script stopped at a call that is not simulated");
    };
    let place = user_frame(&call.stack)
        .map(|frame| format!(", called from {}:{}", frame.file, frame.line))
        .unwrap_or_default();
    Failure::new(format!(
        "the script stopped at `{}`{place}, which is not simulated",
        call.function
    ))
    .with_hint(
        "`ghostgpu doctor` shows what is simulated, `--call-log FILE` what the script called",
    )
}

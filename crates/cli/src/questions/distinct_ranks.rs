//! `--ranks distinct`: runs two ranks for a few steps, then the ranks that follow from them, until there are no new ones.

use std::sync::Arc;

use ghostgpu_plan::distinct_ranks;
use ghostgpu_rehearse::{
    Extent, Job, RankChoice, Records, Rehearsal, Rehearse, Run, WholeRuns, ranks,
};

use crate::failure::Failure;
use crate::progress::Rehearsing;
use crate::terminal::note;

/// Two, because optimizer state exists only from the second step on.
const STEPS: u64 = 2;

/// The job with the ranks that follow from a short run of its first and last one.
pub fn first_guess(job: &Job) -> anyhow::Result<Job> {
    note(format_args!("finding out which ranks differ"));
    let ends = Job {
        ranks: RankChoice::Ends,
        extent: Extent::Steps(STEPS),
        records_memory: false,
        ..job.clone()
    };
    let mut runs = WholeRuns::new(ends.prepare()?, Arc::new(Rehearsing::default()));
    let run = Run::even_if_timed_out(runs.rehearse(&Rehearsal {
        records: Records::Nothing,
        ..Rehearsal::as_it_is()
    }))?;
    if let Some(ranks) = distinct_ranks(&run.findings, &[]) {
        return Ok(with_ranks(job, ranks));
    }
    let said = run
        .last_lines
        .last()
        .map(|line| format!("; its last line: {line}"));
    Err(Failure::new(format!(
        "the job made no group of several ranks{}",
        said.unwrap_or_default()
    ))
    .with_hint(
        "--ranks is for jobs that `torchrun` or `accelerate launch` starts; without it the command is run as it is",
    )
    .into())
}

/// The job with more ranks, if others follow from a run of its present ones.
pub fn with_more(job: &Job, run: &Run) -> Option<Job> {
    let RankChoice::Listed(chosen) = &job.ranks else {
        return None;
    };
    let wanted = distinct_ranks(&run.findings, chosen).filter(|wanted| wanted != chosen);
    let wanted = wanted.filter(|_| !ranks(&run.findings).is_empty())?;
    note(format_args!(
        "{} more ranks may differ: running them too",
        wanted.len() - chosen.len()
    ));
    Some(with_ranks(job, wanted))
}

fn with_ranks(job: &Job, ranks: Vec<u32>) -> Job {
    Job {
        ranks: RankChoice::Listed(ranks),
        ..job.clone()
    }
}

//! `--ranks distinct`: a few ranks are run for a few steps, to find out which ones have to be run.

use std::sync::Arc;

use ghostgpu_rehearse::{
    Extent, Job, RankChoice, Records, Rehearsal, Rehearse, Run, Stop, WholeRuns,
};

use crate::failure::Failure;
use crate::progress::Rehearsing;
use crate::terminal::note;

/// The second step has the optimizer's state.
const STEPS: u64 = 2;

/// The job with the ranks that have to be run.
pub fn with_distinct_ranks(job: &Job) -> anyhow::Result<Job> {
    note(format_args!("finding out which ranks differ"));
    let rehearse = |choice: &RankChoice| -> Result<Run, Stop> {
        let some = Job {
            ranks: choice.clone(),
            extent: Extent::Steps(STEPS),
            records_memory: false,
            ..job.clone()
        };
        let mut runs = WholeRuns::new(some.prepare()?, Arc::new(Rehearsing::default()));
        Run::even_if_timed_out(runs.rehearse(&Rehearsal {
            records: Records::Nothing,
            ..Rehearsal::as_it_is()
        }))
    };
    match ghostgpu_plan::distinct_ranks(rehearse)? {
        Some(ranks) => Ok(Job {
            ranks: RankChoice::Listed(ranks),
            ..job.clone()
        }),
        None => Err(Failure::new("the job made no group of several ranks")
            .with_hint("--ranks is for jobs that `torchrun` or `accelerate launch` starts; without it the command is run as it is")
            .into()),
    }
}

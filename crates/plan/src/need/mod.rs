//! The smallest memory with which a job completes: proposed by replaying its history, confirmed by rehearsals.
//!
//! What a job reserves on a large card is more than it needs: PyTorch caches freed memory and returns it only when
//! memory runs short. So the allocator's history of a run is replayed with less and less memory ([`Proposal`]), and
//! the smallest size that works there is rehearsed on a card with exactly that much. Where there is no history to
//! replay (other allocators, processes that share a card), rehearsals alone find the need.

mod proposal;
mod search;

use ghostgpu_rehearse::{
    Change, Completion, Ending, Memory, Purpose, Records, Rehearsal, Rehearse, Run, Stop,
};

use ghostgpu_whatif::PeakRanges;

use crate::StepGrowth;
use crate::placement::TightRun;
use crate::verdict::{growth_to_come, need_seen_in};

pub use proposal::Proposal;
pub(crate) use proposal::memory_limit;
use search::{GRANULE_BYTES, Search};

/// Growth is extrapolated with a rate that may be too small by one part in this many.
const RATE_PRECISION: u64 = 100;

/// What is known about the memory that a job needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    Found(Smallest),
    Unknown(UnknownNeed),
}

/// The smallest memory with which a job completes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Smallest {
    /// The smallest card: what all processes use of it, contexts and libraries included.
    pub device_bytes: u64,
    /// The part of it that is PyTorch's; `None` if no process reported.
    pub reserved_bytes: Option<u64>,
    /// Peak allocated memory on such a card.
    pub allocated_bytes: Option<u64>,
    /// The smallest card on which PyTorch never has to flush its cache, if known.
    pub comfortable_device_bytes: Option<u64>,
    /// How often PyTorch flushed its cache in the run that confirmed this.
    pub flushes: Option<u64>,
    /// On such a card, convolutions fall back to smaller workspaces and are slower.
    pub takes_smaller_workspaces: bool,
    /// Optimizer steps of that run.
    pub steps: u64,
    /// The part of this that steps which were left out of shortened epochs will add: it is extrapolated.
    pub growth_bytes: u64,
    /// A rehearsal with exactly this memory completed.
    pub is_confirmed: bool,
}

impl Smallest {
    /// The same for the whole training, if the rehearsed part of it grows and the number of further steps is known.
    fn with_growth_to_come(self, run: &Run) -> Self {
        let growth = StepGrowth::of(run);
        let to_come = growth_to_come(growth.as_ref(), run);
        if to_come == 0 {
            return self;
        }
        // The rate is an average, which a short last batch makes too small.
        let more = (to_come + to_come / RATE_PRECISION).next_multiple_of(GRANULE_BYTES);
        let grown = |bytes: u64| bytes.saturating_add(more);
        Self {
            device_bytes: grown(self.device_bytes),
            reserved_bytes: self.reserved_bytes.map(grown),
            allocated_bytes: self.allocated_bytes.map(grown),
            comfortable_device_bytes: self.comfortable_device_bytes.map(grown),
            growth_bytes: more,
            is_confirmed: false,
            ..self
        }
    }
}

/// Why the need is unknown: how the rehearsal with unlimited memory ended instead of completing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnknownNeed {
    OutOfMemoryToo,
    TimedOut,
    NotSimulated,
    PreloadBlocked,
    Exception(String),
    Ended(Ending),
}

/// A need and, if the job was rehearsed with unlimited memory to find it, what was recorded then.
#[derive(Debug)]
pub struct MeasuredNeed {
    pub need: Need,
    pub memory: Memory,
}

/// The need of the job with `changes`, given a rehearsal of it. If `run` did not complete, or has no history, the job is
/// rehearsed again with unlimited memory.
pub fn need(
    runner: &mut dyn Rehearse,
    changes: &[Change],
    run: &Run,
) -> Result<MeasuredNeed, Stop> {
    let is_whole = run.completion() == Completion::Completed;
    let was_unrecorded = matches!(run.memory, Memory::Unwanted) && run.history.is_none();
    if is_whole && !(was_unrecorded && run.findings.used_cuda()) {
        let found = smallest(runner, changes, run)?;
        let seen = need_seen_in(run);
        // A script that recovers from running out of memory completes with less than it asks for.
        let asks_for_more = run.findings.used_cuda()
            && found.device_bytes - found.growth_bytes > seen.device_bytes
            && !depends_on_placement(run);
        return Ok(MeasuredNeed {
            need: Need::Found(if asks_for_more { seen } else { found }),
            memory: Memory::Unwanted,
        });
    }
    let run = with_unlimited_memory(runner, changes, Records::History)?;
    let need = match unknown_because(&run) {
        Some(because) => Need::Unknown(because),
        None => Need::Found(smallest(runner, changes, &run)?),
    };
    Ok(MeasuredNeed {
        need,
        memory: run.memory,
    })
}

/// The need of a job of whose ranks only the distinct ones were run, from a replay of the largest rank's history; no less
/// than ranks with other figures used. It is not confirmed, because rehearsing all distinct ranks with less memory would
/// take as long as everything before. `None` if there is no history to replay.
pub fn need_of_distinct_ranks(runner: &mut dyn Rehearse, run: &Run) -> Option<Smallest> {
    let is_whole = run.completion() == Completion::Completed;
    let proposal = Proposal::of(run).filter(|_| is_whole)?;
    Some(Search::new(runner, &[], run).unconfirmed_beside_others(&proposal))
}

/// The range of a job's peaks if they depend on where the driver places segments; `None` if they do not, or if that
/// cannot be determined.
pub fn peak_ranges(run: &Run) -> Option<PeakRanges> {
    let had_room = run.completion() == Completion::Completed && flushes(run) == Some(0);
    let history = run.history.as_ref().filter(|_| had_room)?;
    history.peak_ranges()
}

/// Rehearses the job with `changes` on cards with unlimited memory.
pub(crate) fn with_unlimited_memory(
    runner: &mut dyn Rehearse,
    changes: &[Change],
    records: Records,
) -> Result<Run, Stop> {
    let rehearsal = Rehearsal {
        purpose: Purpose::Need,
        changes: [changes, &[Change::UnlimitedMemory]].concat(),
        records,
    };
    Run::even_if_timed_out(runner.rehearse(&rehearsal))
}

/// Whether a run that completed would not have with PyTorch's segments elsewhere: on another machine, it needs more.
fn depends_on_placement(run: &Run) -> bool {
    let tight = run.capacity_bytes.and_then(|card| TightRun::of(run, card));
    tight.is_some_and(|tight| !tight.ends_in_other_layouts())
}

/// The smallest memory with which the job completes, given a run that completed.
fn smallest(runner: &mut dyn Rehearse, changes: &[Change], run: &Run) -> Result<Smallest, Stop> {
    if !run.findings.used_cuda() {
        return Ok(Smallest {
            reserved_bytes: Some(0),
            allocated_bytes: Some(0),
            comfortable_device_bytes: Some(0),
            flushes: Some(0),
            steps: steps(run),
            is_confirmed: true,
            ..Smallest::default()
        });
    }
    let mut search = Search::new(runner, changes, run);
    match Proposal::of(run) {
        // The training goes on and takes more memory with every step, so the need of the rehearsed steps is not worth
        // another rehearsal of the same length.
        Some(proposal) if goes_on(run) && StepGrowth::of(run).is_some() => {
            Ok(search.unconfirmed(&proposal))
        }
        Some(proposal) => search.confirm(&proposal),
        None => search.bisect(),
    }
    .map(|found| found.with_growth_to_come(run))
}

/// Whether the training has more steps than the rehearsal, which ended the script or shortened its epochs.
fn goes_on(run: &Run) -> bool {
    let main = run.findings.main_process();
    main.is_some_and(|process| {
        let coverage = process.coverage.as_ref();
        process.stopped_by_step_limit
            || coverage.is_some_and(|coverage| coverage.is_training_shortened)
    })
}

fn unknown_because(run: &Run) -> Option<UnknownNeed> {
    Some(match run.completion() {
        Completion::Completed => return None,
        Completion::OutOfMemory => UnknownNeed::OutOfMemoryToo,
        Completion::TimedOut => UnknownNeed::TimedOut,
        Completion::Refused => UnknownNeed::NotSimulated,
        Completion::PreloadBlocked => UnknownNeed::PreloadBlocked,
        Completion::ScriptFailed | Completion::ScriptKilled => match run.exception() {
            Some(exception) => UnknownNeed::Exception(exception.to_owned()),
            None => UnknownNeed::Ended(run.ending),
        },
    })
}

/// The number of completed optimizer steps.
fn steps(run: &Run) -> u64 {
    let processes = run.findings.processes.iter();
    processes.map(|process| process.steps).max().unwrap_or(0)
}

/// How often PyTorch flushed its cache; `None` if no process reported.
pub(crate) fn flushes(run: &Run) -> Option<u64> {
    let processes = &run.findings.processes;
    let peaks = processes.iter().flat_map(|process| &process.peaks);
    (!processes.is_empty()).then(|| peaks.map(|peaks| peaks.retries).sum())
}

#[cfg(test)]
mod tests;

//! Rehearsals with less and less memory.

use ghostgpu_recording::RankPeak;
use ghostgpu_rehearse::{Change, Completion, Purpose, Rehearsal, Rehearse, Run, Stop, ranks};

use super::proposal::Proposal;
use super::{Smallest, flushes, steps};

/// PyTorch gets its memory in multiples of this.
pub const GRANULE_BYTES: u64 = 2 << 20;

/// How often a proposal that is too small is raised.
const RAISES: u32 = 4;

/// How often an estimate that is enough is lowered.
const LOWERINGS: u32 = 2;

/// How many rehearsals a bisection takes at most.
const REHEARSALS: u32 = 6;

/// A search ends when the bounds are closer than one part in this many.
const PRECISION: u64 = 100;

/// Searches for the smallest memory with which a job completes.
pub struct Search<'a> {
    runner: &'a mut dyn Rehearse,
    changes: &'a [Change],
    /// A run that completed, so its peak is enough.
    run: &'a Run,
}

/// The bounds of the answer so far.
struct Bounds {
    /// The largest memory that was not enough; at first a lower estimate.
    too_little: u64,
    enough: u64,
    /// The rehearsal that completed with `enough`, once there is one.
    confirmed_by: Option<Run>,
}

/// How a rehearsal with a given memory ended.
enum Attempt {
    Completed,
    Failed,
    /// Other memory sizes would time out as well.
    TimedOut,
}

impl<'a> Search<'a> {
    pub fn new(runner: &'a mut dyn Rehearse, changes: &'a [Change], run: &'a Run) -> Self {
        Self {
            runner,
            changes,
            run,
        }
    }

    /// Rehearses the proposal, unless less is enough, below a gap that only the replay has. If it is not enough, rehearses more and more, then
    /// bisects; if it is an estimate and is enough, a little less.
    pub fn confirm(&mut self, proposal: &Proposal) -> Result<Smallest, Stop> {
        let peak = self.run.findings.peak_device_bytes();
        let proposed = proposal.card_for(proposal.smallest_bytes);
        let mut bounds = Bounds {
            too_little: 0,
            enough: peak.max(proposed),
            confirmed_by: None,
        };
        if let Some(below_gap) = proposal.below_gap_bytes {
            // If it completes in the gap, that is none of the job's own.
            let in_gap = proposal.card_for(proposal.smallest_bytes - GRANULE_BYTES);
            if matches!(self.try_memory(in_gap, &mut bounds)?, Attempt::Completed) {
                self.try_memory(proposal.card_for(below_gap), &mut bounds)?;
                return Ok(self.confirmed(proposal, &bounds));
            }
        }
        match self.try_memory(proposed, &mut bounds)? {
            Attempt::Failed => self.raise(proposed, &mut bounds)?,
            Attempt::Completed if proposal.is_estimate => self.lower(proposal, &mut bounds)?,
            Attempt::Completed | Attempt::TimedOut => {}
        }
        Ok(self.confirmed(proposal, &bounds))
    }

    fn confirmed(&self, proposal: &Proposal, bounds: &Bounds) -> Smallest {
        let reserved = proposal.reserved_on(bounds.enough);
        let comfortable = proposal.card_for(proposal.comfortable_bytes);
        Smallest {
            takes_smaller_workspaces: proposal.takes_smaller_workspaces,
            ..self.found(bounds, Some(reserved), Some(comfortable))
        }
    }

    /// The proposal as it is, without a rehearsal.
    pub fn unconfirmed(&self, proposal: &Proposal) -> Smallest {
        let enough = proposal.card_for(proposal.smallest_bytes);
        let bounds = Bounds {
            too_little: 0,
            enough,
            confirmed_by: None,
        };
        let comfortable = proposal.card_for(proposal.comfortable_bytes);
        Smallest {
            flushes: Some(proposal.flushes),
            takes_smaller_workspaces: proposal.takes_smaller_workspaces,
            ..self.found(&bounds, Some(proposal.smallest_bytes), Some(comfortable))
        }
    }

    /// The proposal without a rehearsal, raised to what ranks with other figures than the replayed one used.
    pub fn unconfirmed_beside_others(&self, proposal: &Proposal) -> Smallest {
        let found = self.unconfirmed(proposal);
        let main = self.run.findings.main_process().and_then(|main| main.rank);
        let ranks = ranks(&self.run.findings);
        let figures = |rank: &RankPeak| (rank.peak_allocated_bytes, rank.peak_reserved_bytes);
        let of_main = ranks
            .iter()
            .find(|rank| Some(rank.rank) == main)
            .map(figures);
        let others = ranks.iter().filter(|rank| Some(figures(rank)) != of_main);
        let taken = others.map(|rank| rank.peak_device_bytes).max().unwrap_or(0);
        if taken <= found.device_bytes {
            return found;
        }
        Smallest {
            device_bytes: taken,
            reserved_bytes: Some(proposal.reserved_on(taken)),
            comfortable_device_bytes: found.comfortable_device_bytes.map(|bytes| bytes.max(taken)),
            ..found
        }
    }

    fn lower(&mut self, proposal: &Proposal, bounds: &mut Bounds) -> Result<(), Stop> {
        let step = (proposal.smallest_bytes / PRECISION).next_multiple_of(GRANULE_BYTES);
        let allocated = self.run.findings.peak_allocated_bytes().unwrap_or(0);
        for _ in 0..LOWERINGS {
            let memory = bounds.enough.saturating_sub(step);
            if memory < allocated + proposal.outside_bytes {
                break;
            }
            if !matches!(self.try_memory(memory, bounds)?, Attempt::Completed) {
                break;
            }
        }
        Ok(())
    }

    fn raise(&mut self, proposed: u64, bounds: &mut Bounds) -> Result<(), Stop> {
        // The replica is rarely far off, so the first raise is small; each further one is twice as large.
        let mut raise = (proposed / 200).max(GRANULE_BYTES);
        for _ in 0..RAISES {
            let is_confirmed = bounds.confirmed_by.is_some();
            let memory = match is_confirmed {
                false => bounds.too_little + raise.next_multiple_of(GRANULE_BYTES),
                true => bounds.middle(),
            };
            if memory >= bounds.enough || (is_confirmed && bounds.is_precise()) {
                break;
            }
            if matches!(self.try_memory(memory, bounds)?, Attempt::TimedOut) {
                break;
            }
            raise *= 2;
        }
        Ok(())
    }

    /// Bisects between what the run allocated and what it reserved.
    pub fn bisect(&mut self) -> Result<Smallest, Stop> {
        let findings = &self.run.findings;
        let peak = findings.peak_device_bytes();
        // At best, the job can do without everything that the allocators of its processes cached.
        let peaks = findings.processes.iter().flat_map(|process| &process.peaks);
        let cached: u64 = peaks
            .map(|peaks| {
                let reserved = peaks.peak_reserved_bytes;
                reserved.saturating_sub(peaks.peak_allocated_bytes)
            })
            .sum();
        let mut bounds = Bounds {
            too_little: peak.saturating_sub(cached),
            enough: peak,
            confirmed_by: None,
        };
        for _ in 0..REHEARSALS {
            let memory = bounds.middle();
            if memory >= bounds.enough || bounds.is_precise() {
                break;
            }
            if matches!(self.try_memory(memory, &mut bounds)?, Attempt::TimedOut) {
                break;
            }
        }
        let last = bounds.confirmed_by.as_ref().unwrap_or(self.run);
        let reserved = last.findings.peak_reserved_bytes();
        let comfortable = (flushes(self.run) == Some(0)).then_some(peak);
        Ok(self.found(&bounds, reserved, comfortable))
    }

    /// One rehearsal on cards with `bytes` of memory.
    fn try_memory(&mut self, bytes: u64, bounds: &mut Bounds) -> Result<Attempt, Stop> {
        let purpose = Purpose::SmallestMemory { bytes };
        let mut changes = [self.changes, &[Change::Memory(bytes)]].concat();
        // Later epochs that showed nothing new need no rehearsal: the replay has covered them with this memory.
        let main = self.run.findings.main_process();
        let coverage = main.and_then(|process| process.coverage.as_ref());
        if coverage.is_some_and(|coverage| coverage.later_passes_are_alike) {
            changes.push(Change::WithoutLaterPasses);
        }
        let rehearsal = Rehearsal::figures(purpose, changes);
        let run = Run::even_if_timed_out(self.runner.rehearse(&rehearsal))?;
        Ok(match run.completion() {
            Completion::Completed => {
                bounds.enough = bytes;
                bounds.confirmed_by = Some(run);
                Attempt::Completed
            }
            Completion::TimedOut => Attempt::TimedOut,
            // Not only `OutOfMemory`: libraries report a failed allocation with errors of their own.
            _ => {
                bounds.too_little = bytes;
                Attempt::Failed
            }
        })
    }

    fn found(&self, bounds: &Bounds, reserved: Option<u64>, comfortable: Option<u64>) -> Smallest {
        let run = bounds.confirmed_by.as_ref().unwrap_or(self.run);
        Smallest {
            device_bytes: bounds.enough,
            reserved_bytes: reserved,
            allocated_bytes: run.findings.peak_allocated_bytes(),
            comfortable_device_bytes: comfortable.map(|bytes| bytes.max(bounds.enough)),
            flushes: flushes(run),
            takes_smaller_workspaces: false,
            steps: steps(run),
            growth_bytes: 0,
            is_confirmed: bounds.confirmed_by.is_some(),
        }
    }
}

impl Bounds {
    fn middle(&self) -> u64 {
        let open = self.enough.saturating_sub(self.too_little);
        self.too_little + (open / 2).next_multiple_of(GRANULE_BYTES)
    }

    /// The bounds are close enough to each other.
    fn is_precise(&self) -> bool {
        self.enough.saturating_sub(self.too_little) <= self.enough / PRECISION
    }
}

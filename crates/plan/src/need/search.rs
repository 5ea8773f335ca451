//! Rehearsals with less and less memory.

use ghostgpu_recording::RankPeak;
use ghostgpu_rehearse::{Change, Completion, Purpose, Rehearsal, Rehearse, Run, Stop, ranks};

use super::proposal::Proposal;
use super::{Smallest, flushes, steps};

/// PyTorch gets its memory in multiples of this.
const GRANULE_BYTES: u64 = 2 << 20;

/// A proposal that is not enough is raised so many times.
const RAISES: u32 = 4;

/// An estimate that is enough is lowered so many times.
const LOWERINGS: u32 = 2;

/// Rehearsals where there is no history to replay.
const REHEARSALS: u32 = 6;

/// Parts of the memory that a bisection may leave open.
const PRECISION: u64 = 100;

/// Looks for the least memory at which a job ends of which one run did.
pub struct Search<'a> {
    runner: &'a mut dyn Rehearse,
    changes: &'a [Change],
    /// It ended, and had no more than its peak.
    run: &'a Run,
}

/// What is known while looking.
struct Known {
    /// Not enough, as far as is known.
    too_little: u64,
    enough: u64,
    /// The rehearsal that had `enough` and ended; none before there was one.
    confirmed_by: Option<Run>,
}

/// What a rehearsal with a certain memory came to.
enum Tried {
    Ended,
    DidNot,
    /// It did not end in time, and others would not either.
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

    /// Rehearses what is proposed. Where that is not enough, more and more, and then what lies between; where
    /// it was a mere estimate, a little less.
    pub fn confirm(&mut self, proposal: &Proposal) -> Result<Smallest, Stop> {
        let peak = self.run.findings.peak_device_bytes();
        let proposed = proposal.card_for(proposal.smallest_bytes);
        let comfortable = proposal.card_for(proposal.comfortable_bytes);
        let mut known = Known {
            too_little: 0,
            enough: peak.max(proposed),
            confirmed_by: None,
        };
        match self.try_memory(proposed, &mut known)? {
            Tried::DidNot => self.raise(proposed, &mut known)?,
            Tried::Ended if proposal.is_estimate => self.lower(proposal, &mut known)?,
            Tried::Ended | Tried::TimedOut => {}
        }
        let reserved = proposal.reserved_on(known.enough);
        Ok(Smallest {
            takes_smaller_workspaces: proposal.takes_smaller_workspaces,
            ..self.found(&known, Some(reserved), Some(comfortable))
        })
    }

    /// What is proposed, without a rehearsal.
    pub fn unconfirmed(&self, proposal: &Proposal) -> Smallest {
        let enough = proposal.card_for(proposal.smallest_bytes);
        let known = Known {
            too_little: 0,
            enough,
            confirmed_by: None,
        };
        let comfortable = proposal.card_for(proposal.comfortable_bytes);
        Smallest {
            flushes: Some(proposal.flushes),
            takes_smaller_workspaces: proposal.takes_smaller_workspaces,
            ..self.found(&known, Some(proposal.smallest_bytes), Some(comfortable))
        }
    }

    /// The same, and enough for all ranks that had other figures than the one whose history was replayed.
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

    fn lower(&mut self, proposal: &Proposal, known: &mut Known) -> Result<(), Stop> {
        let step = (proposal.smallest_bytes / PRECISION).next_multiple_of(GRANULE_BYTES);
        let allocated = self.run.findings.peak_allocated_bytes().unwrap_or(0);
        for _ in 0..LOWERINGS {
            let memory = known.enough.saturating_sub(step);
            if memory < allocated + proposal.outside_bytes {
                break;
            }
            if !matches!(self.try_memory(memory, known)?, Tried::Ended) {
                break;
            }
        }
        Ok(())
    }

    fn raise(&mut self, proposed: u64, known: &mut Known) -> Result<(), Stop> {
        // The replica is seldom far off: small raises first, each twice the one before.
        let mut raise = (proposed / 200).max(GRANULE_BYTES);
        for _ in 0..RAISES {
            let is_confirmed = known.confirmed_by.is_some();
            let memory = match is_confirmed {
                false => known.too_little + raise.next_multiple_of(GRANULE_BYTES),
                true => known.middle(),
            };
            if memory >= known.enough || (is_confirmed && known.is_precise()) {
                break;
            }
            if matches!(self.try_memory(memory, known)?, Tried::TimedOut) {
                break;
            }
            raise *= 2;
        }
        Ok(())
    }

    /// Rehearses between what is allocated and what was reserved.
    pub fn bisect(&mut self) -> Result<Smallest, Stop> {
        let findings = &self.run.findings;
        let peak = findings.peak_device_bytes();
        // What the allocators of all processes had cached, at most, can be done without.
        let peaks = findings.processes.iter().flat_map(|process| &process.peaks);
        let cached: u64 = peaks
            .map(|peaks| {
                let reserved = peaks.peak_reserved_bytes;
                reserved.saturating_sub(peaks.peak_allocated_bytes)
            })
            .sum();
        let mut known = Known {
            too_little: peak.saturating_sub(cached),
            enough: peak,
            confirmed_by: None,
        };
        for _ in 0..REHEARSALS {
            let memory = known.middle();
            if memory >= known.enough || known.is_precise() {
                break;
            }
            if matches!(self.try_memory(memory, &mut known)?, Tried::TimedOut) {
                break;
            }
        }
        let last = known.confirmed_by.as_ref().unwrap_or(self.run);
        let reserved = last.findings.peak_reserved_bytes();
        let comfortable = (flushes(self.run) == Some(0)).then_some(peak);
        Ok(self.found(&known, reserved, comfortable))
    }

    /// One rehearsal on cards with so much memory.
    fn try_memory(&mut self, bytes: u64, known: &mut Known) -> Result<Tried, Stop> {
        let purpose = Purpose::SmallestMemory { bytes };
        let mut changes = [self.changes, &[Change::Memory(bytes)]].concat();
        // The replay has gone through them with so much memory.
        let main = self.run.findings.main_process();
        let coverage = main.and_then(|process| process.coverage.as_ref());
        if coverage.is_some_and(|coverage| coverage.later_passes_are_alike) {
            changes.push(Change::WithoutLaterPasses);
        }
        let rehearsal = Rehearsal::figures(purpose, changes);
        let run = Run::even_if_timed_out(self.runner.rehearse(&rehearsal))?;
        Ok(match run.completion() {
            Completion::Completed => {
                known.enough = bytes;
                known.confirmed_by = Some(run);
                Tried::Ended
            }
            Completion::TimedOut => Tried::TimedOut,
            // Libraries have words of their own for memory that they did not get.
            _ => {
                known.too_little = bytes;
                Tried::DidNot
            }
        })
    }

    fn found(&self, known: &Known, reserved: Option<u64>, comfortable: Option<u64>) -> Smallest {
        let run = known.confirmed_by.as_ref().unwrap_or(self.run);
        Smallest {
            device_bytes: known.enough,
            reserved_bytes: reserved,
            allocated_bytes: run.findings.peak_allocated_bytes(),
            comfortable_device_bytes: comfortable.map(|bytes| bytes.max(known.enough)),
            flushes: flushes(run),
            takes_smaller_workspaces: false,
            steps: steps(run),
            is_confirmed: known.confirmed_by.is_some(),
        }
    }
}

impl Known {
    fn middle(&self) -> u64 {
        let open = self.enough.saturating_sub(self.too_little);
        self.too_little + (open / 2).next_multiple_of(GRANULE_BYTES)
    }

    /// What is left open is a small part of the answer.
    fn is_precise(&self) -> bool {
        self.enough.saturating_sub(self.too_little) <= self.enough / PRECISION
    }
}

//! The largest batch that fits: searched in forks, or else in whole runs.

mod confirm;
mod forked;
mod result;
mod search;
mod stage;
mod two_stages;
mod whole;

use ghostgpu_rehearse::{Change, Runner, SizePoint, Sizes, Stop};

use forked::{Forked, forked};
use search::Search;
use whole::by_runs;

pub use confirm::confirm;
pub use result::{Confirmation, Found, LargestBatch, NotFound, WholeBecause};

/// What to search for, and where.
#[derive(Clone, Debug)]
pub struct Goal {
    /// Where the batch is set.
    pub point: SizePoint,
    /// The batch that the script's command line sets there, if any.
    pub given: Option<u64>,
    pub at_most: Option<u64>,
    /// Why the script must be started anew for each batch; `None` lets it be forked where that is sound.
    pub whole_because: Option<WholeBecause>,
    /// The card's memory.
    pub capacity_bytes: u64,
    /// How much of it must stay free.
    pub margin_bytes: u64,
    /// The number of steps of the first stage of the search; `None` if the job's own extent is no longer than that.
    pub first_steps: Option<u64>,
}

/// Searches for the largest batch.
pub fn find(runner: &mut dyn Runner, goal: &Goal) -> Result<LargestBatch, Stop> {
    if let Some(because) = goal.whole_because.clone() {
        return by_runs(runner, goal, &goal.point, because, None);
    }
    let mut point = goal.point.clone();
    loop {
        match forked(runner, goal, &point)? {
            Forked::Over(result) => return Ok(result),
            Forked::Whole(because, own) => return by_runs(runner, goal, &point, because, own),
            // Evaluation or inference: no loader is iterated with gradients enabled.
            Forked::OnlyOtherLoaders => point = SizePoint::FirstLoader,
        }
    }
}

impl Goal {
    fn search(&self, start: u64) -> Search {
        // Leaves room to multiply sizes without overflow.
        let most = self.at_most.unwrap_or(u64::MAX >> 8);
        Search::new(start, most, self.memory_bytes())
    }

    /// The memory that a batch must fit into.
    fn memory_bytes(&self) -> u64 {
        self.capacity_bytes.saturating_sub(self.margin_bytes)
    }

    /// The change that reduces the card of every rehearsal by the margin.
    fn card(&self) -> Vec<Change> {
        match self.margin_bytes {
            0 => Vec::new(),
            bytes => vec![Change::LessMemory(bytes)],
        }
    }
}

fn with_batch(point: &SizePoint, batch: u64) -> Change {
    Change::Sizes {
        point: point.clone(),
        sizes: Sizes::batch(batch),
    }
}

#[cfg(test)]
mod tests;

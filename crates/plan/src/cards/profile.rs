//! What a rehearsal with unlimited memory on one card predicts for others of the same compute capability.

use ghostgpu_device::Card;
use ghostgpu_rehearse::{Change, Purpose, Records, Rehearsal, Rehearse, Run, Stop};

use super::alone::changes;
use crate::need::{Proposal, Smallest};
use crate::verdict::not_known;

/// A job that was rehearsed on a card with unlimited memory.
pub struct Profile<'a> {
    pub card: &'a Card,
    pub run: Run,
}

/// What a replay predicts for a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreseen {
    pub proposal: Proposal,
    /// Compared between profiles, together with `not_known`: the two runs must have covered the same.
    steps: Vec<u64>,
    not_known: Option<String>,
}

impl<'a> Profile<'a> {
    pub fn rehearse(runner: &mut dyn Rehearse, card: &'a Card) -> Result<Self, Stop> {
        let rehearsal = Rehearsal {
            purpose: Purpose::OnCard {
                name: card.name.to_owned(),
                is_unlimited: true,
            },
            changes: [changes(card), vec![Change::UnlimitedMemory]].concat(),
            records: Records::History,
        };
        let run = Run::even_if_timed_out(runner.rehearse(&rehearsal))?;
        Ok(Self { card, run })
    }

    /// The prediction for a card of the same capability; `None` if the history cannot be replayed for it.
    pub fn on(&mut self, card: &Card) -> Option<Foreseen> {
        let (own, other) = (self.card.sheet().overhead, card.sheet().overhead);
        let history = self.run.history.as_mut()?;
        if !history.move_beside_context(other.context_bytes, other.kernels_bytes) {
            return None;
        }
        let mut proposal = Proposal::of(&self.run)?;
        // The script limits PyTorch to a fraction of the card, which would be another amount on another card.
        if proposal.limit.is_some() {
            return None;
        }
        let history = self.run.history.as_ref()?;
        proposal.comfortable_bytes = history.ask(&history.question()).peak_reserved_bytes();
        let outside = proposal.outside_bytes + other.context_bytes + other.kernels_bytes;
        proposal.outside_bytes = outside.saturating_sub(own.context_bytes + own.kernels_bytes);
        let processes = self.run.findings.processes.iter();
        Some(Foreseen {
            proposal,
            steps: processes.map(|process| process.steps).collect(),
            not_known: not_known(&self.run),
        })
    }
}

impl Foreseen {
    /// The smallest card on which the job completes.
    pub fn needed_bytes(&self) -> u64 {
        self.proposal.card_for(self.proposal.smallest_bytes)
    }

    /// The smallest card on which PyTorch never flushes its cache.
    pub fn comfortable_bytes(&self) -> u64 {
        self.proposal.card_for(self.proposal.comfortable_bytes)
    }

    /// The job's need on this card. `confirmed` is its need on the card that was rehearsed, for the figures that a
    /// replay does not give.
    pub fn need(&self, confirmed: &Smallest) -> Smallest {
        let growth = confirmed.growth_bytes;
        let comfortable = self.comfortable_bytes().max(self.needed_bytes());
        Smallest {
            device_bytes: self.needed_bytes() + growth,
            reserved_bytes: Some(self.proposal.smallest_bytes + growth),
            comfortable_device_bytes: Some(comfortable + growth),
            takes_smaller_workspaces: self.proposal.takes_smaller_workspaces,
            is_confirmed: false,
            ..confirmed.clone()
        }
    }
}

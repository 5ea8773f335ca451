//! What a rehearsal with unlimited memory on one card says about others of its compute capability.

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

/// What the job needs on a card, as a replay says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreseen {
    pub proposal: Proposal,
    /// What follows from other parts of a run, and may not differ.
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

    /// What it says about a card of the same capability; none where nothing can be replayed.
    pub fn on(&mut self, card: &Card) -> Option<Foreseen> {
        let (own, other) = (self.card.sheet().overhead, card.sheet().overhead);
        let history = self.run.history.as_mut()?;
        if !history.move_beside_context(other.context_bytes, other.kernels_bytes) {
            return None;
        }
        let mut proposal = Proposal::of(&self.run)?;
        // What the script may have of a card is a part of all that the card has, rounded there.
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
    /// The smallest card.
    pub fn needed_bytes(&self) -> u64 {
        self.proposal.card_for(self.proposal.smallest_bytes)
    }

    /// The smallest card on which nothing runs short.
    pub fn comfortable_bytes(&self) -> u64 {
        self.proposal.card_for(self.proposal.comfortable_bytes)
    }

    /// The need of another card, of which `confirmed` is that of the card that was rehearsed.
    pub fn need(&self, confirmed: &Smallest) -> Smallest {
        Smallest {
            device_bytes: self.needed_bytes(),
            reserved_bytes: Some(self.proposal.smallest_bytes),
            comfortable_device_bytes: Some(self.comfortable_bytes().max(self.needed_bytes())),
            takes_smaller_workspaces: self.proposal.takes_smaller_workspaces,
            is_confirmed: false,
            ..confirmed.clone()
        }
    }
}

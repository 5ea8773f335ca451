//! The memory of each rank of a job at its own peak, and why one has more than another.

use ghostgpu_recording::{Category, Recording};

use crate::accounts::{Accounts, Part};
use crate::card_ledger::CardLedger;

/// A rank at its peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankAccounts {
    pub rank: u32,
    /// On the card on which it used most.
    pub accounts: Accounts,
    /// It holds shards of parameters, and gathers whole ones when a layer needs them.
    pub is_sharded: bool,
}

impl RankAccounts {
    /// The ranks of a recording in ascending order; empty if the job has only one.
    pub fn all(recording: &Recording) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for card in &recording.cards {
            let Some(rank) = card.rank else {
                continue;
            };
            let ledger = CardLedger::new(recording, card);
            let mut accounts = ledger.accounts(ledger.peak().moment);
            // What other processes use of the same card does not belong to this rank.
            accounts.other_processes_bytes = 0;
            let mut categories = card.allocations.iter().map(|one| one.category);
            let found = Self {
                rank,
                accounts,
                is_sharded: categories.any(|category| category == Category::Gathered),
            };
            match all.last_mut().filter(|last| last.rank == rank) {
                Some(last) if last.height() >= found.height() => {}
                Some(last) => *last = found,
                None => all.push(found),
            }
        }
        all
    }

    fn height(&self) -> u64 {
        self.accounts.allocated_bytes
    }

    /// Its parts that are not empty, in the order in which reports show them.
    pub fn parts(&self) -> impl Iterator<Item = (Part, u64)> + '_ {
        self.accounts.parts().filter(|(_, bytes)| *bytes > 0)
    }
}

/// The part whose bytes in `more` exceed those in `less` by most, and by how much; `None` if no part does.
pub fn largest_excess(more: &[(Part, u64)], less: impl Fn(Part) -> u64) -> Option<(Part, u64)> {
    let excesses = more
        .iter()
        .map(|(part, bytes)| (*part, bytes.saturating_sub(less(*part))));
    let excesses = excesses.filter(|(_, bytes)| *bytes > 0);
    excesses.reduce(|best, next| if next.1 > best.1 { next } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ghostgpu_recording::made_up::{MadeUp, recording};

    #[test]
    fn every_rank_has_its_own_peak_and_its_parts_add_up() {
        let of_rank = |rank: u32, layers| {
            let mut made = recording(MadeUp { layers, steps: 2 });
            for card in &mut made.cards {
                card.rank = Some(rank);
                card.nccl_bytes = card.outside_bytes / 4;
            }
            made
        };
        let mut job = of_rank(0, 2);
        job.join(of_rank(1, 4));
        let ranks = RankAccounts::all(&job);
        assert_eq!(ranks.iter().map(|one| one.rank).collect::<Vec<_>>(), [0, 1]);
        for (one, card) in ranks.iter().zip(&job.cards) {
            let ledger = CardLedger::new(&job, card);
            assert_eq!(one.accounts.allocated_bytes, ledger.peak().allocated_bytes);
            let sum: u64 = one.parts().map(|(_, bytes)| bytes).sum();
            assert_eq!(sum, one.accounts.on_card_bytes());
            assert_eq!(one.accounts.part(Part::Nccl), card.outside_bytes / 4);
        }
        let parts: Vec<_> = ranks[1].parts().collect();
        let (_, bytes) = largest_excess(&parts, |part| ranks[0].accounts.part(part)).expect("more");
        assert!(bytes > 0);
        assert_eq!(largest_excess(&parts, |_| u64::MAX), None);
        assert_eq!(
            RankAccounts::all(&recording(MadeUp {
                layers: 1,
                steps: 1
            })),
            []
        );
    }
}

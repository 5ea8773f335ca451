//! Which ranks of a job must be run so that the memory of every rank is known.
//!
//! The process groups that a job creates show how its ranks are arranged, and the meshes of its parameters show how
//! large each rank's shards are. A few ranks are run for a few steps to learn this. Then the ranks that follow from it
//! are run, and so on until nothing new is learned:
//!
//! - one rank for every combination of shard sizes;
//! - the first and the last rank of every group;
//! - for each chosen rank, all ranks it exchanges messages with: the stages of a pipeline differ, and none runs without
//!   the others;
//! - more ranks of a group whose ranks differ for no known reason.

use std::collections::{BTreeMap, BTreeSet};

use ghostgpu_rehearse::{Findings, ranks};
use ghostgpu_session::{GroupFamily, ProcessReport};

/// The first round finds meshes, the second pipeline stages, the third the parameters of those stages; the rest is
/// slack.
pub const MOST_ROUNDS: usize = 6;

/// If the ranks of a group differ, a group of up to this size is run as a whole; of a larger one, two more ranks are.
const WHOLE_GROUP: usize = 8;

/// The ranks to run next, in ascending order, after `run` was run. The same ranks mean that there is nothing more to
/// learn; `None` means that the job has only one rank.
pub fn distinct_ranks(findings: &Findings, run: &[u32]) -> Option<Vec<u32>> {
    let run: BTreeSet<u32> = run.iter().copied().collect();
    let wanted = Arrangement::of(findings)?.wanted(&run, findings);
    Some(wanted.into_iter().collect())
}

/// How the ranks of a job are arranged, according to the ranks that were run.
struct Arrangement {
    size: u32,
    families: Vec<GroupFamily>,
    /// One list per distinct report: for each rank, the first rank whose shards have the same sizes.
    shards: Vec<Vec<u32>>,
}

impl Arrangement {
    fn of(findings: &Findings) -> Option<Self> {
        let ranks = || {
            let of_several = |process: &&ProcessReport| process.world_size > Some(1);
            findings.processes.iter().filter(of_several)
        };
        let size = ranks().filter_map(|process| process.world_size).max()?;
        let mut families: Vec<GroupFamily> = Vec::new();
        for family in ranks().flat_map(|process| &process.families) {
            match families
                .iter_mut()
                .find(|known| known.groups == family.groups)
            {
                Some(known) => known.has_messages |= family.has_messages,
                None => families.push(family.clone()),
            }
        }
        let mut shards: Vec<Vec<u32>> = ranks()
            .map(|process| process.shards.clone())
            .filter(|shards| shards.len() == size as usize)
            .collect();
        shards.sort_unstable();
        shards.dedup();
        Some(Self {
            size,
            families,
            shards,
        })
    }

    /// A key that is equal for ranks whose shards have the same sizes.
    fn parts(&self, rank: u32) -> Vec<u32> {
        let of_rank = |shards: &Vec<u32>| shards.get(rank as usize).copied().unwrap_or(rank);
        self.shards.iter().map(of_rank).collect()
    }

    fn wanted(&self, chosen: &BTreeSet<u32>, findings: &Findings) -> BTreeSet<u32> {
        let mut wanted = chosen.clone();
        wanted.extend([0, self.size - 1]);
        for family in self.families.iter().filter(|family| !family.has_messages) {
            let own = family.groups.iter().find(|group| group.contains(&0));
            wanted.extend(own.into_iter().filter_map(|group| group.last().copied()));
            for group in &family.groups {
                wanted.extend(self.more_of(group, findings));
            }
        }
        wanted = self.with_partners(wanted);
        let mut seen = BTreeSet::new();
        // Rank 0 does not represent any other rank, because it often has extra work.
        let at_hand = wanted.iter().copied().chain(1..self.size);
        let new: Vec<u32> = at_hand
            .filter(|&rank| rank > 0 && seen.insert(self.parts(rank)))
            .collect();
        wanted.extend(new);
        self.with_partners(wanted)
    }

    /// More ranks of a group to run, if ranks with equal shards differ in memory for no known reason.
    fn more_of(&self, group: &[u32], findings: &Findings) -> Vec<u32> {
        let mut figures: BTreeMap<Vec<u32>, BTreeSet<(u64, u64)>> = BTreeMap::new();
        for rank in ranks(findings) {
            if group.contains(&rank.rank) && !self.is_in_pipeline(rank.rank, group) {
                let own = (rank.peak_allocated_bytes, rank.peak_reserved_bytes);
                figures
                    .entry(self.parts(rank.rank))
                    .or_default()
                    .insert(own);
            }
        }
        if figures.values().all(|each| each.len() < 2) {
            return Vec::new();
        }
        match group.len() <= WHOLE_GROUP {
            true => group.to_vec(),
            false => [1, group.len() / 2].map(|place| group[place]).to_vec(),
        }
    }

    /// Whether the rank shares a pipeline with another rank of this group, which explains any difference.
    fn is_in_pipeline(&self, rank: u32, group: &[u32]) -> bool {
        self.messages().any(|pipeline| {
            let is_common = |each: &&u32| pipeline.contains(each);
            pipeline.contains(&rank) && group.iter().filter(is_common).count() > 1
        })
    }

    fn messages(&self) -> impl Iterator<Item = &Vec<u32>> {
        let families = self.families.iter().filter(|family| family.has_messages);
        families.flat_map(|family| &family.groups)
    }

    /// These ranks and, transitively, all ranks they exchange messages with.
    fn with_partners(&self, mut ranks: BTreeSet<u32>) -> BTreeSet<u32> {
        loop {
            let before = ranks.len();
            for group in self.messages() {
                if group.iter().any(|rank| ranks.contains(rank)) {
                    ranks.extend(group);
                }
            }
            if ranks.len() == before {
                return ranks;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ghostgpu_session::AllocatorPeaks;

    /// A job on a three-dimensional mesh: pipeline stages, ranks that shard parameters, and tensor-parallel parts.
    struct MeshJob {
        stages: u32,
        sharing: u32,
        parts: u32,
        /// The length of each stage's parameter.
        lengths: Vec<u32>,
        /// Rank 0 holds more than its shards account for.
        first_has_more: bool,
    }

    impl MeshJob {
        fn size(&self) -> u32 {
            self.stages * self.sharing * self.parts
        }

        /// The rank's coordinates: stage, place among the sharding ranks, place among the parts.
        fn place(&self, rank: u32) -> [u32; 3] {
            let row = rank / self.parts;
            [row / self.sharing, row % self.sharing, rank % self.parts]
        }

        fn groups(&self, dimension: usize) -> Vec<Vec<u32>> {
            let mut groups: BTreeMap<[u32; 3], Vec<u32>> = BTreeMap::new();
            for rank in 0..self.size() {
                let mut others = self.place(rank);
                others[dimension] = 0;
                groups.entry(others).or_default().push(rank);
            }
            groups.into_values().collect()
        }

        /// The length of the rank's shard of its stage's parameter, split as by `torch.chunk`.
        fn part(&self, rank: u32) -> u32 {
            let [stage, place, _] = self.place(rank);
            let length = self.lengths[stage as usize];
            let whole = length.div_ceil(self.sharing);
            length.saturating_sub(whole * place).min(whole)
        }

        fn memory(&self, rank: u32) -> u64 {
            let [stage, _, _] = self.place(rank);
            let more = u64::from(self.first_has_more && rank == 0) * 1000;
            u64::from(100 * stage + self.part(rank)) + more
        }

        fn report(&self, rank: u32) -> ProcessReport {
            let [stage, _, _] = self.place(rank);
            let family = |dimension| GroupFamily {
                groups: self.groups(dimension),
                has_messages: dimension == 0 && self.stages > 1,
            };
            let mut first: BTreeMap<Option<u32>, u32> = BTreeMap::new();
            let shards = (0..self.size()).map(|other| {
                let is_mine = self.place(other)[0] == stage;
                let part = is_mine.then(|| self.part(other));
                *first.entry(part).or_insert(other)
            });
            ProcessReport {
                rank: Some(rank),
                world_size: Some(self.size()),
                families: (0..3).map(family).collect(),
                shards: shards.collect(),
                peaks: vec![AllocatorPeaks {
                    peak_allocated_bytes: self.memory(rank),
                    peak_reserved_bytes: 1,
                    ..AllocatorPeaks::default()
                }],
                ..ProcessReport::default()
            }
        }

        fn run(&self, chosen: &[u32]) -> Findings {
            Findings {
                processes: chosen.iter().map(|&rank| self.report(rank)).collect(),
                ..Findings::default()
            }
        }

        /// Runs the first and the last rank, then whatever `distinct_ranks` asks for, until it settles.
        fn distinct_ranks(&self) -> Vec<u32> {
            let mut chosen = vec![0, self.size() - 1];
            for _ in 0..MOST_ROUNDS {
                let wanted = distinct_ranks(&self.run(&chosen), &chosen).expect("a group");
                if wanted == chosen {
                    return chosen;
                }
                chosen = wanted;
            }
            panic!("it does not settle");
        }
    }

    fn every_small_job() -> impl Iterator<Item = MeshJob> {
        (0..3 * 5 * 2 * 9 * 2).filter_map(|number: u32| {
            let (stages, rest) = (number % 3 + 1, number / 3);
            let (sharing, rest) = (rest % 5 + 1, rest / 5);
            let (parts, rest) = (rest % 2 + 1, rest / 2);
            let (length, more) = (rest % 9 + 1, rest / 9);
            (stages * sharing * parts > 1).then(|| MeshJob {
                stages,
                sharing,
                parts,
                // Each stage has a different length, so its shards have different sizes.
                lengths: (0..stages).map(|stage| length + 3 * stage).collect(),
                first_has_more: more == 1,
            })
        })
    }

    #[test]
    fn the_distinct_ranks_of_a_job_show_every_amount_of_memory_that_any_rank_holds() {
        for job in every_small_job() {
            let chosen = job.distinct_ranks();
            let of_chosen: BTreeSet<u64> = chosen.iter().map(|&rank| job.memory(rank)).collect();
            let of_all: BTreeSet<u64> = (0..job.size()).map(|rank| job.memory(rank)).collect();
            assert_eq!(of_chosen, of_all, "{chosen:?} of {}", job.size());
        }
    }

    #[test]
    fn only_a_few_of_a_thousand_ranks_are_run() {
        let job = MeshJob {
            stages: 4,
            sharing: 32,
            parts: 8,
            lengths: vec![4096; 4],
            first_has_more: false,
        };
        let chosen = job.distinct_ranks();
        // The four corners of the sharding and tensor-parallel dimensions, each with all four stages.
        assert_eq!(chosen.len(), 16);
        assert_eq!(&chosen[..4], [0, 7, 248, 255]);
    }

    #[test]
    fn a_job_without_groups_has_no_ranks_to_choose_from() {
        assert_eq!(distinct_ranks(&Findings::default(), &[0]), None);
    }
}

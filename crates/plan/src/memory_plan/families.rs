//! Combinations worth a rehearsal: which tricks go together, and in which amounts.

use ghostgpu_tricks::Request;

use super::combination::{Combination, request};
use super::composition::Composition;

/// The largest number of chunks if the number of samples in a batch is unknown.
const MOST_CHUNKS: u64 = 16;

/// The numbers of chunks that are rehearsed, up to the number of samples in a batch.
const CHUNKS: [u64; 13] = [2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64];

/// How many tokens each rung cuts off sequences.
pub const TOKEN_STEP: u64 = 128;

/// Tricks that go together; the amount of one of them may have to be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    pub fixed: Combination,
    pub ladder: Option<Ladder>,
}

/// The amounts of a trick in ascending order: each rung saves more than the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ladder {
    pub kind: LadderKind,
    pub rungs: Vec<Vec<Request>>,
}

/// What grows from rung to rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LadderKind {
    /// Blocks that are checkpointed; all of them on the last rung.
    Blocks,
    /// Chunks of a batch.
    Chunks,
    /// Batches per step, each smaller by the same factor.
    Accumulation,
    /// Tokens cut off each sequence.
    Tokens,
}

impl Family {
    /// The combination on a rung, counted from 1; `None` if there is no such rung or its tricks conflict.
    pub fn at(&self, rung: u64) -> Option<Combination> {
        let Some(ladder) = &self.ladder else {
            return Some(self.fixed.clone());
        };
        let index = usize::try_from(rung.checked_sub(1)?).ok()?;
        let requests = ladder.rungs.get(index)?.iter().cloned();
        requests
            .into_iter()
            .try_fold(self.fixed.clone(), |all, request| all.with(request))
    }

    /// The number of rungs; 1 without a ladder.
    pub fn height(&self) -> u64 {
        self.ladder
            .as_ref()
            .map_or(1, |ladder| ladder.rungs.len() as u64)
    }

    /// The rung whose requests are all in the combination.
    pub fn rung_of(&self, combination: &Combination) -> Option<u64> {
        let ladder = self.ladder.as_ref()?;
        let is_it = |rung: &Vec<Request>| {
            rung.iter()
                .all(|request| combination.get(&request.name) == Some(request))
        };
        Some(ladder.rungs.iter().position(is_it)? as u64 + 1)
    }

    /// Whether `holds` is true for the name of any of its tricks.
    pub fn has_any(&self, holds: impl Fn(&str) -> bool) -> bool {
        let on_ladder = self.ladder.iter().flat_map(|ladder| ladder.rungs.first());
        let all = self.fixed.requests().iter().chain(on_ladder.flatten());
        all.into_iter().any(|request| holds(&request.name))
    }
}

/// Single tricks that keep the numbers, up to rounding. What each saves alone shows what combinations may save.
pub fn singles(composition: &Composition) -> Vec<Family> {
    let mut all: Vec<Family> = FREE
        .iter()
        .map(|name| single(Request::named(name)))
        .collect();
    all.push(single(Request::named("loss-head")));
    all.push(single(Request::named("optimizer-in-backward")));
    all.push(checkpointing(&Combination::none(), composition));
    all.push(single(keeping_products()));
    all.push(chunking(&Combination::none(), composition));
    all.push(single(Request::named("offload-optimizer")));
    all.push(single(Request::named("offload-activations")));
    all
}

/// Tricks that cost no time.
pub const FREE: [&str; 3] = ["inplace-activations", "early-zero-grad", "optimizer-form"];

/// All families that build on `prefix`, which is empty or changes the numbers. `free` are the tricks that cost no time
/// and save something for this job.
pub fn families(prefix: &Combination, free: &[&str], composition: &Composition) -> Vec<Family> {
    let mut all = Vec::new();
    for base in bases(prefix, free) {
        let whole = base.with(Request::named("checkpointing"));
        all.push(Family {
            fixed: base.clone(),
            ladder: None,
        });
        all.push(checkpointing(&base, composition));
        all.push(chunking(&base, composition));
        for (fixed, request) in [
            (Some(&base), keeping_products()),
            (Some(&base), Request::named("offload-activations")),
            (whole.as_ref(), Request::named("offload-activations")),
        ] {
            if let Some(fixed) = fixed.and_then(|fixed| fixed.with(request)) {
                all.push(Family {
                    fixed,
                    ladder: None,
                });
            }
        }
        if let Some(whole) = &whole {
            all.push(chunking(whole, composition));
        }
    }
    all.retain(|family| family.at(1).is_some() && !family.has_nothing_beside(prefix));
    all
}

impl Family {
    fn has_nothing_beside(&self, prefix: &Combination) -> bool {
        self.ladder.is_none() && self.fixed == *prefix
    }
}

/// All possible combinations of an optimizer trick, the loss trick and the free tricks.
fn bases(prefix: &Combination, free: &[&str]) -> Vec<Combination> {
    let mut bases = Vec::new();
    for optimizer in [
        None,
        Some("optimizer-in-backward"),
        Some("offload-optimizer"),
    ] {
        for loss in [None, Some("loss-head")] {
            for is_free in [false, true] {
                let names = optimizer.into_iter().chain(loss);
                let base = names
                    .into_iter()
                    .try_fold(prefix.clone(), |all, name| all.with(Request::named(name)));
                let Some(mut base) = base else { continue };
                for name in free.iter().filter(|_| is_free) {
                    // A free trick that conflicts with another is left out, because it saves only a little.
                    base = base.with(Request::named(name)).unwrap_or(base);
                }
                if !bases.contains(&base) {
                    bases.push(base);
                }
            }
        }
    }
    bases
}

fn single(request: Request) -> Family {
    Family {
        fixed: Combination::of(request).unwrap_or_default(),
        ladder: None,
    }
}

fn keeping_products() -> Request {
    request("checkpointing", &[("keep", "matmuls".to_owned())])
}

/// Checkpointing of 1, 2, … and all blocks of the model.
pub fn checkpointing(fixed: &Combination, composition: &Composition) -> Family {
    let some = (1..composition.blocks).map(|count| ("blocks", count.to_string()));
    let mut rungs: Vec<Vec<Request>> = some
        .map(|blocks| vec![request("checkpointing", &[blocks])])
        .collect();
    rungs.push(vec![Request::named("checkpointing")]);
    Family {
        fixed: fixed.clone(),
        ladder: Some(Ladder {
            kind: LadderKind::Blocks,
            rungs,
        }),
    }
}

/// The batch split into more and more chunks.
pub fn chunking(fixed: &Combination, composition: &Composition) -> Family {
    let most = composition.batch.unwrap_or(MOST_CHUNKS);
    let counts = CHUNKS.into_iter().filter(|count| *count <= most.max(2));
    Family {
        fixed: fixed.clone(),
        ladder: Some(Ladder {
            kind: LadderKind::Chunks,
            rungs: counts
                .map(|count| vec![request("chunking", &[("chunks", count.to_string())])])
                .collect(),
        }),
    }
}

/// Smaller batches, accumulated so that a step keeps its samples; `None` if the batch is unknown or cannot be divided.
pub fn accumulation(fixed: &Combination, composition: &Composition) -> Option<Family> {
    let batch = composition.batch?;
    let parts = (2..=batch).filter(|parts| batch % parts == 0);
    let rungs: Vec<Vec<Request>> = parts
        .map(|parts| {
            vec![
                request("smaller-batch", &[("batch", (batch / parts).to_string())]),
                request("accumulation", &[("steps", parts.to_string())]),
            ]
        })
        .collect();
    ladder(fixed, LadderKind::Accumulation, rungs)
}

/// Shorter sequences; `None` if their length is unknown or already short.
pub fn shorter_sequences(fixed: &Combination, composition: &Composition) -> Option<Family> {
    let tokens = composition.tokens?;
    let left = (1..tokens.div_ceil(TOKEN_STEP)).map(|steps| tokens - steps * TOKEN_STEP);
    let rungs: Vec<Vec<Request>> = left
        .map(|tokens| {
            vec![request(
                "shorter-sequences",
                &[("tokens", tokens.to_string())],
            )]
        })
        .collect();
    ladder(fixed, LadderKind::Tokens, rungs)
}

fn ladder(fixed: &Combination, kind: LadderKind, rungs: Vec<Vec<Request>>) -> Option<Family> {
    (!rungs.is_empty()).then(|| Family {
        fixed: fixed.clone(),
        ladder: Some(Ladder { kind, rungs }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn composition() -> Composition {
        Composition {
            blocks: 12,
            batch: Some(8),
            tokens: Some(512),
            ..Composition::default()
        }
    }

    fn words(family: &Family) -> Vec<String> {
        let rungs = 1..=family.height();
        rungs
            .map(|rung| family.at(rung).map_or(String::new(), |it| it.in_words()))
            .collect()
    }

    #[test]
    fn amounts_grow_from_rung_to_rung() {
        let none = Combination::none();
        let job = composition();
        let blocks = checkpointing(&none, &job);
        assert_eq!(blocks.height(), 12);
        assert_eq!(words(&blocks)[5], "--checkpoint 6");
        assert_eq!(words(&blocks)[11], "--checkpoint auto");
        assert_eq!(
            words(&chunking(&none, &job)),
            [
                "--chunks 2",
                "--chunks 3",
                "--chunks 4",
                "--chunks 5",
                "--chunks 6",
                "--chunks 8"
            ]
        );
        assert_eq!(
            words(&accumulation(&none, &job).expect("a batch")),
            [
                "--accumulate 2 --smaller-batch 4",
                "--accumulate 4 --smaller-batch 2",
                "--accumulate 8 --smaller-batch 1"
            ]
        );
        let tokens = shorter_sequences(&none, &job).expect("tokens");
        assert_eq!(
            words(&tokens),
            [
                "--cut-sequences 384",
                "--cut-sequences 256",
                "--cut-sequences 128"
            ]
        );
        for (rung, family) in [(5, &blocks), (2, &tokens)] {
            let combination = family.at(rung).expect("a rung");
            assert_eq!(family.rung_of(&combination), Some(rung));
        }
    }

    #[test]
    fn a_job_of_unknown_composition_still_has_families() {
        let unknown = Composition::default();
        assert_eq!(checkpointing(&Combination::none(), &unknown).height(), 1);
        assert_eq!(accumulation(&Combination::none(), &unknown), None);
        assert_eq!(shorter_sequences(&Combination::none(), &unknown), None);
        assert!(!families(&Combination::none(), &[], &unknown).is_empty());
    }

    #[test]
    fn families_have_no_conflicts_and_no_duplicates() {
        let free = ["inplace-activations", "optimizer-form"];
        let prefix = Combination::of(Request::named("adafactor")).expect("one");
        for prefix in [Combination::none(), prefix] {
            let all = families(&prefix, &free, &composition());
            for (place, family) in all.iter().enumerate() {
                assert!(!all[..place].contains(family), "{family:?}");
                assert!(prefix.is_within(&family.fixed));
                let first = family.at(1).expect("possible");
                assert!(!(first.has("chunking") && first.has("optimizer-in-backward")));
                assert!(!(first.has("adafactor") && first.has("optimizer-form")));
            }
        }
    }
}

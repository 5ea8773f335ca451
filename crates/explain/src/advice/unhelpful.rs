//! Common advice that does not help here, and why.

use super::{Candidate, Unhelpful};
use crate::amount::Amount;
use crate::catalogue::{Catalogue, Variable};
use crate::finding::Finding;
use crate::kind::Memory;
use crate::situation::{Reasoned, Situation};

pub fn unhelpful(
    finding: &Finding,
    situations: &[Reasoned],
    catalogue: &Catalogue,
) -> Vec<Unhelpful> {
    let is = |situation| situations.iter().any(|each| each.situation == situation);
    let Some(main) = situations.first().map(|each| each.situation) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut add = |id: &str, amounts: &[(&str, Amount)], candidate: Option<Candidate>| {
        let variables: Vec<_> = amounts
            .iter()
            .map(|(name, amount)| (*name, amount.value()))
            .collect();
        let why = catalogue.attribute(id, "why", &variables);
        found.push(Unhelpful {
            what: catalogue.say(id, &variables),
            why: why.unwrap_or_default(),
            // What a rehearsal may show to help all the same.
            candidate,
        });
    };
    match finding.kind.memory() {
        Memory::Device => {}
        Memory::Host | Memory::Shared | Memory::OnChip if finding.is_pytorch() => {
            add("useless-for-host", &[], None);
            return found;
        }
        _ => return found,
    }
    let figures = &finding.figures;
    let cached = figures.cached.filter(|cached| cached.bytes > 0);
    if finding.kind.is_caching_allocator() {
        match cached {
            Some(cached) => add("useless-empty-cache-amount", &[("cached", cached)], None),
            None => add("useless-empty-cache", &[], None),
        }
    }
    // What is cached may be enough for a small request: then settings may help a little.
    let cache_would_do = match (figures.cached, figures.free, figures.requested) {
        (Some(cached), free, Some(requested)) => {
            cached.plus(free.unwrap_or_default()).bytes >= requested.bytes
        }
        _ => false,
    };
    if finding.kind.is_caching_allocator() && !is(Situation::Fragmentation) && !cache_would_do {
        match (figures.cached, figures.reserved) {
            (Some(cached), Some(reserved)) => add(
                "useless-splitting-amount",
                &[("cached", cached), ("reserved", reserved)],
                None,
            ),
            _ => add("useless-splitting", &[], None),
        }
    }
    if !finding.is_pytorch() {
        return found;
    }
    let batch = Some(Candidate::SmallerBatch);
    match main {
        Situation::ModelDoesNotFit | Situation::OptimizerState => {
            add("useless-batch-early", &[], batch);
        }
        Situation::ShapeBug => add("useless-batch-shape", &[], batch),
        Situation::OtherProcess => add("useless-model", &[], None),
        Situation::Growth => add("useless-batch-growth", &[], batch),
        Situation::Activations | Situation::Full | Situation::OneLargeRequest => {
            add("useless-gc", &[], None);
        }
        _ => {}
    }
    if matches!(
        main,
        Situation::Activations | Situation::Full | Situation::ModelDoesNotFit
    ) && finding.kind.is_caching_allocator()
    {
        add("useless-workers", &[], None);
    }
    found
}

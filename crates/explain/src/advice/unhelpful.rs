//! Common advice that does not help here, and why.

use std::cell::Cell;

use super::{Candidate, Unhelpful};
use crate::finding::Finding;
use crate::kind::Memory;
use crate::situation::{Reasoned, Situation};

pub fn unhelpful(finding: &Finding, situations: &[Reasoned]) -> Vec<Unhelpful> {
    let is = |situation| situations.iter().any(|each| each.situation == situation);
    let Some(main) = situations.first().map(|each| each.situation) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    // What a rehearsal may show to help all the same, of the advice that is being added.
    let candidate = Cell::new(None);
    let mut add = |what, why: String| {
        found.push(Unhelpful {
            what,
            why,
            candidate: candidate.get(),
        });
    };
    if finding.kind.memory() != Memory::Device {
        if finding.kind.memory() != Memory::Unified {
            add(
                "torch.cuda.empty_cache(), a larger GPU, a smaller model",
                "GPU memory did not run out".to_owned(),
            );
        }
        return found;
    }
    let cached = finding.figures.cached;
    if finding.kind.is_caching_allocator() {
        let amount = match cached {
            Some(cached) if cached.bytes > 0 => format!(
                "; the {cached} still cached is in segments that are partly in use, which no call can \
                 free"
            ),
            _ => String::new(),
        };
        add(
            "torch.cuda.empty_cache()",
            format!(
                "PyTorch did this before it raised the error{amount}. It never gives PyTorch itself more \
                 memory, only other processes"
            ),
        );
    }
    if finding.kind.is_caching_allocator() && !is(Situation::Fragmentation) {
        let why = match (cached, finding.figures.reserved) {
            (Some(cached), Some(reserved)) => format!(
                "they reduce fragmentation, and only {cached} of {reserved} reserved is unused"
            ),
            _ => "they reduce fragmentation, and nothing points to it here".to_owned(),
        };
        add("max_split_size_mb, expandable_segments", why);
    }
    let is_about_batch = matches!(
        main,
        Situation::ModelDoesNotFit
            | Situation::OptimizerState
            | Situation::ShapeBug
            | Situation::Growth
    );
    candidate.set(is_about_batch.then_some(Candidate::SmallerBatch));
    match main {
        Situation::ModelDoesNotFit | Situation::OptimizerState => add(
            "a smaller batch",
            "it failed before the first batch".to_owned(),
        ),
        Situation::ShapeBug => add(
            "a smaller batch, allocator settings",
            "a single request is larger than the card; half the batch halves it at best".to_owned(),
        ),
        Situation::OtherProcess => add(
            "changes to the model",
            "it may fit unchanged on an empty card".to_owned(),
        ),
        Situation::Growth => add(
            "a smaller batch",
            "growing memory fills any card: it only fails later".to_owned(),
        ),
        Situation::Activations | Situation::Full | Situation::OneLargeRequest => add(
            "gc.collect()",
            "Python frees a tensor as soon as nothing refers to it; collecting garbage only frees tensors \
             in reference cycles"
                .to_owned(),
        ),
        _ => {}
    }
    candidate.set(None);
    if matches!(
        main,
        Situation::Activations | Situation::Full | Situation::ModelDoesNotFit
    ) && finding.kind.is_caching_allocator()
    {
        add(
            "fewer DataLoader workers, pin_memory=False",
            "they use host memory, not the card's".to_owned(),
        );
    }
    found
}

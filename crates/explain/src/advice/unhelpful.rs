//! Old advice that does not help here, and why.

use std::cell::Cell;

use super::{Trial, Unhelpful};
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
    let trial = Cell::new(None);
    let mut add = |what, why: String| {
        found.push(Unhelpful {
            what,
            why,
            trial: trial.get(),
        });
    };
    if finding.kind.memory() != Memory::Device {
        if finding.kind.memory() != Memory::Unified {
            add(
                "torch.cuda.empty_cache(), a larger GPU, a smaller model",
                "it is not the GPU's memory that ran out".to_owned(),
            );
        }
        return found;
    }
    let cached = finding.figures.cached;
    if finding.kind.is_caching_allocator() {
        let amount = match cached {
            Some(cached) if cached.bytes > 0 => format!(
                "; the {cached} still cached lie in segments that are partly in use, and no call gives \
                 those back"
            ),
            _ => String::new(),
        };
        add(
            "torch.cuda.empty_cache()",
            format!(
                "PyTorch did just that before it raised{amount}. It never enlarges what PyTorch itself can \
                 use: it only helps other processes"
            ),
        );
    }
    if finding.kind.is_caching_allocator() && !is(Situation::Fragmentation) {
        let why = match (cached, finding.figures.reserved) {
            (Some(cached), Some(reserved)) => format!(
                "it is against fragmentation, and only {cached} of {reserved} reserved are unused"
            ),
            _ => "it is against fragmentation, of which nothing shows here".to_owned(),
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
    trial.set(is_about_batch.then_some(Trial::SmallerBatch));
    match main {
        Situation::ModelDoesNotFit | Situation::OptimizerState => add(
            "a smaller batch",
            "it failed before the size of a batch mattered".to_owned(),
        ),
        Situation::ShapeBug => add(
            "a smaller batch, allocator settings",
            "the one request is larger than the card; a batch half as large halves it at best".to_owned(),
        ),
        Situation::OtherProcess => add(
            "changes to the model",
            "it may fit as it is, on a card of its own".to_owned(),
        ),
        Situation::Growth => add(
            "a smaller batch",
            "what grows fills any card: it only fails later".to_owned(),
        ),
        Situation::Activations | Situation::Full | Situation::OneLargeRequest => add(
            "gc.collect()",
            "Python frees tensors as soon as nothing names them; what is allocated is named somewhere"
                .to_owned(),
        ),
        _ => {}
    }
    trial.set(None);
    if matches!(
        main,
        Situation::Activations | Situation::Full | Situation::ModelDoesNotFit
    ) && finding.kind.is_caching_allocator()
    {
        add(
            "fewer DataLoader workers, pin_memory=False",
            "they use the machine's memory, not the card's".to_owned(),
        );
    }
    found
}

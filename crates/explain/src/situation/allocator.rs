//! Conclusions from the figures of PyTorch's caching allocator.
//!
//! Many rest on one fact: before PyTorch raises, it frees every unused segment and retries. What is
//! still cached then is in segments that are partly in use.

use super::others::{other_process, small_others};
use super::{Reasoned, Situation, Stage, stage, suspect};
use crate::account::Account;
use crate::amount::Amount;
use crate::finding::Finding;
use crate::kind::Kind;
use crate::reader::Log;

const MIB: u64 = 1 << 20;

pub fn situations(finding: &Finding, account: &Account, log: &Log) -> Vec<Reasoned> {
    let stage = stage(finding);
    let larger = larger_than_the_card(finding, stage);
    let (far, somewhat) = match is_far_too_large(finding) {
        true => (larger, None),
        false => (None, larger),
    };
    let rules: [Option<Reasoned>; 12] = [
        far,
        fraction_limit(finding),
        free_but_refused(finding, log),
        other_process(finding, account),
        growth(finding, log),
        fragmentation(finding),
        model_or_optimizer(finding, stage),
        evaluation(finding, stage),
        one_large_request(finding),
        somewhat,
        activations(finding, stage),
        perhaps_growth(finding, log),
    ];
    let mut found: Vec<Reasoned> = rules.into_iter().flatten().collect();
    if found.is_empty() {
        found.push(full(finding));
    }
    let is_known = found
        .iter()
        .any(|each| each.situation == Situation::OtherProcess);
    found.extend(small_others(finding, account).filter(|_| !is_known));
    found
}

pub fn percent(part: Amount, whole: Amount) -> u64 {
    part.bytes.saturating_mul(100) / whole.bytes.max(1)
}

/// A request of several times the card's memory is a mistake; one slightly above it may be intended.
fn is_far_too_large(finding: &Finding) -> bool {
    let figures = &finding.figures;
    match (figures.requested, figures.total) {
        (Some(requested), Some(total)) => requested.bytes / 2 >= total.bytes,
        _ => false,
    }
}

fn larger_than_the_card(finding: &Finding, stage: Option<Stage>) -> Option<Reasoned> {
    let figures = &finding.figures;
    let (requested, total) = (figures.requested?, figures.total?);
    if !requested.exceeds(total) {
        return None;
    }
    let reason = format!(
        "a single request for {requested} exceeds the whole card ({total}): no setting can satisfy it"
    );
    if stage == Some(Stage::LoadingTheModel) {
        return Some(
            Reasoned::new(Situation::ModelDoesNotFit, reason)
                .and("it failed while the model was moved to the card"),
        );
    }
    let likely = suspect(finding).sentence(Some(requested));
    Some(Reasoned::new(Situation::ShapeBug, reason).and(format!("likely {likely}")))
}

fn fraction_limit(finding: &Finding) -> Option<Reasoned> {
    let figures = &finding.figures;
    let (allowed, requested) = (figures.allowed?, figures.requested?);
    let held = figures.reserved.or(figures.allocated)?;
    let needed = held.plus(requested);
    if needed.bytes + needed.off_by + allowed.off_by < allowed.bytes {
        return None;
    }
    let reason = format!(
        "{held} reserved + {requested} requested exceeds the limit of {allowed} that the process set itself"
    );
    let free = figures
        .free
        .map(|free| format!("the card still had {free} free"));
    Some(Reasoned::new(Situation::FractionLimit, reason).and_if(free))
}

fn free_but_refused(finding: &Finding, log: &Log) -> Option<Reasoned> {
    let figures = &finding.figures;
    let (free, requested, total) = (figures.free?, figures.requested?, figures.total?);
    // The process's own limit is checked first: the request never reached the driver.
    if fraction_limit(finding).is_some() {
        return None;
    }
    let margin = (64 * MIB).max(total.bytes / 50);
    if free.bytes < requested.bytes.saturating_add(margin) {
        return None;
    }
    let reason = format!("{requested} requested with {free} free: the card was not full");
    let why = match (finding.kind, log.environment.is_windows) {
        (Kind::HipAllocator, _) => {
            "with ROCm, this happens when host memory is short or the driver's address space is \
             fragmented"
        }
        (Kind::XpuAllocator, _) => {
            "an Intel GPU borrows host memory, and a single allocation is limited (4 GiB without special \
             flags)"
        }
        (_, true) => {
            "on Windows, RAM and page file must back every allocation on the card, and they ran out"
        }
        _ => {
            "another process held it at that moment, RAM and page file were short (Windows, WSL), or the \
             card is partitioned"
        }
    };
    Some(Reasoned::new(Situation::FreeButRefused, reason).and(why))
}

fn growth(finding: &Finding, log: &Log) -> Option<Reasoned> {
    let grown = log.memory_prints.iter().find_map(|series| {
        let (first, last) = series.growth()?;
        Some((series, Amount::exact(first), Amount::exact(last)))
    });
    if let Some((series, first, last)) = grown {
        return Some(
            Reasoned::new(
                Situation::Growth,
                format!(
                    "`{}` in the log rises from {first} (line {}) to {last} (line {}) and hardly ever falls",
                    series.name,
                    series.points.first().map_or(0, |point| point.line),
                    series.points.last().map_or(0, |point| point.line)
                ),
            )
            .and_if(steps(finding)),
        );
    }
    // The same writer ran out of memory repeatedly, with more allocated each time.
    let allocated: Vec<Amount> = log
        .findings
        .iter()
        .filter(|each| each.writer == finding.writer && each.kind == finding.kind)
        .filter(|each| each.figures.device == finding.figures.device)
        .filter_map(|each| each.figures.allocated)
        .collect();
    let is_rising = allocated.len() >= 3
        && allocated
            .windows(2)
            .all(|pair| pair[1].bytes > pair[0].bytes);
    let (first, last) = (*allocated.first()?, *allocated.last()?);
    (is_rising && last.exceeds(first)).then(|| {
        Reasoned::new(
            Situation::Growth,
            format!(
                "it ran out of memory at least {} times, with {first} allocated the first time and {last} the last",
                allocated.len() as u64 + log.left_out
            ),
        )
    })
}

/// From this many successful steps on, a failure raises the question of growth.
const MANY_STEPS: u64 = 10;

/// A training that fails late had the same model and optimizer all along. A log that prints no memory
/// cannot tell a larger batch from growing memory, so the answer names both.
fn perhaps_growth(finding: &Finding, log: &Log) -> Option<Reasoned> {
    if growth(finding, log).is_some() {
        return None;
    }
    let progress = finding
        .progress
        .as_ref()
        .filter(|progress| progress.is_under_way())?;
    let step = progress.step.filter(|step| *step >= MANY_STEPS)?;
    Some(
        Reasoned::new(
            Situation::Growth,
            format!("{step} steps with the same model and optimizer fitted before this one"),
        )
        .and(
            "if all batches have the same shape, something is kept from step to step; the log prints no \
             memory figures to confirm it",
        ),
    )
}

fn steps(finding: &Finding) -> Option<String> {
    let progress = finding
        .progress
        .as_ref()
        .filter(|progress| progress.is_under_way())?;
    Some(match (progress.step, progress.of_steps, progress.epoch) {
        (Some(step), Some(of), _) => format!("it failed after step {step} of {of}"),
        (Some(step), None, _) => format!("it failed after step {step}"),
        (None, _, Some(epoch)) => format!("it failed in epoch {epoch}"),
        _ => return None,
    })
}

fn fragmentation(finding: &Finding) -> Option<Reasoned> {
    let figures = &finding.figures;
    let (cached, reserved, requested) = (figures.cached?, figures.reserved?, figures.requested?);
    let free = figures.free.unwrap_or_default();
    let is_share = cached.bytes * 10 >= reserved.bytes && cached.bytes >= 64 * MIB;
    let would_do = cached.plus(free).bytes >= requested.bytes;
    if !is_share || !would_do {
        return None;
    }
    let reason = format!(
        "{cached} of {reserved} reserved ({} %) is cached and unused; with {free} free, that is more than \
         the {requested} requested",
        percent(cached, reserved)
    );
    Some(Reasoned::new(Situation::Fragmentation, reason).and(
        "PyTorch freed every unused segment before it raised the error: the rest is in pieces between \
         tensors in use",
    ))
}

fn model_or_optimizer(finding: &Finding, stage: Option<Stage>) -> Option<Reasoned> {
    let figures = &finding.figures;
    let allocated = figures.allocated.map(|allocated| {
        let share = figures
            .total
            .map(|total| format!(", {} % of the card", percent(allocated, total)));
        format!(
            "{allocated} was allocated by then{}",
            share.unwrap_or_default()
        )
    });
    let is_under_way = finding
        .progress
        .as_ref()
        .is_some_and(|progress| progress.is_under_way());
    match stage? {
        Stage::LoadingTheModel => Some(
            Reasoned::new(
                Situation::ModelDoesNotFit,
                "it failed while the model was moved to the card, before the first batch",
            )
            .and_if(allocated),
        ),
        Stage::Optimizer if !is_under_way => Some(
            Reasoned::new(
                Situation::OptimizerState,
                "it failed in the optimizer's first step, which allocates its state (Adam: twice the size of \
                 the parameters) on top of weights and gradients",
            )
            .and_if(allocated),
        ),
        _ => None,
    }
}

fn evaluation(finding: &Finding, stage: Option<Stage>) -> Option<Reasoned> {
    if stage != Some(Stage::Evaluation) {
        return None;
    }
    let place = finding
        .traceback
        .as_ref()
        .and_then(|traceback| traceback.place());
    let reason = match place {
        Some(frame) => format!(
            "the traceback goes through evaluation, to `{}` in {}:{}",
            frame.function, frame.file, frame.line
        ),
        None => "the progress bar counts evaluation batches".to_owned(),
    };
    Some(Reasoned::new(Situation::Evaluation, reason).and(
        "when training fits and evaluation does not, the usual causes are outputs kept on the card, a \
         larger batch, longer samples or a missing no_grad()",
    ))
}

fn one_large_request(finding: &Finding) -> Option<Reasoned> {
    let figures = &finding.figures;
    let (requested, total) = (figures.requested?, figures.total?);
    if requested.bytes * 10 < total.bytes || requested.bytes < 256 * MIB {
        return None;
    }
    let free = figures.free.map(|free| format!(", and {free} was free"));
    let reason = format!(
        "a single request for {requested} is {} % of the card{}",
        percent(requested, total),
        free.unwrap_or_default()
    );
    let allocated = figures.allocated.map(|allocated| {
        format!(
            "{allocated} ({} %) was already allocated",
            percent(allocated, total)
        )
    });
    Some(Reasoned::new(Situation::OneLargeRequest, reason).and_if(allocated))
}

fn activations(finding: &Finding, stage: Option<Stage>) -> Option<Reasoned> {
    let figures = &finding.figures;
    let is_under_way = finding
        .progress
        .as_ref()
        .is_some_and(|progress| progress.is_under_way());
    // In the optimizer's first step, activations are already freed.
    let is_training = matches!(stage, Some(Stage::Backward | Stage::Training));
    if !is_training && !is_under_way {
        return None;
    }
    let (allocated, total) = (figures.allocated?, figures.total?);
    let reason = format!(
        "tensors in use during training take {allocated} of {total} ({} %), and the request that failed \
         was for {}",
        percent(allocated, total),
        figures.requested.unwrap_or_default()
    );
    let stage = match stage {
        Some(Stage::Backward) => Some(
            "it failed in the backward pass, when activations and gradients are alive together",
        ),
        _ => None,
    };
    let later = steps(finding).map(|steps| {
        format!("{steps}: the model and earlier batches fitted, so this batch was larger or longer, or memory grew")
    });
    Some(
        Reasoned::new(Situation::Activations, reason)
            .and_if(stage.map(str::to_owned))
            .and_if(later),
    )
}

fn full(finding: &Finding) -> Reasoned {
    let figures = &finding.figures;
    let reason = match (figures.allocated, figures.total) {
        (Some(allocated), Some(total)) => format!(
            "tensors in use take {allocated} of {total} ({} %); a request for {} did not fit",
            percent(allocated, total),
            figures.requested.unwrap_or_default()
        ),
        _ => match figures.requested {
            Some(requested) => format!("{requested} requested; the rest of the message is missing"),
            None => "the message gives no figures".to_owned(),
        },
    };
    let small = figures
        .requested
        .and_then(|requested| match requested.bytes {
            bytes if bytes == 2 * MIB => {
                Some("2.00 MiB is the segment size for requests up to 1 MiB")
            }
            bytes if bytes == 20 * MIB => {
                Some("20.00 MiB is the segment size for requests from 1 to 10 MiB")
            }
            _ => None,
        });
    let cached = figures
        .cached
        .filter(|cached| cached.bytes > 0)
        .map(|cached| format!("only {cached} was cached and unused: this is not fragmentation"));
    Reasoned::new(Situation::Full, reason)
        .and_if(small.map(str::to_owned))
        .and_if(cached)
}

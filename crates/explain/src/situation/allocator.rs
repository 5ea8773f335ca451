//! Conclusions from the figures of PyTorch's caching allocator.
//!
//! Many rest on one fact: before PyTorch raises, it frees every unused segment and retries. What is
//! still cached then is in segments that are partly in use.

use super::{Reasoned, Situation, Stage, stage, suspect};
use crate::account::Account;
use crate::amount::Amount;
use crate::catalogue::Catalogue;
use crate::finding::Finding;
use crate::kind::Kind;
use crate::reader::Log;
use crate::say;

pub const MIB: u64 = 1 << 20;

/// No card has more memory than this: a request beyond it is a mistake, whatever the card.
pub const MORE_THAN_ANY_CARD: u64 = 290 << 30;

/// From this many successful steps on, a failure raises the question of growth.
const MANY_STEPS: u64 = 10;

/// What conclusions are drawn from.
pub struct Reasoner<'a> {
    pub finding: &'a Finding,
    pub account: &'a Account,
    pub log: &'a Log,
    pub catalogue: &'a Catalogue,
}

pub fn percent(part: Amount, whole: Amount) -> u64 {
    part.bytes.saturating_mul(100) / whole.bytes.max(1)
}

impl Reasoner<'_> {
    pub fn situations(&self) -> Vec<Reasoned> {
        let stage = stage(self.finding, self.log);
        let larger = self.larger_than_the_card(stage);
        let (far, somewhat) = match self.is_far_too_large() {
            true => (larger, None),
            false => (None, larger),
        };
        let rules: [Option<Reasoned>; 14] = [
            far,
            self.fraction_limit(),
            self.free_but_refused(),
            self.other_process(),
            self.ranks_share_a_card(),
            self.growth(),
            self.fragmentation(),
            self.model_or_optimizer(stage),
            self.evaluation(stage),
            self.lent_by_windows(),
            self.one_large_request(),
            somewhat,
            self.activations(stage),
            self.perhaps_growth(),
        ];
        let mut found: Vec<Reasoned> = Vec::new();
        for reasoned in rules.into_iter().flatten() {
            let is_known = found
                .iter()
                .any(|known| known.situation == reasoned.situation);
            if !is_known {
                found.push(reasoned);
            }
        }
        if found.is_empty() {
            found.push(self.full());
        }
        let is_fragmented = found
            .iter()
            .any(|each| each.situation == Situation::Fragmentation);
        found.extend(self.perhaps_fragmentation().filter(|_| !is_fragmented));
        let is_known = found
            .iter()
            .any(|each| each.situation == Situation::OtherProcess);
        found.extend(self.small_others().filter(|_| !is_known));
        found
    }

    /// What the calls alone tell, where a message gives no figures.
    pub fn by_stage(&self) -> Option<Reasoned> {
        let stage = stage(self.finding, self.log);
        let backward = || {
            let reason = say!(self.catalogue, "in-backward");
            let is_backward = stage == Some(Stage::Backward);
            is_backward.then(|| Reasoned::new(Situation::Activations, reason))
        };
        self.model_or_optimizer(stage)
            .or_else(|| self.evaluation(stage))
            .or_else(backward)
    }

    /// A request of several times the card's memory is a mistake; one slightly above it may be intended.
    fn is_far_too_large(&self) -> bool {
        let figures = &self.finding.figures;
        match (figures.requested, figures.total) {
            (Some(requested), Some(total)) => requested.bytes / 2 >= total.bytes,
            (Some(requested), None) => requested.bytes >= MORE_THAN_ANY_CARD,
            _ => false,
        }
    }

    fn larger_than_the_card(&self, stage: Option<Stage>) -> Option<Reasoned> {
        let figures = &self.finding.figures;
        let requested = figures.requested?;
        let reason = match figures.total {
            Some(total) if requested.exceeds(total) => say!(
                self.catalogue,
                "request-exceeds-card",
                requested = requested,
                total = total
            ),
            None if requested.bytes >= MORE_THAN_ANY_CARD => say!(
                self.catalogue,
                "request-exceeds-any-card",
                requested = requested
            ),
            _ => return None,
        };
        if stage == Some(Stage::LoadingTheModel) {
            let loading = say!(self.catalogue, "while-model-moved");
            return Some(Reasoned::new(Situation::ModelDoesNotFit, reason).and(loading));
        }
        let likely = suspect(self.finding).sentence(Some(requested), self.catalogue);
        Some(Reasoned::new(Situation::ShapeBug, reason).and(likely))
    }

    fn fraction_limit(&self) -> Option<Reasoned> {
        let figures = &self.finding.figures;
        let (allowed, requested) = (figures.allowed?, figures.requested?);
        let held = figures.reserved.or(figures.allocated)?;
        let needed = held.plus(requested);
        if needed.bytes + needed.off_by + allowed.off_by < allowed.bytes {
            return None;
        }
        let reason = say!(
            self.catalogue,
            "over-own-limit",
            held = held,
            requested = requested,
            allowed = allowed
        );
        let free = figures.free;
        let free = free.map(|free| say!(self.catalogue, "card-still-free", free = free));
        Some(Reasoned::new(Situation::FractionLimit, reason).and_if(free))
    }

    fn free_but_refused(&self) -> Option<Reasoned> {
        let figures = &self.finding.figures;
        if self.finding.kind == Kind::XpuAllocator && figures.free.is_none() {
            return self.intel_refused();
        }
        let (free, requested, total) = (figures.free?, figures.requested?, figures.total?);
        // The process's own limit is checked first: the request never reached the driver.
        if self.fraction_limit().is_some() {
            return None;
        }
        let margin = (64 * MIB).max(total.bytes / 50);
        if free.bytes < requested.bytes.saturating_add(margin) {
            return None;
        }
        let reason = say!(
            self.catalogue,
            "not-full",
            requested = requested,
            free = free
        );
        let environment = &self.log.environment;
        let why = match self.finding.kind {
            Kind::HipAllocator => "refused-rocm",
            Kind::XpuAllocator => "refused-intel",
            _ if environment.is_rocm => "refused-rocm",
            _ if environment.is_wsl => "refused-wsl",
            _ if environment.is_windows => "refused-windows",
            _ => "refused-unknown",
        };
        let why = say!(self.catalogue, why);
        Some(Reasoned::new(Situation::FreeButRefused, reason).and(why))
    }

    /// Intel's messages may not say how much is free: a card that is nearly empty refused all the same.
    fn intel_refused(&self) -> Option<Reasoned> {
        let figures = &self.finding.figures;
        let (requested, total) = (figures.requested?, figures.total?);
        let held = figures.reserved.or(figures.allocated)?;
        if held.plus(requested).bytes * 10 > total.bytes * 8 {
            return None;
        }
        let reason = say!(
            self.catalogue,
            "held-little",
            held = held,
            total = total,
            requested = requested
        );
        let why = say!(self.catalogue, "refused-intel");
        Some(Reasoned::new(Situation::FreeButRefused, reason).and(why))
    }

    fn growth(&self) -> Option<Reasoned> {
        let grown = self.log.memory_prints.iter().find_map(|series| {
            let (first, last) = series.growth()?;
            Some((series, Amount::exact(first), Amount::exact(last)))
        });
        if let Some((series, first, last)) = grown {
            let line =
                |point: Option<&crate::memory_prints::Point>| point.map_or(0, |point| point.line);
            let reason = say!(
                self.catalogue,
                "series-rises",
                name = series.name,
                first = first,
                from = line(series.points.first()),
                last = last,
                to = line(series.points.last())
            );
            return Some(Reasoned::new(Situation::Growth, reason).and_if(self.steps()));
        }
        // The same writer ran out of memory repeatedly, with more allocated each time.
        let finding = self.finding;
        let allocated: Vec<Amount> = self
            .log
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
            let times = allocated.len() as u64 + self.log.left_out;
            let reason = say!(
                self.catalogue,
                "failed-repeatedly",
                times = times,
                first = first,
                last = last
            );
            Reasoned::new(Situation::Growth, reason)
        })
    }

    /// A training that fails late had the same model and optimizer all along. A log that prints no memory
    /// cannot tell a larger batch from growing memory, so the answer names both.
    fn perhaps_growth(&self) -> Option<Reasoned> {
        if self.growth().is_some() {
            return None;
        }
        let progress = self.finding.progress.as_ref();
        let progress = progress.filter(|progress| progress.is_under_way())?;
        let step = progress.step.filter(|step| *step >= MANY_STEPS)?;
        let reason = say!(self.catalogue, "steps-fitted", step = step);
        let perhaps = say!(self.catalogue, "perhaps-kept");
        Some(Reasoned::new(Situation::Growth, reason).and(perhaps))
    }

    fn steps(&self) -> Option<String> {
        let progress = self.finding.progress.as_ref();
        let progress = progress.filter(|progress| progress.is_under_way())?;
        let catalogue = self.catalogue;
        Some(match (progress.step, progress.of_steps, progress.epoch) {
            (Some(step), Some(of), _) => {
                say!(catalogue, "failed-after-step-of", step = step, of = of)
            }
            (Some(step), None, _) => say!(catalogue, "failed-after-step", step = step),
            (None, _, Some(epoch)) => say!(catalogue, "failed-in-epoch", epoch = epoch),
            _ => return None,
        })
    }

    fn fragmentation(&self) -> Option<Reasoned> {
        let figures = &self.finding.figures;
        let (cached, reserved, requested) =
            (figures.cached?, figures.reserved?, figures.requested?);
        let free = figures.free.unwrap_or_default();
        let is_share = cached.bytes * 10 >= reserved.bytes && cached.bytes >= 64 * MIB;
        let would_do = cached.plus(free).bytes >= requested.bytes;
        if !is_share || !would_do {
            return None;
        }
        Some(self.in_pieces(cached, reserved, free, requested))
    }

    /// The cache is a small share of the card, and yet several times the request.
    fn perhaps_fragmentation(&self) -> Option<Reasoned> {
        let figures = &self.finding.figures;
        let (cached, reserved, requested) =
            (figures.cached?, figures.reserved?, figures.requested?);
        let free = figures.free.unwrap_or_default();
        let is_several = cached.bytes / 2 >= requested.bytes && cached.bytes >= 512 * MIB;
        is_several.then(|| self.in_pieces(cached, reserved, free, requested))
    }

    fn in_pieces(
        &self,
        cached: Amount,
        reserved: Amount,
        free: Amount,
        requested: Amount,
    ) -> Reasoned {
        let reason = say!(
            self.catalogue,
            "cached-in-pieces",
            cached = cached,
            reserved = reserved,
            percent = percent(cached, reserved),
            free = free,
            requested = requested
        );
        let pieces = say!(self.catalogue, "pieces-between-tensors");
        Reasoned::new(Situation::Fragmentation, reason).and(pieces)
    }

    fn model_or_optimizer(&self, stage: Option<Stage>) -> Option<Reasoned> {
        let figures = &self.finding.figures;
        let allocated = figures.allocated.map(|allocated| match figures.total {
            Some(total) => say!(
                self.catalogue,
                "allocated-by-then-share",
                allocated = allocated,
                percent = percent(allocated, total)
            ),
            None => say!(self.catalogue, "allocated-by-then", allocated = allocated),
        });
        let progress = self.finding.progress.as_ref();
        let is_under_way = progress.is_some_and(|progress| progress.is_under_way());
        let (situation, id) = match stage? {
            Stage::LoadingTheModel if self.log.environment.is_model_missing => {
                (Situation::ModelDoesNotFit, "model-failed-to-load")
            }
            Stage::LoadingTheModel => (Situation::ModelDoesNotFit, "before-first-batch"),
            Stage::Optimizer if !is_under_way => {
                (Situation::OptimizerState, "optimizer-first-step")
            }
            _ => return None,
        };
        Some(Reasoned::new(situation, say!(self.catalogue, id)).and_if(allocated))
    }

    fn evaluation(&self, stage: Option<Stage>) -> Option<Reasoned> {
        if stage != Some(Stage::Evaluation) {
            return None;
        }
        let traceback = self.finding.traceback.as_ref();
        let reason = match traceback.and_then(|traceback| traceback.place()) {
            Some(frame) => say!(
                self.catalogue,
                "evaluation-place",
                function = frame.function,
                file = frame.file,
                line = frame.line
            ),
            None => say!(self.catalogue, "evaluation-bar"),
        };
        let causes = say!(self.catalogue, "evaluation-causes");
        Some(Reasoned::new(Situation::Evaluation, reason).and(causes))
    }

    /// More than the card has: the driver on Windows, and so in WSL, lends RAM when a card is full.
    fn lent_by_windows(&self) -> Option<Reasoned> {
        let figures = &self.finding.figures;
        let (allocated, total) = (figures.allocated?, figures.total?);
        let is_one_request = figures.requested.is_some_and(|asked| asked.exceeds(total));
        if !allocated.exceeds(total) || is_one_request || self.finding.kind != Kind::CudaAllocator {
            return None;
        }
        let reason = say!(
            self.catalogue,
            "lent-by-windows",
            allocated = allocated,
            total = total
        );
        Some(Reasoned::new(Situation::Full, reason))
    }

    fn one_large_request(&self) -> Option<Reasoned> {
        let figures = &self.finding.figures;
        let (requested, total) = (figures.requested?, figures.total?);
        if requested.bytes * 10 < total.bytes || requested.bytes < 256 * MIB {
            return None;
        }
        let share = percent(requested, total);
        let reason = match figures.free {
            Some(free) => say!(
                self.catalogue,
                "large-share-free",
                requested = requested,
                percent = share,
                free = free
            ),
            None => say!(
                self.catalogue,
                "large-share",
                requested = requested,
                percent = share
            ),
        };
        let allocated = figures.allocated.map(|allocated| {
            say!(
                self.catalogue,
                "already-allocated",
                allocated = allocated,
                percent = percent(allocated, total)
            )
        });
        Some(Reasoned::new(Situation::OneLargeRequest, reason).and_if(allocated))
    }

    fn activations(&self, stage: Option<Stage>) -> Option<Reasoned> {
        let figures = &self.finding.figures;
        let progress = self.finding.progress.as_ref();
        let is_under_way = progress.is_some_and(|progress| progress.is_under_way());
        // In the optimizer's first step, activations are already freed.
        let is_training = matches!(stage, Some(Stage::Backward | Stage::Training));
        let is_inference = stage == Some(Stage::Inference);
        if is_inference || (!is_training && !is_under_way) {
            return None;
        }
        let (allocated, total) = (figures.allocated?, figures.total?);
        let reason = say!(
            self.catalogue,
            "training-tensors",
            allocated = allocated,
            total = total,
            percent = percent(allocated, total),
            requested = figures.requested.unwrap_or_default()
        );
        let backward = stage == Some(Stage::Backward);
        let backward = backward.then(|| say!(self.catalogue, "in-backward"));
        let later = self.steps();
        let later = later.map(|steps| say!(self.catalogue, "larger-or-grew", steps = steps));
        Some(
            Reasoned::new(Situation::Activations, reason)
                .and_if(backward)
                .and_if(later),
        )
    }

    fn full(&self) -> Reasoned {
        let figures = &self.finding.figures;
        let reason = match (figures.allocated, figures.total, figures.requested) {
            (Some(allocated), Some(total), requested) => say!(
                self.catalogue,
                "in-use",
                allocated = allocated,
                total = total,
                percent = percent(allocated, total),
                requested = requested.unwrap_or_default()
            ),
            (_, _, Some(requested)) => say!(self.catalogue, "rest-missing", requested = requested),
            _ => say!(self.catalogue, "no-figures"),
        };
        let small = figures
            .requested
            .and_then(|requested| match requested.bytes {
                bytes if bytes == 2 * MIB => Some(say!(self.catalogue, "small-segment")),
                bytes if bytes == 20 * MIB => Some(say!(self.catalogue, "medium-segment")),
                _ => None,
            });
        Reasoned::new(Situation::Full, reason)
            .and_if(small)
            .and_if(self.what_the_cache_says())
    }

    /// Whether the cache could have served the request: only if not even all of it would have been enough,
    /// fragmentation is ruled out.
    fn what_the_cache_says(&self) -> Option<String> {
        let figures = &self.finding.figures;
        let cached = figures.cached.filter(|cached| cached.bytes > 0)?;
        let requested = figures.requested?;
        let available = cached.plus(figures.free.unwrap_or_default());
        let id = match requested.exceeds(available) {
            true => "cache-not-enough",
            false => "cache-in-small-pieces",
        };
        Some(say!(self.catalogue, id, cached = cached))
    }
}

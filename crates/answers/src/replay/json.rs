//! The answer of a replay for programs: `docs/replay-json.md` describes it.

use ghostgpu_allocator::Stats;
use ghostgpu_allocator::replay::WhatIf;
use ghostgpu_whatif::Recorded;
use serde_json::{Value, json};

use super::{Outcome, Replayed};

/// The version is raised when a field changes its meaning or is removed.
const SCHEMA: &str = "ghostgpu.replay/1";

pub(super) fn document(replayed: &Replayed) -> Value {
    let history = replayed.history;
    let mut document = json!({
        "schema": SCHEMA,
        "file": replayed.file,
        "device": history.device,
        "torch": history.release.to_string(),
        "events": history.entries(),
        "settings": history.settings.text,
        "reproduced": history.difference().is_none(),
        "first_difference": history.difference().map(|difference| json!({
            "event": difference.index,
            "text": difference.to_string(),
        })),
        "recorded": recorded(&history.recorded),
        "card": replayed.card.as_ref().map(|card| json!({
            "name": card.name,
            "total_bytes": card.total_bytes,
            "outside_bytes": card.outside_bytes,
        })),
        "limit_bytes": replayed.question.limit_bytes,
        "as_torch": replayed.question.release.to_string(),
        "fits": replayed.outcome.fits(),
        "assumptions": replayed.assumptions,
    });
    let (name, value) = match &replayed.outcome {
        Outcome::One(answer) => (
            "what_if",
            answer_json(replayed, &replayed.question.settings.text, answer),
        ),
        Outcome::Ranked { found, .. } => {
            let list = found
                .iter()
                .map(|each| answer_json(replayed, &each.settings.text, &each.answer));
            ("ranked", Value::Array(list.collect()))
        }
    };
    document[name] = value;
    document
}

fn recorded(figures: &Recorded) -> Value {
    json!({
        "peak_reserved_bytes": figures.peak_reserved_bytes,
        "peak_allocated_bytes": figures.peak_allocated_bytes,
        "peak_active_bytes": figures.peak_active_bytes,
        "peak_requested_bytes": figures.peak_requested_bytes,
        "retries": figures.retries,
        "ooms": figures.ooms,
    })
}

fn figures(stats: &Stats) -> Value {
    json!({
        "peak_reserved_bytes": stats.reserved_bytes.all.peak,
        "peak_allocated_bytes": stats.allocated_bytes.all.peak,
        "peak_active_bytes": stats.active_bytes.all.peak,
        "peak_requested_bytes": stats.requested_bytes.all.peak,
        "retries": stats.num_alloc_retries,
        "ooms": stats.num_ooms,
    })
}

fn answer_json(replayed: &Replayed, settings: &str, answer: &WhatIf) -> Value {
    let mut value = figures(&answer.stats);
    value["settings"] = settings.into();
    value["fits"] = answer.failure.is_none().into();
    value["failed_at_event"] = answer
        .failure
        .as_ref()
        .map(|failure| replayed.history.event_of(failure.index))
        .into();
    value["fragmentation_at_peak"] = answer.fragmentation_at_peak().into();
    value
}

//! Turns arguments into a question.

use ghostgpu_allocator::Settings;
use ghostgpu_answers::replay::CardMemory;
use ghostgpu_device::{Catalogue, LookupError};
use ghostgpu_whatif::{History, HistoryError, Question};

use super::Arguments;
use crate::failure::Failure;
use ghostgpu_text::human;

/// What a context and the libraries of a typical training take, for a card that is not named: measured on an H200
/// (`ground_truth/h200/probe_card.json.gz`); it is less on smaller cards.
const USUAL_OUTSIDE_BYTES: u64 = 640 << 20;

/// The requested card; `None` for unlimited memory.
pub(super) fn card_memory(arguments: &Arguments) -> Result<Option<CardMemory>, Failure> {
    let card = match &arguments.gpu {
        None => None,
        Some(name) => {
            let found = Catalogue::builtin().find(name);
            let refused =
                |error: LookupError| Failure::new(error.to_string()).with_hint(error.hint());
            Some(found.map_err(refused)?)
        }
    };
    let Some(total_bytes) = arguments.memory.or(card.map(|card| card.total_bytes)) else {
        return match arguments.outside {
            None => Ok(None),
            Some(_) => Err(Failure::new("--outside needs a card")
                .with_hint("name one with --gpu, or its memory with --memory")),
        };
    };
    let known = card.map(|card| {
        let overhead = card.sheet().overhead;
        overhead.context_bytes + overhead.kernels_bytes
    });
    let outside_bytes = arguments.outside.or(known).unwrap_or(USUAL_OUTSIDE_BYTES);
    if outside_bytes >= total_bytes {
        return Err(Failure::new(format!(
            "nothing of {} is left for PyTorch: {} is used outside it",
            human(total_bytes),
            human(outside_bytes)
        )));
    }
    Ok(Some(CardMemory {
        name: card.map(|card| card.name.to_owned()),
        total_bytes,
        outside_bytes,
        is_outside_assumed: arguments.outside.is_none(),
    }))
}

/// The question to replay.
pub(super) fn question(
    arguments: &Arguments,
    history: &History,
    card: Option<&CardMemory>,
) -> Result<Question, Failure> {
    let release = arguments.as_torch.unwrap_or(history.release);
    let settings = if arguments.set.is_empty() {
        history.settings.clone()
    } else {
        let text = arguments.set.join(",");
        Settings::parse(&text, release).map_err(|error| {
            Failure::new(format!(
                "PyTorch {release} refuses `{text}`: {}: {}",
                error.exception.name(),
                error.reason
            ))
        })?
    };
    if settings.uses_malloc_async {
        return Err(Failure::new(
            "backend:cudaMallocAsync is the driver's allocator, not PyTorch's, and cannot be replayed",
        )
        .with_hint("`ghostgpu run` runs a script under it"));
    }
    let fraction = settings.per_process_memory_fraction;
    let from_fraction = card
        .filter(|_| fraction < 1.0)
        .map(|card| (card.total_bytes as f64 * fraction) as u64);
    Ok(Question {
        release,
        settings,
        capacity_bytes: card.map(CardMemory::for_the_allocator_bytes),
        limit_bytes: arguments.limit.or(from_fraction).or(history.limit_bytes),
        ..history.question()
    })
}

pub(super) fn cannot_replay(error: &HistoryError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        HistoryError::NoEvents { .. } => failure.with_hint(
            "call torch.cuda.memory._record_memory_history() before the part to look at, and \
             torch.cuda.memory._dump_snapshot(\"file.pickle\") after it",
        ),
        _ => failure,
    }
}

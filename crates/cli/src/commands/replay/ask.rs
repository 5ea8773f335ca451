//! From arguments to a question, and what its answer rests on.

use ghostgpu_allocator::Settings;
use ghostgpu_device::{Catalogue, LookupError};
use ghostgpu_trace::{Snapshot, Warning};
use ghostgpu_whatif::{Basis, History, HistoryError, Question};

use super::{Arguments, Outcome};
use crate::failure::Failure;
use ghostgpu_text::human;

/// What a context and the libraries of a usual training take on a card that nobody named: read on an
/// H200 (`ground_truth/h200/probe_card.json.gz`), and less on smaller cards.
const USUAL_OUTSIDE_BYTES: u64 = 640 << 20;

/// A card's memory, as far as the allocator goes.
#[derive(Debug, Clone)]
pub(super) struct CardMemory {
    pub name: Option<String>,
    pub total_bytes: u64,
    /// Context, libraries and other programs.
    pub outside_bytes: u64,
    /// Nobody said how much is outside.
    pub is_outside_assumed: bool,
}

impl CardMemory {
    pub fn for_the_allocator_bytes(&self) -> u64 {
        self.total_bytes.saturating_sub(self.outside_bytes)
    }
}

/// The card that was asked for; none: memory without end.
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
            "of {} nothing is left for PyTorch when {} are taken by others",
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

/// What is to be found out.
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

/// Sentences that the answer rests on.
pub(super) fn assumptions(
    snapshot: &Snapshot,
    history: &History,
    outcome: &Outcome,
    card: Option<&CardMemory>,
) -> Vec<String> {
    let mut sentences = Vec::new();
    match history.basis {
        Basis::Named | Basis::Reproduced => {}
        Basis::Nearest => sentences.push(format!(
            "no release's rules lead to every recorded address; those of torch {} come furthest, \
             and the answer may be off",
            history.release
        )),
        Basis::Assumed => sentences.push(format!("torch {} is assumed", history.release)),
    }
    if let Some(trouble) = &history.settings_trouble {
        sentences.push(format!(
            "the recorded settings text was not understood: {}",
            trouble.reason
        ));
    }
    if let Some(card) = card.filter(|card| card.is_outside_assumed) {
        let whose = match &card.name {
            Some(name) => format!("on the {name}"),
            None => "as on an H200".to_owned(),
        };
        sentences.push(format!(
            "{} are taken by the CUDA context and kernels, {whose}; --outside says it better",
            human(card.outside_bytes)
        ));
    }
    sentences.push(
        "the program asks for the same memory at the same times under any setting; libraries that \
         choose by free memory (cuDNN's benchmark mode) may not"
            .to_owned(),
    );
    if history.release.behaviour().tie_break == ghostgpu_allocator::TieBreak::Address {
        sentences.push(
            "up to torch 2.11 equal blocks are chosen by address; new segments lie as an H200's \
             driver would put them"
                .to_owned(),
        );
    }
    // Whether there are stacks makes no difference to a replay.
    let warnings = snapshot
        .warnings
        .iter()
        .filter(|warning| **warning != Warning::NoStacks);
    sentences.extend(warnings.map(ToString::to_string));
    let from_answer = match outcome {
        Outcome::One(answer) => answer.warnings.clone(),
        Outcome::Ranked { found, .. } => {
            let first = found.first().map(|best| best.answer.warnings.clone());
            first.unwrap_or_default()
        }
    };
    for warning in history.warnings().into_iter().chain(from_answer) {
        let sentence = warning.to_string();
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    sentences
}

//! The assumptions of a replay's answer.

use ghostgpu_snapshot::{Snapshot, Warning};
use ghostgpu_text::human;
use ghostgpu_whatif::{Basis, History};

use super::{CardMemory, Outcome};

/// The assumptions, one sentence each.
pub fn assumptions(
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
            "{} are taken by the CUDA context and kernels, {whose}; --outside sets it",
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
    // A replay does not need stacks.
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

//! Logs of a real H200 that ran out of memory for known reasons (`ground_truth/h200/failures`): the true
//! situation must be among those that are named.

mod common;

use std::path::PathBuf;

use common::read;
use ghostgpu_explain::{Situation, explain};
use serde::Deserialize;

#[derive(Deserialize)]
struct Recorded {
    failures: Vec<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    name: String,
    /// What filled the card.
    situation: String,
}

/// The situations that name the true cause.
fn true_situations(situation: &str) -> &'static [Situation] {
    match situation {
        "large-request" => &[Situation::OneLargeRequest, Situation::ShapeBug],
        "shape-bug" => &[Situation::ShapeBug],
        "model-does-not-fit" => &[Situation::ModelDoesNotFit],
        "batch" => &[Situation::Activations],
        "optimizer" => &[Situation::OptimizerState],
        "evaluation" => &[Situation::Evaluation],
        "growth" => &[Situation::Growth],
        "fragmentation" => &[Situation::Fragmentation],
        "other-process" => &[Situation::OtherProcess, Situation::OutsideTheAllocator],
        "library-disguise" => &[Situation::OutsideTheAllocator],
        // A request for a pebibyte of RAM is a wrong shape.
        "host" => &[
            Situation::HostMemory,
            Situation::SharedMemory,
            Situation::PinnedMemory,
            Situation::ShapeBug,
        ],
        other => panic!("unknown situation {other:?}"),
    }
}

#[test]
fn the_true_cause_on_a_real_card_is_named() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../ground_truth/h200/failures");
    let facts = std::fs::read_to_string(folder.join("failures.json")).expect("recorded");
    let recorded: Recorded = serde_json::from_str(&facts).expect("valid");
    assert!(recorded.failures.len() >= 20);
    let mut wrong = Vec::new();
    for failure in recorded.failures {
        let log = std::fs::read(folder.join(format!("{}.log", failure.name))).expect("recorded");
        let named: Vec<Situation> = explain(&read(&log, 4096))
            .map(|explanation| {
                explanation
                    .situations
                    .iter()
                    .map(|each| each.situation)
                    .collect()
            })
            .unwrap_or_default();
        let wanted = true_situations(&failure.situation);
        if !named.iter().any(|each| wanted.contains(each)) {
            wrong.push(format!("{}: named {named:?}, was {wanted:?}", failure.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

//! The breakdown of made-up trainings, as a user would see it.

use ghostgpu_recording::made_up::{ByHand, MadeUp, Origin, recording};
use ghostgpu_recording::{Answer, CardMemory, Category, Recording, Stage};

use super::*;
use crate::style::{PLAIN, assert_fits_one_screen};

const FULL: Style = Style {
    detail: Detail::Everything,
    ..PLAIN
};

/// Both forms of the answer.
fn shown(recording: &Recording, style: Style) -> String {
    let with = |detail| breakdown_answer(recording, Style { detail, ..style });
    let screen = with(Detail::Screen);
    assert_fits_one_screen(&screen);
    format!("{screen}\n--verbose\n{}", with(Detail::Everything))
}

const MIB: u64 = 1 << 20;

#[test]
fn a_training_with_adam() {
    let mut training = recording(MadeUp {
        layers: 12,
        steps: 3,
    });
    training.about.answer = Some(Answer {
        fits: Some(true),
        peak_device_bytes: 1_234_567_890,
        needed_device_bytes: Some(1),
        ..Answer::default()
    });
    insta::assert_snapshot!(shown(&training, PLAIN));
    let quiet = Style {
        detail: Detail::Quiet,
        ..PLAIN
    };
    assert_eq!(breakdown_answer(&training, quiet).lines().count(), 1);
}

/// A transformer whose script keeps the graph of each step.
pub fn a_leaking_transformer() -> Recording {
    let mut card = ByHand::new();
    card.recording.about.gpu = "NVIDIA T4".to_owned();
    card.recording.about.gpu_total_bytes = 14 << 30;
    card.recording.about.command = vec!["train.py".to_owned(), "--fast".to_owned()];
    card.card().outside_bytes = 300 * MIB;
    card.enter(Stage::Moving);
    let parts = ["attention.query", "attention.output", "mlp"];
    let modules: Vec<String> = (0..4)
        .flat_map(|layer| parts.map(|part| format!("bert.encoder.layer.{layer}.{part}")))
        .chain(["bert.embeddings".to_owned(), "classifier".to_owned()])
        .collect();
    for module in &modules {
        let origin = Origin {
            lines: &["torch/module.py:1", "/home/me/job/train.py:9"],
            name: &format!("{module}.weight"),
            ..Origin::default()
        };
        card.allocate(7 * MIB, Category::Parameter, origin);
    }
    for step in 0..4 {
        card.enter(Stage::Forward);
        let mut saved = Vec::new();
        for module in &modules {
            let origin = Origin {
                lines: &[
                    "torch/linear.py:7",
                    "/venv/lib/python3.11/site-packages/transformers/models/bert/modeling_bert.py:312",
                    "/home/me/job/train.py:20",
                ],
                module,
                operator: "aten::linear",
                ..Origin::default()
            };
            saved.push(card.allocate(30 * MIB, Category::Activation, origin));
        }
        // What the list of losses keeps.
        let kept = saved.split_off(13);
        card.enter(Stage::Backward);
        for module in &modules {
            let origin = Origin {
                name: &format!("{module}.weight"),
                operator: "aten::mm",
                module,
                ..Origin::default()
            };
            card.allocate(7 * MIB, Category::Gradient, origin);
        }
        saved.into_iter().for_each(|one| card.free(one));
        assert_eq!(kept.len(), 1);
        card.enter(Stage::OptimizerStep);
        if step == 0 {
            for module in &modules {
                let origin = Origin {
                    lines: &["/home/me/job/train.py:24"],
                    name: &format!("{module}.weight.momentum_buffer"),
                    ..Origin::default()
                };
                card.allocate(7 * MIB, Category::OptimizerState, origin);
            }
        }
        card.next_step();
        card.enter(Stage::ZeroGrad);
        let gradients: Vec<_> = (0..card.card().allocations.len())
            .filter(|at| {
                let one = card.card().allocations[*at];
                one.category == Category::Gradient && one.freed_at.is_none()
            })
            .collect();
        for at in gradients {
            card.free(ghostgpu_recording::AllocationId(at as u32));
        }
        card.enter(Stage::Script);
    }
    card.recording
}

#[test]
fn a_transformer_whose_script_keeps_graphs() {
    let style = Style {
        current_dir: Some(std::path::Path::new("/home/me/job")),
        ..PLAIN
    };
    insta::assert_snapshot!(shown(&a_leaking_transformer(), style));
}

#[test]
fn a_recording_without_cards_or_events_has_a_report_too() {
    let mut empty = Recording::default();
    assert_eq!(
        breakdown_answer(&empty, FULL),
        "recorded       , 0 optimizer steps\n"
    );
    empty.cards = vec![
        CardMemory::default(),
        CardMemory {
            index: 1,
            ..CardMemory::default()
        },
    ];
    assert!(breakdown_answer(&empty, FULL).contains("at the peak"));
}

#[test]
fn names_in_a_file_do_not_speak_to_the_terminal() {
    let mut hostile = recording(MadeUp {
        layers: 2,
        steps: 3,
    });
    for frame in &mut hostile.names.frames {
        frame.function = "\x1b[2J\x07main".to_owned();
    }
    hostile.names.modules[2].path = "layers.\x1b]0;title\x07".to_owned();
    hostile.about.command = vec!["\u{9b}31m".to_owned()];
    let report = breakdown_answer(&hostile, FULL);
    assert!(report.contains("?[2J?main"), "{report}");
    assert!(report.lines().all(|line| !line.contains(char::is_control)));
}

//! Who holds memory: modules with everything below them, lines of the user's code, operators.

use ghostgpu_ledger::CardLedger;
use ghostgpu_recording::made_up::{ByHand, Origin};
use ghostgpu_recording::{Category, Recording, Stage};

fn a_small_model() -> Recording {
    let mut card = ByHand::new();
    card.enter(Stage::Moving);
    for (name, bytes) in [
        ("encoder.layer.0.attention.weight", 1000),
        ("encoder.layer.1.attention.weight", 1000),
        ("head.weight", 300),
    ] {
        let origin = Origin {
            lines: &["torch/module.py:9", "site-packages/lib.py:3", "train.py:12"],
            name,
            operator: "aten::copy_",
            ..Origin::default()
        };
        card.allocate(bytes, Category::Parameter, origin);
    }
    card.enter(Stage::Forward);
    for module in ["encoder.layer.0.attention", "encoder.layer.1.attention"] {
        let origin = Origin {
            lines: &["torch/linear.py:7", "site-packages/bert.py:88"],
            module,
            operator: "aten::linear",
            ..Origin::default()
        };
        card.allocate(5000, Category::Activation, origin);
    }
    card.enter(Stage::Backward);
    for module in ["encoder.layer.0.attention", "encoder.layer.1.attention"] {
        let origin = Origin {
            module,
            operator: "aten::mm",
            ..Origin::default()
        };
        card.allocate(700, Category::Temporary, origin);
    }
    card.allocate(50, Category::Workspace, Origin::default());
    card.recording
}

#[test]
fn a_module_includes_those_inside_it() {
    let recording = a_small_model();
    let ledger = CardLedger::new(&recording, &recording.cards[0]);
    let tree = ledger.by_module(ledger.end().moment);
    let found: Vec<(&str, u64, u64)> = tree
        .nodes
        .iter()
        .map(|node| {
            let (own, total) = (node.own.requested_bytes(), node.total.requested_bytes());
            (node.path.as_str(), own, total)
        })
        .collect();
    assert_eq!(
        found,
        [
            ("encoder", 0, 13_400),
            ("encoder.layer", 0, 13_400),
            ("encoder.layer.0", 0, 6700),
            ("encoder.layer.0.attention", 6700, 6700),
            ("encoder.layer.1", 0, 6700),
            ("encoder.layer.1.attention", 6700, 6700),
            ("", 50, 50),
            ("head", 300, 300),
        ]
    );
}

#[test]
fn lines_are_the_users_then_a_packages_and_threads_without_python_have_operator_and_module() {
    let recording = a_small_model();
    let ledger = CardLedger::new(&recording, &recording.cards[0]);
    let found: Vec<(String, u64)> = ledger
        .by_place(ledger.end().moment)
        .into_iter()
        .map(|one| (one.label, one.held.requested_bytes()))
        .collect();
    let expected = [
        ("site-packages/bert.py:88 in main", 10_000),
        ("train.py:12 in main", 2300),
        ("aten::mm in backward of encoder.layer.*.attention", 1400),
        ("backward, outside Python", 50),
    ];
    assert_eq!(
        found,
        expected.map(|(label, bytes)| (label.to_owned(), bytes))
    );
}

#[test]
fn operators_have_names_or_the_reason_why_not() {
    let recording = a_small_model();
    let ledger = CardLedger::new(&recording, &recording.cards[0]);
    let found: Vec<(String, u64)> = ledger
        .by_operator(ledger.end().moment)
        .into_iter()
        .map(|one| (one.label, one.held.requested_bytes()))
        .collect();
    let expected = [
        ("aten::linear", 10_000),
        ("aten::copy_", 2300),
        ("aten::mm", 1400),
        ("outside any operator, in the backward", 50),
    ];
    assert_eq!(
        found,
        expected.map(|(label, bytes)| (label.to_owned(), bytes))
    );
}

#[test]
fn holders_of_equal_modules_are_one_with_their_stack() {
    let recording = a_small_model();
    let ledger = CardLedger::new(&recording, &recording.cards[0]);
    let holders = ledger.holders(ledger.end().moment);
    let first = &holders[0];
    assert_eq!(first.held.count, 2);
    assert_eq!(first.held.requested_bytes(), 10_000);
    assert_eq!(first.module, "encoder.layer.*.attention");
    assert_eq!(first.category, Category::Activation);
    assert_eq!(recording.names.stacks[first.stack.0 as usize].len(), 2);
}

#[test]
fn the_rule_of_thumb_counts_copies_by_the_optimizers_state() {
    for (states, copies) in [(0, 2), (1, 3), (2, 4)] {
        let mut card = ByHand::new();
        let named = |name| Origin {
            name,
            module: "fc",
            ..Origin::default()
        };
        card.allocate(8000, Category::Parameter, named("fc.weight"));
        card.enter(Stage::Forward);
        let saved = card.allocate(1000, Category::Activation, named(""));
        card.enter(Stage::Backward);
        card.free(saved);
        card.allocate(8000, Category::Gradient, named("fc.weight"));
        card.enter(Stage::OptimizerStep);
        card.allocate(4, Category::OptimizerState, named("fc.weight.step"));
        for name in ["fc.weight.exp_avg", "fc.weight.exp_avg_sq"]
            .into_iter()
            .take(states)
        {
            card.allocate(8000, Category::OptimizerState, named(name));
        }
        let recording = card.recording;
        let ledger = CardLedger::new(&recording, &recording.cards[0]);
        let rule = ledger.rule_of_thumb().expect("a training");
        assert_eq!(rule.optimizer.copies(), copies);
        assert_eq!(rule.rule_bytes, 8000 * copies + 2000);
        assert_eq!(rule.layers[0].path, "fc");
    }
}

#[test]
fn outputs_are_those_of_the_innermost_modules() {
    let mut card = ByHand::new();
    card.enter(Stage::Forward);
    for module in ["[Net]", "body", "body.fc", "body.act", "head"] {
        let origin = Origin {
            module,
            ..Origin::default()
        };
        card.allocate(512, Category::Activation, origin);
    }
    let mut recording = card.recording;
    for (module, output_bytes) in recording
        .names
        .modules
        .iter_mut()
        .zip([0, 9, 70, 600, 70, 9])
    {
        module.output_bytes = output_bytes;
    }
    let ledger = CardLedger::new(&recording, &recording.cards[0]);
    let rule = ledger.rule_of_thumb().expect("a training");
    assert_eq!(rule.output_bytes, 600 + 70 + 9);
    assert_eq!(rule.rule_bytes, 2 * (600 + 70 + 9));
}

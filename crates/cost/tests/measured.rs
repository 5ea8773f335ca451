//! Predicted step times against those of a real H200: `ground_truth/h200/tricks`.
//!
//! `launched.jsonl` has what a step took there, for four models with one trick or none; `work.jsonl.gz` what the same
//! steps had the virtual card do (`ground_truth/harness/record_work.py`). The model's shares were
//! fitted to GPT-2 and ResNet-50; BERT and ViT are what the error is measured on.
//! `docs/step-time.md` names the figures.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;

use flate2::read::GzDecoder;
use ghostgpu_cost::{Direction, Operation, Rates, Work, step_time};
use ghostgpu_device::Catalogue;
use serde_json::Value;

const FITTED: [&str; 2] = ["gpt2", "resnet50"];
const HELD_OUT: [&str; 2] = ["bert-base", "vit-b"];

/// One case of `ground_truth/harness/launch_equals_rehearsal.py`.
struct Case {
    model: String,
    /// Seconds for a step.
    measured: f64,
    predicted: f64,
    /// The name of the case without tricks.
    plain: String,
}

fn lines(name: &str) -> Vec<Value> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../ground_truth/h200/tricks");
    let bytes = std::fs::read(folder.join(name)).expect("recorded");
    let mut text = String::new();
    if name.ends_with(".gz") {
        let mut unpacked = GzDecoder::new(bytes.as_slice());
        unpacked.read_to_string(&mut text).expect("gzip");
    } else {
        text = String::from_utf8(bytes).expect("text");
    }
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// The batch is on the card before the clock starts.
fn without_batch(mut work: Work) -> Work {
    for stretch in &mut work.stretches {
        stretch.operations.retain(|each| {
            !matches!(
                each.operation,
                Operation::Copy {
                    direction: Direction::ToCard,
                    bytes: 38_535_168 | 65_536 | 512 | 256,
                    is_pinned: false,
                }
            )
        });
    }
    work.stretches
        .retain(|stretch| !stretch.operations.is_empty());
    work
}

fn cases() -> BTreeMap<String, Case> {
    let card = Catalogue::builtin().find("h200").expect("a card");
    let rates = Rates::of(&card.sheet());
    let work: BTreeMap<String, Work> = lines("work.jsonl.gz")
        .into_iter()
        .map(|line| {
            let work = serde_json::from_value(line["work"].clone()).expect("work");
            (name_of(&line), work)
        })
        .collect();
    let measured = lines("launched.jsonl").into_iter().filter_map(|line| {
        let name = name_of(&line);
        let (model, trick) = name.split_once('/')?;
        let evaluates = ["evaluation", "drop-gradients", "empty-cache"]
            .iter()
            .any(|part| trick.contains(part));
        let plain = if evaluates {
            format!("{model}/plain with evaluation")
        } else {
            format!("{model}/plain")
        };
        let case = Case {
            model: model.to_owned(),
            measured: line["seconds_per_step"].as_f64()?,
            predicted: step_time(&without_batch(work[&name].clone()), &rates).seconds,
            plain,
        };
        Some((name, case))
    });
    measured.collect()
}

fn name_of(line: &Value) -> String {
    line["name"].as_str().expect("a name").to_owned()
}

/// How far a prediction of the time relative to that without tricks is off, for every trick.
fn relative_errors(cases: &BTreeMap<String, Case>, models: &[&str]) -> Vec<(String, f64)> {
    let relative = |case: &Case| {
        let plain = &cases[&case.plain];
        (case.predicted / plain.predicted) / (case.measured / plain.measured)
    };
    let mut errors: Vec<(String, f64)> = cases
        .iter()
        .filter(|(name, case)| models.contains(&case.model.as_str()) && **name != case.plain)
        .map(|(name, case)| (name.clone(), (relative(case) - 1.0).abs()))
        .collect();
    errors.sort_by(|a, b| a.1.total_cmp(&b.1));
    errors
}

/// Of the pairs of cases of one model that differ by more than a tenth, how many are predicted in the right order, and how
/// many there are.
fn ranked(cases: &BTreeMap<String, Case>, models: &[&str]) -> (usize, usize) {
    let (mut right, mut all) = (0, 0);
    let cases: Vec<&Case> = cases
        .values()
        .filter(|case| models.contains(&case.model.as_str()))
        .collect();
    for (place, one) in cases.iter().enumerate() {
        for other in cases[..place]
            .iter()
            .filter(|other| other.model == one.model)
        {
            let (short, long) = if one.measured < other.measured {
                (one, other)
            } else {
                (other, one)
            };
            if long.measured > 1.1 * short.measured {
                all += 1;
                right += usize::from(short.predicted < long.predicted);
            }
        }
    }
    (right, all)
}

fn median(errors: &[(String, f64)]) -> f64 {
    errors[errors.len() / 2].1
}

#[test]
fn relative_step_times_and_their_order_are_close_to_those_of_an_h200() {
    let cases = cases();
    assert!(cases.len() >= 75, "{} cases", cases.len());
    for (what, models, most_median, least_ranked) in [
        ("fitted", FITTED, 0.10, 90),
        ("held out", HELD_OUT, 0.05, 95),
    ] {
        let errors = relative_errors(&cases, &models);
        let (right, all) = ranked(&cases, &models);
        let within = errors.iter().filter(|(_, error)| *error <= 0.1).count();
        println!(
            "{what}: median error {:.1} %, within 10 %: {within} of {}, order right in {right} of {all} pairs",
            100.0 * median(&errors),
            errors.len(),
        );
        let matters = |name: &str| {
            let case = &cases[name];
            (case.measured / cases[&case.plain].measured - 1.0).abs() > 0.1
        };
        let mut mattering = errors.clone();
        mattering.retain(|(name, _)| matters(name));
        println!(
            "    where the trick makes more than 10 % of difference: median error {:.1} % of {}",
            100.0 * median(&mattering),
            mattering.len(),
        );
        let mut seconds: Vec<(String, f64)> = cases
            .iter()
            .filter(|(_, case)| models.contains(&case.model.as_str()))
            .map(|(name, case)| (name.clone(), (case.predicted / case.measured - 1.0).abs()))
            .collect();
        seconds.sort_by(|a, b| a.1.total_cmp(&b.1));
        let within = seconds.iter().filter(|(_, error)| *error <= 0.1).count();
        println!(
            "    seconds: median error {:.1} %, within 10 %: {within} of {}",
            100.0 * median(&seconds),
            seconds.len(),
        );
        for (name, error) in errors.iter().rev().take(6) {
            println!("    {:.0} % {name}", 100.0 * error);
        }
        assert!(median(&errors) <= most_median, "{what}: {errors:?}");
        assert!(
            right * 100 >= all * least_ranked,
            "{what}: {right} of {all} pairs"
        );
    }
}

//! Predicted step times against those of a real H200: `ground_truth/h200/tricks`.
//!
//! `launched.jsonl` has what a step took there, for four models with one trick or none; `work.jsonl.gz` what the same
//! steps had the virtual card do (`ground_truth/harness/record_work.py`). The model's shares were
//! fitted to GPT-2 and ResNet-50; BERT and ViT are what the error is measured on.
//! `docs/step-time.md` names the figures.

mod fitting;
mod recorded;

use std::collections::BTreeMap;

use ghostgpu_cost::{Efficiency, step_time};
use recorded::FITTED;

const HELD_OUT: [&str; 2] = ["bert-base", "vit-b"];

struct Case {
    model: String,
    /// Seconds for a step.
    measured: f64,
    predicted: f64,
    /// The name of the case without tricks.
    plain: String,
}

fn cases() -> BTreeMap<String, Case> {
    let rates = recorded::rates();
    let cases = recorded::cases().into_iter().map(|recorded| {
        let model = &recorded.model;
        let evaluates = ["evaluation", "drop-gradients", "empty-cache"]
            .iter()
            .any(|part| recorded.name.contains(part));
        let plain = if evaluates {
            format!("{model}/plain with evaluation")
        } else {
            format!("{model}/plain")
        };
        let case = Case {
            measured: recorded.measured,
            predicted: step_time(&recorded.work, &rates).seconds,
            plain,
            model: recorded.model,
        };
        (recorded.name, case)
    });
    cases.collect()
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

/// `examples/fit_efficiency.rs` shows what the search comes to.
#[test]
fn no_search_finds_much_better_shares_for_the_models_they_were_fitted_to() {
    let rates = recorded::rates();
    let mut cases = recorded::cases();
    cases.retain(|case| FITTED.contains(&case.model.as_str()));
    let present = fitting::error(&cases, &rates, &Efficiency::FITTED);
    let (_, best) = fitting::fit(&cases, &rates, Efficiency::FITTED);
    assert!(present - best < 0.005, "{present} could be {best}");
}

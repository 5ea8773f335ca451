//! Every rule against its own documentation and its cases.
//!
//! `tests/cases/RULE.py` holds snippets, each headed by `# case: statement`. A line that the rule must
//! report ends in `# <- found`; it must report no other line.

use std::collections::BTreeSet;
use std::path::PathBuf;

use ghostgpu_lint::{Edit, Family, RULES, Rule, Severity, Source, check};

/// Code that precedes the examples in the rules' documentation.
const PRELUDE: &str = "\
import copy
import os
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = torch.device(\"cuda\")
model = nn.Linear(4, 4).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
loader = DataLoader(dataset, batch_size=32)
total = 0
";

fn source(text: &str) -> Source {
    Source::script(text.as_bytes()).expect("text")
}

/// The lines (from 1) on which a rule reports.
fn lines(rule: &Rule, text: &str) -> BTreeSet<usize> {
    let source = source(text);
    let checked = check(&source, |other| other == rule);
    assert_eq!(
        checked.errors,
        [],
        "{}: the snippet must be Python:\n{text}",
        rule.name
    );
    checked
        .findings
        .iter()
        .map(|finding| source.position(finding.range.start).line)
        .collect()
}

/// The code blocks below a heading of a rule's documentation.
fn example(rule: &Rule, heading: &str) -> String {
    let docs = rule.docs;
    let section = docs
        .split("\n## ")
        .find(|section| section.trim_start_matches("## ").starts_with(heading))
        .unwrap_or_else(|| panic!("{} has no section {heading:?}", rule.name));
    let block = section
        .split("```python\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap_or_else(|| panic!("{}: {heading:?} has no Python block", rule.name));
    format!("{PRELUDE}{block}")
}

#[test]
fn every_rule_is_documented_in_the_same_shape() {
    for rule in RULES {
        let headings: Vec<&str> = rule
            .docs
            .lines()
            .filter_map(|line| line.strip_prefix("## "))
            .collect();
        assert_eq!(
            headings,
            [
                "What it does",
                "Why it costs memory",
                "Example",
                "Use instead",
                "When it is fine"
            ],
            "{}",
            rule.name
        );
        assert!(!rule.summary.ends_with('.'), "{}", rule.name);
    }
}

#[test]
fn names_of_rules_are_unique_and_in_order_of_family() {
    let keys: Vec<_> = RULES.iter().map(|rule| (rule.family, rule.name)).collect();
    let mut sorted = keys.clone();
    sorted.sort_unstable();
    sorted.dedup_by_key(|key| key.1);
    assert_eq!(keys, sorted);
}

#[test]
fn every_rule_reports_its_example_and_not_the_recommended_code() {
    for rule in RULES {
        let found = lines(rule, &example(rule, "Example"));
        assert!(
            !found.is_empty(),
            "{} does not find its own example",
            rule.name
        );
        let found = lines(rule, &example(rule, "Use instead"));
        assert!(
            found.is_empty(),
            "{} finds what it recommends, line {found:?}",
            rule.name
        );
    }
}

#[test]
fn every_rule_reports_its_cases_and_nothing_else() {
    let mut differences = Vec::new();
    for rule in RULES {
        for (name, snippet) in cases(rule) {
            let expected: BTreeSet<usize> = snippet
                .lines()
                .enumerate()
                .filter(|(_, line)| line.trim_end().ends_with("# <- found"))
                .map(|(index, _)| index + 1)
                .collect();
            let found = lines(rule, &snippet);
            if found != expected {
                differences.push(format!(
                    "{}: {name}: found in {found:?}, expected in {expected:?}\n{snippet}",
                    rule.name
                ));
            }
        }
    }
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
}

/// Measured on a card (`ground_truth/h200/mistakes.json`): after `backward()` a kept loss holds only
/// itself on the card; without it, all activations.
#[test]
fn a_kept_loss_is_an_error_without_backward_and_a_warning_with_it() {
    let keeps = ["total += loss", "losses.append(loss)"];
    for keep in keeps {
        for (step, severity) in [
            ("loss.backward()", Severity::Warning),
            ("pass", Severity::Error),
        ] {
            let text = format!(
                "{PRELUDE}losses = []\nfor x, y in loader:\n    loss = criterion(model(x), y)\n    \
                 {step}\n    {keep}\n"
            );
            let found: Vec<Severity> =
                check(&source(&text), |rule| rule.family == Family::KeptGraphs)
                    .findings
                    .iter()
                    .map(|finding| finding.severity)
                    .collect();
            assert_eq!(found, [severity], "{text}");
        }
    }
}

#[test]
fn every_fix_parses_and_removes_its_finding() {
    for rule in RULES {
        let examples = [("example".to_owned(), example(rule, "Example"))];
        for (name, snippet) in examples.into_iter().chain(cases(rule)) {
            let before = source(&snippet);
            let checked = check(&before, |other| other == *rule);
            for finding in &checked.findings {
                let Some(fix) = &finding.fix else { continue };
                let after = source(&before.with_edits(&fix.edits));
                let again = check(&after, |other| other == *rule);
                assert_eq!(again.errors, [], "{}: {name}\n{}", rule.name, after.text());
                assert!(
                    again.findings.len() < checked.findings.len(),
                    "{}: {name}: the fix leaves its finding\n{}",
                    rule.name,
                    after.text()
                );
                assert_edits_are_in_order(&fix.edits);
            }
        }
    }
}

fn assert_edits_are_in_order(edits: &[Edit]) {
    for pair in edits.windows(2) {
        assert!(pair[0].range.end <= pair[1].range.start, "{edits:?}");
    }
}

/// The snippets in a rule's case file; every rule has one.
fn cases(rule: &Rule) -> Vec<(String, String)> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cases")
        .join(format!("{}.py", rule.name));
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let cases: Vec<(String, String)> = text
        .split("# case: ")
        .skip(1)
        .map(|case| {
            let (name, snippet) = case.split_once('\n').expect("a statement and a snippet");
            (name.to_owned(), snippet.to_owned())
        })
        .collect();
    assert!(cases.len() >= 4, "{} has too few cases", rule.name);
    assert!(
        cases.iter().any(|(_, case)| case.contains("# <- found")),
        "{}",
        rule.name
    );
    assert!(
        cases.iter().any(|(_, case)| !case.contains("# <- found")),
        "{}",
        rule.name
    );
    cases
}

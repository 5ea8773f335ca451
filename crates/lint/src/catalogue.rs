//! The rules as a list and as pages: for `--rules`, `--explain` and `docs/lint-rules.md`.

use crate::check;
use crate::finding::Safety;
use crate::names;
use crate::rules::{Family, RULES, Rule};
use crate::source::Source;

/// Code that precedes the examples of the rules.
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
optimizer = torch.optim.Adam(model.parameters())
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
loader = DataLoader(dataset, batch_size=32)
total = 0
";

const FAMILIES: [Family; 5] = [
    Family::KeptGraphs,
    Family::Evaluation,
    Family::Placement,
    Family::Accumulation,
    Family::NeedlessMemory,
];

/// What kind of fix a rule offers for its own example, if any.
pub fn fix_of(rule: &Rule) -> Option<Safety> {
    let example = rule.docs.split("```python\n").nth(1)?;
    let example = example.split("```").next()?;
    let source = Source::script(format!("{PRELUDE}{example}").as_bytes()).ok()?;
    let found = check(&source, |other| other == rule);
    let fixes = found.findings.iter().filter_map(|it| it.fix.as_ref());
    fixes.map(|fix| fix.safety).max()
}

/// The command-line option that applies a kind of fix.
pub fn fix_word(fix: Option<Safety>) -> &'static str {
    match fix {
        Some(Safety::Safe) => "--fix",
        Some(Safety::Unsafe) => "--unsafe-fixes",
        None => "no",
    }
}

/// Everything about one rule, as Markdown.
pub fn page(rule: &Rule) -> String {
    format!(
        "# {}\n\n{} ({}, {}; fix: {})\n\n{}",
        rule.name,
        sentence(rule.summary),
        rule.family.as_str(),
        rule.severity.as_str(),
        fix_word(fix_of(rule)),
        rule.docs
    )
}

/// All rules, as one Markdown page: `docs/lint-rules.md`.
pub fn markdown() -> String {
    let mut text = String::from(
        "# Rules of `ghostgpu lint`\n\n\
         Generated from the rules by `make lint-rules-page`; a test fails when it is out of \
         date.\n\n\
         | rule | family | severity | fix | finds |\n|---|---|---|---|---|\n",
    );
    for rule in RULES {
        text.push_str(&format!(
            "| [`{0}`](#{0}) | {1} | {2} | {3} | {4} |\n",
            rule.name,
            names::of_family(rule.family),
            rule.severity.as_str(),
            match fix_of(rule) {
                Some(_) => format!("`{}`", fix_word(fix_of(rule))),
                None => String::new(),
            },
            rule.summary.replace('|', "\\|"),
        ));
    }
    for family in FAMILIES {
        let rules: Vec<&&Rule> = RULES.iter().filter(|rule| rule.family == family).collect();
        if rules.is_empty() {
            continue;
        }
        text.push_str(&format!("\n## {}\n", sentence(family.as_str())));
        for rule in rules {
            // The headings in a rule's docs are one level below its own.
            let docs = rule.docs.replace("\n## ", "\n#### ");
            let docs = match docs.strip_prefix("## ") {
                Some(rest) => format!("#### {rest}"),
                None => docs,
            };
            text.push_str(&format!("\n### {}\n\n{}\n", rule.name, docs.trim_end()));
        }
    }
    text
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

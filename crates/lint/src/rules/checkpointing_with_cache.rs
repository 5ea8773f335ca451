//! Checkpointed activations next to a cache of keys and values.

use super::{Family, Report, Rule};
use crate::facts::structure::{Call, Place};
use crate::facts::value::Kind;
use crate::facts::{Facts, each_expression};
use crate::finding::{Edit, Fix, Severity};
use crate::python::{Expr, Keyword, span};
use crate::syntax::{is_true, says_true};

pub static RULE: Rule = Rule {
    name: "checkpointing-with-cache",
    family: Family::NeedlessMemory,
    severity: Severity::Warning,
    summary: "gradient checkpointing is enabled together with the KV cache",
    docs: "\
## What it does
Finds `use_cache=True` for a model that is trained with gradient checkpointing in the same file.

## Why it costs memory
The cache keeps the keys and values of every layer, which training never uses and checkpointing is
meant not to keep. Most models in transformers disable it with a warning; models with custom code
may not.

## Example
```python
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained(\"gpt2\", use_cache=True)
model.gradient_checkpointing_enable()
for batch in loader:
    model(**batch).loss.backward()
    optimizer.step()
```

## Use instead
```python
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained(\"gpt2\", use_cache=False)
model.gradient_checkpointing_enable()
for batch in loader:
    model(**batch).loss.backward()
    optimizer.step()
```

## When it is fine
When the cache is enabled after training, for generation.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    if !facts.structure.calls.iter().any(|call| checkpoints(call)) {
        return;
    }
    for call in &facts.structure.calls {
        let Some(keyword) = call.node.arguments.find_keyword("use_cache") else {
            continue;
        };
        if is_true(&keyword.value)
            && (makes_model(facts, call) || trains_with(facts, call))
            && is_checkpointed(facts, call.place, span(call.node).start)
        {
            report_at(report, keyword);
        }
    }
    for assign in &facts.structure.assigns {
        let Expr::Attribute(target) = assign.target else {
            continue;
        };
        let unit = facts.structure.unit_of(assign.place.block);
        // After training, the cache is for generation.
        let trained_later = facts
            .calls_in_unit(unit)
            .any(|call| call.place.order > assign.place.order && is_training(facts, call));
        let switched_off = facts.assigns_in_unit(unit).any(|other| {
            other.place.order > assign.place.order
                && facts.same_text(other.target, assign.target)
                && !facts.calls_in_unit(unit).any(|call| {
                    (assign.place.order..other.place.order).contains(&call.place.order)
                        && is_training(facts, call)
                })
        });
        let trained_before = facts
            .calls_in_unit(unit)
            .any(|call| call.place.order < assign.place.order && is_training(facts, call));
        if target.attr.as_str() == "use_cache"
            && is_true(assign.value)
            && trained_later
            && !switched_off
            && is_checkpointed(facts, assign.place, span(assign.statement).start)
            && !trained_before
        {
            report.add_with(
                span(assign.statement),
                MESSAGE.to_owned(),
                HELP,
                Some(Fix::safe(
                    "Disable the KV cache",
                    vec![Edit::replace(span(assign.value), "False")],
                )),
            );
        }
    }
}

const MESSAGE: &str =
    "the KV cache keeps keys and values of every layer, and training never reads them";
const HELP: &str = "train with `use_cache=False`, and enable it for generation";

fn report_at(report: &mut Report<'_>, keyword: &Keyword) {
    report.add_with(
        span(keyword),
        MESSAGE.to_owned(),
        HELP,
        Some(Fix::safe(
            "Disable the KV cache",
            vec![Edit::replace(span(&keyword.value), "False")],
        )),
    );
}

/// Whether checkpointing can be on where the cache is enabled: not in the `else` of its option.
fn is_checkpointed(facts: &Facts<'_>, place: Place, at: usize) -> bool {
    let unit = facts.structure.unit_of(place.block);
    let is_otherwise = facts
        .conditions_at(place, at, facts.structure.units[unit].block)
        .iter()
        .any(|condition| !condition.holds && names_checkpointing(condition.test));
    !is_otherwise
        && facts
            .structure
            .calls
            .iter()
            .any(|call| checkpoints(call) && !facts.are_exclusive(call.place.block, place.block))
}

fn names_checkpointing(test: &Expr) -> bool {
    let mut found = false;
    each_expression(test, &mut |part| {
        found |= match part {
            Expr::Name(name) => name.id.as_str().contains("checkpointing"),
            Expr::Attribute(attribute) => attribute.attr.as_str().contains("checkpointing"),
            _ => false,
        };
    });
    found
}

/// `model.gradient_checkpointing_enable()`, `TrainingArguments(gradient_checkpointing=True)`.
fn checkpoints(call: &Call<'_>) -> bool {
    matches!(&*call.node.func, Expr::Attribute(function)
        if function.attr.as_str() == "gradient_checkpointing_enable")
        || says_true(call.node, "gradient_checkpointing")
}

/// `AutoModel.from_pretrained(..., use_cache=True)` and the like.
fn makes_model(facts: &Facts<'_>, call: &Call<'_>) -> bool {
    facts.callee(call.node).is_some_and(|name| {
        name.starts_with("transformers.")
            && (name.ends_with(".from_pretrained")
                || name.ends_with(".from_config")
                || name.ends_with("Config"))
    })
}

/// A forward pass with gradients.
fn trains_with(facts: &Facts<'_>, call: &Call<'_>) -> bool {
    matches!(facts.value(&call.node.func).kind, Kind::Module(_))
        && facts.gradients_at(call.node).is_yes()
        && facts
            .calls_in_unit(facts.structure.unit_of(call.place.block))
            .any(|other| facts.is_backward(other.node))
}

fn is_training(facts: &Facts<'_>, call: &Call<'_>) -> bool {
    facts.is_backward(call.node)
        || matches!(facts.method(call.node), Some((receiver, "train"))
            if !facts.value(receiver).is_module())
}

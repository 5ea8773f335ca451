//! A teacher or another model that only evaluates beside the one that is trained, and records its graph.

use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::roles::sounds_like_target_network;
use crate::facts::structure::{Call, UnitId};
use crate::facts::usage::unmoved;
use crate::facts::value::Kind;
use crate::finding::Severity;
use crate::python::{Expr, ExprCall, span};
use crate::syntax::{given, holds, is_true, says_true};

pub static RULE: Rule = Rule {
    name: "frozen-model-with-gradients",
    family: Family::Placement,
    severity: Severity::Warning,
    summary: "a model that is only evaluated beside the trained one records its graph",
    docs: "\
## What it does
Finds a model (a teacher, a feature extractor) that was put into `eval()`, has no optimizer and runs
on plain data with gradients enabled, in code that backpropagates the loss of another model, or in a
function or module that computes such a loss. A target network is known by its name, without `eval()`.

## Why it costs memory
The model's forward pass saves its activations for a `backward()` that does not need them, and
`backward()` then computes gradients as large as its weights, which nothing uses.

## Example
```python
teacher = torch.load(\"teacher.pt\", map_location=device)
teacher.eval()
for inputs, targets in loader:
    wanted = teacher(inputs)
    loss = F.mse_loss(model(inputs), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Use instead
```python
teacher = torch.load(\"teacher.pt\", map_location=device)
teacher.eval()
for inputs, targets in loader:
    with torch.no_grad():
        wanted = teacher(inputs)
    loss = F.mse_loss(model(inputs), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine
When gradients flow through the model back to its input, as in a perceptual loss of a generated
image. A model is not reported if its parameters are frozen, if it may be trained elsewhere, or if its
output is detached.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    let mut reported: Vec<(UnitId, &str)> = Vec::new();
    for call in &facts.structure.calls {
        let Some(model) = facts.called_module(call.node) else {
            continue;
        };
        let unit = facts.structure.unit_of(call.place.block);
        if reported.contains(&(unit, model))
            || !facts.gradients_at(call.node).is_yes()
            || !facts.result(call.node).graph.is_yes()
            || !trains_another(facts, unit, model)
            || !is_only_evaluated(facts, unit, model)
            || given(call.node).any(|each| facts.value(each).graph.is_yes())
            || differentiates_inputs(facts, unit)
            || facts.is_detached_later(unit, call.node)
            || facts.is_surely_on_host(unit, model)
        {
            continue;
        }
        reported.push((unit, model));
        report.add(
            span(call.node),
            format!("`{model}` is not trained, but autograd records its graph here"),
            format!("run it under `torch.no_grad()`, or call `{model}.requires_grad_(False)` once"),
        );
    }
}

/// Whether a unit backpropagates, or computes a loss for one that does, and another model runs with gradients.
fn trains_another(facts: &Facts<'_>, unit: UnitId, model: &str) -> bool {
    let backpropagates = facts.returns_loss_to_a_framework(unit)
        || facts
            .calls_in_unit(unit)
            .any(|call| facts.is_backward(call.node));
    let runs_another = || {
        facts.calls_in_unit(unit).any(|call| {
            facts
                .called_module(call.node)
                .is_some_and(|other| other != model && is_trained_by_use(facts, unit, other))
                && facts.gradients_at(call.node).is_yes()
        })
    };
    if backpropagates {
        runs_another()
    } else {
        computes_loss(facts, unit) && (gets_output(facts, unit) || runs_another())
    }
}

/// Whether the file backpropagates what a unit returns, and has no optimizer for the object it is a method of.
fn computes_loss(facts: &Facts<'_>, unit: UnitId) -> bool {
    let class = facts.structure.units[unit].class;
    let is_optimized = facts.structure.calls.iter().any(|call| {
        matches!(facts.method(call.node), Some((receiver, "parameters" | "named_parameters"))
            if matches!(facts.value(receiver).kind, Kind::Module(Some(of)) if class == Some(of)))
    });
    unit != 0
        && !is_optimized
        && facts.callers(unit).any(|call| {
            let around = facts.structure.unit_of(call.place.block);
            let is_bound = facts.assigns_in_unit(around).any(|assign| {
                holds(assign.value, call.node)
                    && facts
                        .path(assign.target)
                        .is_some_and(|path| facts.ends_in_backward(around, path))
            });
            is_bound && facts.gradients_at(call.node).is_yes()
        })
}

/// Whether an argument of a unit is the output of a model, with its graph.
fn gets_output(facts: &Facts<'_>, unit: UnitId) -> bool {
    let mut found = false;
    for (statement, place) in &facts.structure.statements {
        if facts.structure.unit_of(place.block) == unit {
            facts.each_expression_of_statement(statement, &mut |part| {
                found |= matches!(part, Expr::Name(name)
                    if facts.is_parameter_of(unit, name.id.as_str()))
                    && facts.value(part).is_tensor()
                    && facts.value(part).graph.is_yes();
            });
        }
    }
    found
}

/// Whether a model is not one that is only evaluated too.
fn is_trained_by_use(facts: &Facts<'_>, unit: UnitId, model: &str) -> bool {
    !mode_calls(facts, unit, model).contains(&"eval")
}

/// Whether a model is put into evaluation mode, never into training mode, and nothing else may train it.
fn is_only_evaluated(facts: &Facts<'_>, unit: UnitId, model: &str) -> bool {
    let modes = mode_calls(facts, unit, model);
    (modes.contains(&"eval") || sounds_like_target_network(model))
        && !modes.contains(&"train")
        && !facts.is_trained(unit, model)
        && facts.units_that_see(unit, model).into_iter().all(|each| {
            let usage = facts.usage(each, model);
            let is_copy = facts.assigns_in_unit(each).any(|assign| {
                facts.path(assign.target) == Some(model)
                    && matches!(assign.value, Expr::Call(call)
                        if facts.callee(call).as_deref() == Some("copy.deepcopy"))
            });
            !usage.frozen
                && !usage.zero_grad
                && !is_copy
                && !facts
                    .calls_in_unit(each)
                    .any(|call| may_freeze(facts, call.node, model))
        })
}

/// The modes that a model, or what it is a part of, is put into: `eval`, `train`.
fn mode_calls<'a>(facts: &Facts<'a>, unit: UnitId, model: &str) -> Vec<&'a str> {
    let mut modes = Vec::new();
    for each in facts.units_that_see(unit, model) {
        for call in facts.calls_in_unit(each) {
            let Some((receiver, mode @ ("eval" | "train"))) = facts.method(call.node) else {
                continue;
            };
            let is_bound_to_it = || {
                facts.assigns_in_unit(each).any(|assign| {
                    facts.path(assign.target) == Some(model)
                        && span(assign.value).end == span(call.node).end
                })
            };
            if facts.path(unmoved(receiver)) == Some(model) || is_bound_to_it() {
                modes.push(if mode == "eval" { "eval" } else { "train" });
            }
        }
    }
    modes
}

/// Whether a model itself is given to a function, which may freeze or train it.
fn may_freeze(facts: &Facts<'_>, call: &ExprCall, model: &str) -> bool {
    facts.called_module(call).is_none()
        && !matches!(facts.method(call), Some((_, "load_state_dict" | "append")))
        && given(call).any(|each| facts.path(each) == Some(model))
}

/// Whether a unit differentiates its inputs: then the graph is needed.
fn differentiates_inputs(facts: &Facts<'_>, unit: UnitId) -> bool {
    facts.calls_in_unit(unit).any(|call: &Call<'_>| {
        says_true(call.node, "requires_grad")
            || facts
                .callee(call.node)
                .is_some_and(|name| name == "torch.autograd.grad")
            || matches!(
                facts.method(call.node),
                Some((_, "requires_grad_" | "retain_grad"))
            )
    }) || facts.assigns_in_unit(unit).any(|assign| {
        matches!(assign.target, Expr::Attribute(target) if target.attr.as_str() == "requires_grad")
            && is_true(assign.value)
    })
}

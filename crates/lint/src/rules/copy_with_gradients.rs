//! A copy of the model (a teacher, a moving average, a target) that records gradients needlessly.

use super::fake_not_detached::{has, stepped_after};
use super::{Family, Report, Rule};
use crate::facts::roles::{Role, role, sounds_like_target_network};
use crate::facts::structure::{Assign, Call, UnitId};
use crate::facts::{Facts, each_expression};
use crate::finding::Severity;
use crate::python::{Expr, Stmt, span};
use crate::syntax::given;

pub static RULE: Rule = Rule {
    name: "copy-with-gradients",
    family: Family::Placement,
    severity: Severity::Warning,
    summary: "a copy of a model that is not trained runs with gradients enabled",
    docs: "\
## What it does
Finds a deep copy of a model that runs in the training loop with gradients enabled, while its
parameters still require gradients and no optimizer has them.

## Why it costs memory
The copy's forward pass saves its activations for a `backward()` that does not need them, and
`backward()` then computes gradients as large as the copy's weights, which nothing uses.

## Example
```python
teacher = copy.deepcopy(model)
for inputs, targets in loader:
    outputs = model(inputs)
    loss = F.mse_loss(outputs, teacher(inputs))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Use instead
```python
teacher = copy.deepcopy(model)
for inputs, targets in loader:
    outputs = model(inputs)
    with torch.no_grad():
        wanted = teacher(inputs)
    loss = F.mse_loss(outputs, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine
When the copy is trained too: a copy whose parameters go to an optimizer, or that is passed to a
function, is not reported. Neither is one through which gradients flow back to its input.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for assign in &facts.structure.assigns {
        let Expr::Call(copied) = assign.value else {
            continue;
        };
        if assign.operator.is_some() || facts.callee(copied).as_deref() != Some("copy.deepcopy") {
            continue;
        }
        let (Some(path), Some(original)) = (
            facts.path(assign.target),
            copied
                .arguments
                .args
                .first()
                .and_then(|each| facts.path(each)),
        ) else {
            continue;
        };
        let unit = facts.structure.unit_of(assign.place.block);
        if path == original
            || !facts.value(assign.target).is_module()
                && ![path, original]
                    .into_iter()
                    .any(|each| role(each) == Some(Role::Model))
            || may_be_trained(facts, unit, assign, path)
        {
            continue;
        }
        for each in facts.units_that_see(unit, path) {
            if let Some(call) = recorded_run(facts, each, path, original) {
                report.add(
                    span(call.node),
                    format!("`{path}` is a copy that is not trained, but autograd records its graph here"),
                    format!(
                        "run it under `torch.no_grad()`, or call `{path}.requires_grad_(False)` once"
                    ),
                );
                break;
            }
        }
    }
}

/// Where the copy runs next to the original, with gradients, in code that backpropagates.
fn recorded_run<'f, 'a>(
    facts: &'f Facts<'a>,
    unit: UnitId,
    path: &str,
    original: &str,
) -> Option<&'f Call<'a>> {
    let trains = facts
        .calls_in_unit(unit)
        .any(|call| facts.is_backward(call.node));
    // The original, or another model that it is copied beside of: the critic of an actor.
    let beside = facts.calls_in_unit(unit).any(|call| {
        facts.called_module(call.node).is_some_and(|model| {
            model == original
                || model != path
                    && sounds_like_target_network(path)
                    && !sounds_like_target_network(model)
                    && facts.gradients_at(call.node).is_yes()
        })
    });
    if !trains || !beside {
        return None;
    }
    facts.calls_in_unit(unit).find(|call| {
        facts.called_module(call.node) == Some(path)
            && facts.gradients_at(call.node).is_yes()
            && facts.result(call.node).graph.is_yes()
            && (facts.structure.loop_around(call.place.block).is_some()
                || facts.steps_around(call.place.block).is_some())
            && !facts.is_detached_later(unit, call.node)
            // Gradients through the copy to its input are intended.
            && !call
                .node
                .arguments
                .args
                .iter()
                .any(|each| {
                    facts.value(each).is_tensor()
                        && facts.value(each).graph.is_yes()
                        && may_be_trained_through(facts, unit, each)
                })
    })
}

/// Whether a step of the unit may train the model that made an input.
fn may_be_trained_through<'a>(facts: &Facts<'a>, unit: UnitId, input: &'a Expr) -> bool {
    let maker = facts
        .model_behind(unit, input)
        .and_then(|call| facts.called_module(call));
    let Some(maker) = maker else {
        return true;
    };
    facts
        .calls_in_unit(unit)
        .filter(|call| facts.is_backward(call.node))
        .any(|backward| {
            let stepped = stepped_after(facts, unit, backward);
            stepped.is_empty() || has(&stepped, maker)
        })
}

/// Whether an expression passes on a module itself, not its output.
fn is_given_away(facts: &Facts<'_>, expression: &Expr, path: &str) -> bool {
    let (mut named, mut called) = (0, 0);
    each_expression(expression, &mut |part| {
        named += usize::from(facts.path(part) == Some(path));
        called += usize::from(
            matches!(part, Expr::Call(call) if facts.called_module(call) == Some(path)),
        );
    });
    named > called
}

/// Whether the copy is frozen, has an optimizer, or is passed to code that may do either.
fn may_be_trained(facts: &Facts<'_>, unit: UnitId, assign: &Assign<'_>, path: &str) -> bool {
    facts.units_that_see(unit, path).into_iter().any(|unit| {
        let given = facts.calls_in_unit(unit).any(|call| {
            let names = |each: &Expr| is_given_away(facts, each, path);
            let is_loop = |statement: &Stmt| matches!(statement, Stmt::For(_));
            span(call.node) != span(assign.value)
                && !is_loop(call.statement)
                && facts.called_module(call.node).is_none()
                && given(call.node).any(names)
                && !matches!(facts.method(call.node), Some((_, "load_state_dict")))
        });
        let bound_again = facts.assigns_in_unit(unit).any(|other| {
            span(other.statement) != span(assign.statement)
                && !matches!(other.value, Expr::NoneLiteral(_))
                && (facts.targets(other.target, path) && !facts.mentions(other.value, path)
                    || !facts.targets(other.target, path) && facts.path(other.value) == Some(path))
        });
        let differentiates = facts.calls_in_unit(unit).any(|call| {
            facts
                .callee(call.node)
                .is_some_and(|name| name == "torch.autograd.grad")
        });
        // Code that clears or reads its gradients needs them.
        let usage = facts.usage(unit, path);
        let reads_gradients =
            usage.parameters && facts.readers_of_attribute("grad").contains(&unit);
        usage.frozen || usage.zero_grad || reads_gradients || given || bound_again || differentiates
    })
}

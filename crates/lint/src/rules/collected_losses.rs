//! `losses.append(loss)` keeps every step's graph.

use super::fixes::without_graph;
use super::{Family, Report, Rule};
use crate::facts::structure::{BlockId, UnitId};
use crate::facts::{Facts, each_expression};
use crate::finding::{Fix, Severity};
use crate::python::{Expr, ExprCall, span};

pub static RULE: Rule = Rule {
    name: "collected-losses",
    family: Family::KeptGraphs,
    severity: Severity::Warning,
    summary: "losses are collected together with their graphs",
    docs: "\
## What it does
Finds a list or a dict into which a loss is put, step after step, without `.item()` or
`.detach()`.

## Why it costs memory
Every loss in the list keeps its graph. After `backward()` the saved activations are gone: what
piles up is a small tensor on the card and the graph's nodes in host memory, step after step.
Without `backward()` every step's activations stay on the card.

## Example
```python
losses = []
for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)
```

## Use instead
```python
losses = []
for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
```

## When it is fine
When the losses in the list are backpropagated together later, or the list is emptied in every
step. Losses that are neither backpropagated before they are put away nor surely only read later
are not reported, and neither are lists of a fixed length (`deque(maxlen=100)`).
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for kept in facts.kept() {
        let value = facts.value(kept.value);
        if !value.is_tensor() || !value.graph.is_yes() {
            continue;
        }
        let Some(steps) = facts.structure.loop_around(kept.place.block) else {
            continue;
        };
        let unit = facts.structure.unit_of(steps);
        let backpropagated = is_backpropagated(facts, unit, steps, kept.value);
        let is_loss = backpropagated
            || value.scalar.is_yes() && !facts.is_one_of_several_results(unit, kept.value);
        if !is_loss
            || !facts.is_step_loop(steps)
            || !facts.goes_over_steps(steps)
            || facts.is_about_one_batch(steps, kept.container)
            || !facts.outlives(steps, kept.container)
            || facts.ends_in_backward(unit, kept.container)
            || !backpropagated && facts.escapes(unit, kept.container)
        {
            continue;
        }
        let name = facts.text(kept.value);
        let held = if backpropagated {
            "the graph"
        } else {
            "the graph and all activations"
        };
        let finding = report.add_with(
            span(kept.statement),
            format!("`{}` keeps {held} of every step's `{name}`", kept.container),
            "add `.item()` for a number, or `.detach()` for a tensor without its graph",
            Some(Fix::safe(
                "Add `.detach()`",
                without_graph(facts, kept.value),
            )),
        );
        if !backpropagated {
            finding.severity = Severity::Error;
        }
    }
}

/// Whether a value is made of what is backpropagated in the same loop, or comes from a function of
/// the file that backpropagates itself.
fn is_backpropagated<'a>(facts: &Facts<'a>, unit: UnitId, steps: BlockId, value: &'a Expr) -> bool {
    let mut found = false;
    each_expression(value, &mut |part| {
        if let Expr::Call(call) = part {
            found |= trains(facts, call);
        } else if let Some(path) = facts.path(part) {
            found |= facts.is_backpropagated_inside(steps, path)
                || match facts.last_value(unit, path, part) {
                    Some(Expr::Call(call)) => trains(facts, call),
                    // The sum of losses that went backward one by one.
                    Some(made) => is_backpropagated_sum(facts, steps, made),
                    None => false,
                };
        }
    });
    found
}

fn is_backpropagated_sum(facts: &Facts<'_>, steps: BlockId, made: &Expr) -> bool {
    match made {
        Expr::BinOp(sum) => {
            is_backpropagated_sum(facts, steps, &sum.left)
                && is_backpropagated_sum(facts, steps, &sum.right)
        }
        Expr::NumberLiteral(_) => true,
        _ => facts
            .path(made)
            .is_some_and(|path| facts.is_backpropagated_inside(steps, path)),
    }
}

fn trains(facts: &Facts<'_>, call: &ExprCall) -> bool {
    facts.called_module(call).is_none() && facts.runs_backward(call)
}

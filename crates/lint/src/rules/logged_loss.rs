//! A meter in this file that keeps losses with their graphs.

use super::fixes::without_graph;
use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::structure::UnitId;
use crate::facts::value::Kind;
use crate::finding::{Fix, Severity};
use crate::python::{Expr, ExprCall, Operator, span};

pub static RULE: Rule = Rule {
    name: "logged-loss",
    family: Family::KeptGraphs,
    severity: Severity::Warning,
    summary: "a meter keeps the losses it is given with their graphs",
    docs: "\
## What it does
Finds a loss that is passed, with its graph, to a method of a class in the same file (a meter, a
history) that adds it to an attribute or appends it to a list without `.item()` or `.detach()`.

## Why it costs memory
The meter's sum or list holds the graph of every loss. With a `backward()` in every step the
activations are freed, but the graph's nodes pile up in host memory; without one, the activations of
every step stay on the card.

## Example
```python
class Meter:
    def __init__(self):
        self.sum, self.count = 0, 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

meter = Meter()
for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    meter.update(loss, inputs.size(0))
```

## Use instead
```python
class Meter:
    def __init__(self):
        self.sum, self.count = 0, 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

meter = Meter()
for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    meter.update(loss.item(), inputs.size(0))
```

## When it is fine
When the meter is reset in every step, or its value is backpropagated. Loggers from other files are
not reported: TensorBoard and Weights & Biases convert a tensor to a number immediately.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for call in &facts.structure.calls {
        let Some((meter, _)) = facts.method(call.node) else {
            continue;
        };
        if !matches!(facts.value(meter).kind, Kind::Object(_)) {
            continue;
        }
        let Some(unit) = facts.callee_unit(call.node) else {
            continue;
        };
        let Some(steps) = facts.structure.loop_around(call.place.block) else {
            continue;
        };
        let here = facts.structure.unit_of(steps);
        let Some(path) = facts.path(meter) else {
            continue;
        };
        if !facts.is_step_loop(steps) || !facts.outlives(steps, path) {
            continue;
        }
        for (name, given) in arguments(facts, call.node, unit) {
            let value = facts.value(given);
            if !value.is_tensor() || !value.graph.is_yes() {
                continue;
            }
            let Some(kept) = keeper(facts, unit, name) else {
                continue;
            };
            if facts.ends_in_backward(unit, kept) || facts.ends_in_backward(here, path) {
                continue;
            }
            let attribute = kept.strip_prefix("self.").unwrap_or(kept);
            report.add_with(
                span(given),
                format!(
                    "`{path}.{attribute}` keeps the graph of `{}` from every step",
                    facts.text(given)
                ),
                "add `.item()` for a number, or `.detach()` for a tensor without its graph",
                Some(Fix::safe("Add `.detach()`", without_graph(facts, given))),
            );
        }
    }
}

/// The arguments of a method call with the names of their parameters.
fn arguments<'a>(facts: &Facts<'a>, call: &'a ExprCall, unit: UnitId) -> Vec<(&'a str, &'a Expr)> {
    let Some(node) = facts.structure.units[unit].node else {
        return Vec::new();
    };
    let names: Vec<&'a str> = node
        .parameters
        .iter()
        .map(|parameter| parameter.name().as_str())
        .collect();
    let positional = call
        .arguments
        .args
        .iter()
        .enumerate()
        .filter_map(|(index, value)| Some((*names.get(index + 1)?, value)));
    let named = call
        .arguments
        .keywords
        .iter()
        .filter_map(|keyword| Some((keyword.arg.as_ref()?.as_str(), &keyword.value)));
    positional.chain(named).collect()
}

/// The attribute of `self` that a method adds a parameter to, as it was given.
fn keeper<'a>(facts: &Facts<'a>, unit: UnitId, parameter: &str) -> Option<&'a str> {
    let as_given = |value: &Expr| {
        facts.mentions(value, parameter)
            && !facts.value(value).graph.is_no()
            && is_plain_arithmetic(value)
    };
    // `value = value.item()` before it is kept: no longer what was given.
    let rebound = facts
        .assigns_in_unit(unit)
        .any(|assign| facts.path(assign.target) == Some(parameter));
    if rebound {
        return None;
    }
    let summed = facts.assigns_in_unit(unit).find_map(|assign| {
        let target = facts.path(assign.target)?;
        if facts.gradients_at(assign.statement).is_no() {
            return None;
        }
        let adds = match (assign.operator, assign.value) {
            (Some(Operator::Add), value) => as_given(value),
            (None, Expr::BinOp(sum)) => {
                sum.op == Operator::Add
                    && (facts.path(&sum.left) == Some(target) && as_given(&sum.right)
                        || facts.path(&sum.right) == Some(target) && as_given(&sum.left))
            }
            _ => false,
        };
        (target.starts_with("self.") && adds).then_some(target)
    });
    summed.or_else(|| {
        facts
            .kept()
            .into_iter()
            .find(|kept| {
                facts.structure.unit_of(kept.place.block) == unit
                    && kept.container.starts_with("self.")
                    && as_given(kept.value)
            })
            .map(|kept| kept.container)
    })
}

/// Whether an expression consists of names and operators only: no call can have detached it.
fn is_plain_arithmetic(value: &Expr) -> bool {
    match value {
        Expr::BinOp(operation) => {
            is_plain_arithmetic(&operation.left) && is_plain_arithmetic(&operation.right)
        }
        Expr::Name(_) | Expr::NumberLiteral(_) => true,
        _ => false,
    }
}

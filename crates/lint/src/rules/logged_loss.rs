//! A meter in this file that keeps losses with their graphs.

use super::fixes::without_graph;
use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::keepers::Keeper;
use crate::facts::paths::attribute_of_self;
use crate::facts::structure::{Call, UnitId};
use crate::facts::value::Kind;
use crate::finding::{Fix, Severity};
use crate::python::{Expr, span};

pub static RULE: Rule = Rule {
    name: "logged-loss",
    family: Family::KeptGraphs,
    severity: Severity::Warning,
    summary: "a meter or a buffer keeps what it is given with its graph",
    docs: "\
## What it does
Finds a loss, or another tensor with a graph, that is passed to a function or a method of the same file (a
meter, a history, a replay buffer) that adds it to an attribute or a container without `.item()` or
`.detach()`.

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
        let only = facts.callee_unit(call.node);
        let units = only.as_slice().iter().chain(facts.candidates(call.node));
        for unit in units {
            if facts.is_function(call.node) && check_call(facts, report, call, *unit) {
                break;
            }
        }
    }
}

/// Reports the arguments of a call that a function keeps; whether there are any.
fn check_call<'a>(
    facts: &Facts<'a>,
    report: &mut Report<'_>,
    call: &Call<'a>,
    unit: UnitId,
) -> bool {
    let with_graph: Vec<(&'a str, &'a Expr)> = facts
        .arguments(call.node, unit)
        .into_iter()
        .filter(|(_, given)| {
            let value = facts.value(given);
            value.graph.is_yes()
                && matches!(value.kind, Kind::Tensor | Kind::Container | Kind::Tuple(_))
        })
        .collect();
    if with_graph.is_empty() {
        return false;
    }
    let Some(steps) = facts.steps_around(call.place.block) else {
        return false;
    };
    let here = facts.structure.unit_of(steps);
    let mut found = false;
    for (name, given) in with_graph {
        let Some(keeper) = facts.keeper(unit, name) else {
            continue;
        };
        let Some(path) = kept_as(facts, call, keeper) else {
            continue;
        };
        let object = object_of(facts, call, keeper);
        if facts.is_left_to_callers(here, given)
            || facts.ends_in_backward(keeper.unit, keeper.container)
            || facts.is_reset_in_steps(keeper.unit, keeper.container)
            || object.is_some_and(|object| {
                !facts.outlives_step(steps, object) || facts.ends_in_backward(here, object)
            })
            || object.is_none() && !facts.outlives_step(steps, keeper.container)
            || is_backpropagated_elsewhere(facts, keeper)
        {
            continue;
        }
        found = true;
        // A list or a tuple has no `.detach()`.
        let fix = facts
            .value(given)
            .is_tensor()
            .then(|| Fix::safe("Add `.detach()`", without_graph(facts, given)));
        report.add_with(
            span(given),
            format!(
                "`{path}` keeps the graph of `{}` from every step",
                facts.text(given)
            ),
            "add `.item()` for a number, or `.detach()` for a tensor without its graph",
            fix,
        );
    }
    found
}

/// The object of a call, or the container it gives, in which the function keeps something; `None` where both
/// see it by the same path.
fn object_of<'a>(facts: &Facts<'a>, call: &Call<'a>, keeper: Keeper<'a>) -> Option<&'a str> {
    let root = keeper.container.split(['.', '[']).next()?;
    if matches!(root, "self" | "cls") {
        let receiver = match &*call.node.func {
            Expr::Attribute(function) if facts.method(call.node).is_some() => &*function.value,
            other => other,
        };
        facts.path(receiver).filter(|path| *path != "self")
    } else {
        facts
            .argument_for(call.node, keeper.unit, root)
            .and_then(|container| facts.path(container))
    }
}

/// What the caller calls the place where something is kept.
fn kept_as(facts: &Facts<'_>, call: &Call<'_>, keeper: Keeper<'_>) -> Option<String> {
    let inner = keeper.container;
    let root = inner.split(['.', '[']).next()?;
    let is_given = facts.is_parameter_of(keeper.unit, root) && !matches!(root, "self" | "cls");
    match object_of(facts, call, keeper) {
        Some(object) => Some(format!("{object}{}", &inner[root.len()..])),
        // A new object or an unnamed container ends with the call.
        None if is_given => None,
        None if root == "self" && !is_on_self(call) => None,
        None => Some(inner.to_owned()),
    }
}

/// `self.log(loss)`
fn is_on_self(call: &Call<'_>) -> bool {
    matches!(&*call.node.func, Expr::Attribute(function)
        if matches!(&*function.value, Expr::Name(name) if name.id.as_str() == "self"))
}

/// Whether code of another class reads what is kept and backpropagates it: `sum(buffer.losses).backward()`.
fn is_backpropagated_elsewhere(facts: &Facts<'_>, keeper: Keeper<'_>) -> bool {
    let Some(name) = attribute_of_self(keeper.container) else {
        return false;
    };
    let mut found = false;
    for (statement, place) in &facts.structure.statements {
        let unit = facts.structure.unit_of(place.block);
        facts.each_expression_of_statement(statement, &mut |part| {
            if let Expr::Attribute(attribute) = part
                && attribute.attr.as_str() == name
                && attribute.ctx.is_load()
                && let Some(path) = facts.path(part)
                && !path.starts_with("self.")
            {
                found |= facts.ends_in_backward(unit, path);
            }
        });
    }
    found
}

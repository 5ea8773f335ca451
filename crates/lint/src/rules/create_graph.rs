//! `create_graph=True` whose second-order graph nothing uses.

use super::fixes::without_argument;
use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::structure::{BlockId, Call};
use crate::finding::{Fix, Severity};
use crate::python::{Expr, span};
use crate::syntax::says_true;

pub static RULE: Rule = Rule {
    name: "create-graph",
    family: Family::KeptGraphs,
    severity: Severity::Warning,
    summary: "a graph of the gradients is built, but never differentiated",
    docs: "\
## What it does
Finds `create_graph=True` in `backward()` where the optimizer is one of PyTorch's own and nothing
is differentiated later in the step, and in `torch.autograd.grad` whose result never reaches
another `backward()`.

## Why it costs memory
The graph of the gradients is about as large as the graph of the loss, and keeps it alive. With
`backward(create_graph=True)` the gradients hold it: parameter and gradient refer to each other, and
the memory is never freed.

## Example
```python
for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward(create_graph=True)
    optimizer.step()
```

## Use instead
```python
for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine
For gradient penalties, meta-learning and optimizers that need second derivatives. A gradient that
is returned, stored or passed to a function of another file is not reported.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for call in &facts.structure.calls {
        if !says_true(call.node, "create_graph")
            || facts.is_a_unit_test(facts.structure.unit_of(call.place.block))
        {
            continue;
        }
        let unused = if facts.is_backward(call.node) {
            facts
                .structure
                .loop_around(call.place.block)
                .is_some_and(|steps| ends_the_step(facts, steps, call))
        } else {
            facts
                .callee(call.node)
                .is_some_and(|name| name == "torch.autograd.grad")
                && is_dropped(facts, call)
        };
        if !unused {
            continue;
        }
        let fix = without_argument(facts, call.node, "create_graph")
            .map(|edits| Fix::unsafe_("Remove `create_graph=True`", edits));
        report.add_with(
            span(call.node),
            "a graph of the gradients is built, but never differentiated".to_owned(),
            "remove `create_graph=True`",
            fix,
        );
    }
}

/// Whether an optimizer of PyTorch's own takes the gradients and nothing else follows.
fn ends_the_step(facts: &Facts<'_>, steps: BlockId, call: &Call<'_>) -> bool {
    let unit = facts.structure.unit_of(steps);
    let later = |other: &&Call<'_>| other.place.order > call.place.order;
    let differentiates = facts
        .calls_inside(steps)
        .filter(later)
        .any(|other| facts.runs_differentiation(other.node));
    let plain_step = facts.calls_inside(steps).filter(later).any(|other| {
        matches!(facts.method(other.node), Some((receiver, "step"))
            if facts.path(receiver).is_some_and(|path| {
                facts.units_that_see(unit, path).into_iter().any(|unit| {
                    facts.assigns_in_unit(unit).any(|assign| {
                        facts.path(assign.target) == Some(path)
                            && matches!(assign.value, Expr::Call(made)
                                if facts.callee(made).is_some_and(|name| name.starts_with("torch.optim.")))
                    })
                })
            }))
    });
    let reads_gradients = facts.readers_of_attribute("grad").contains(&unit);
    plain_step && !differentiates && !reads_gradients
}

/// Whether gradients are bound to names that lead to no other differentiation.
fn is_dropped(facts: &Facts<'_>, call: &Call<'_>) -> bool {
    let unit = facts.structure.unit_of(call.place.block);
    let Some(assign) = facts
        .assigns_in_unit(unit)
        .find(|assign| holds(assign.value, call))
    else {
        return false;
    };
    let mut dropped = true;
    facts.each_target(assign.target, &mut |target| {
        dropped &= !target.contains(['.', '['])
            && !facts.ends_in_backward(unit, target)
            && !facts.escapes(unit, target);
    });
    dropped
}

/// Whether a value is a call's result or one element of it.
fn holds(value: &Expr, call: &Call<'_>) -> bool {
    match value {
        Expr::Subscript(subscript) => holds(&subscript.value, call),
        other => span(other) == span(call.node),
    }
}

//! `losses.append(loss)` keeps every step's graph.

use super::fixes::without_graph;
use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::finding::{Fix, Severity};
use crate::python::span;

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
        let backpropagated = facts
            .path(kept.value)
            .is_some_and(|path| facts.is_backpropagated_inside(steps, path));
        if !(backpropagated || value.scalar.is_yes())
            || !facts.is_step_loop(steps)
            || !facts.outlives(steps, kept.container)
            || facts.ends_in_backward(unit, kept.container)
            || !backpropagated && facts.escapes(unit, kept.container)
        {
            continue;
        }
        let name = facts.text(kept.value);
        report.add_with(
            span(kept.statement),
            format!(
                "`{}` keeps the graph of every step's `{name}`",
                kept.container
            ),
            "add `.item()` for a number, or `.detach()` for a tensor without its graph",
            Some(Fix::safe(
                "Add `.detach()`",
                without_graph(facts, kept.value),
            )),
        );
    }
}

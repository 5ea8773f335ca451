//! A scheduler that runs in every micro-batch decays several times too fast.

use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::structure::{Call, UnitId};
use crate::facts::value::Kind;
use crate::finding::Severity;
use crate::python::{Expr, span};
use crate::syntax::{calls, last_name};

pub static RULE: Rule = Rule {
    name: "scheduler-every-micro-batch",
    family: Family::Accumulation,
    severity: Severity::Warning,
    summary: "the learning rate is changed in every micro-batch while gradients are accumulated",
    docs: "\
## What it does
Finds `scheduler.step()` in every micro-batch of a loop that steps its optimizer once in several.

## Why it costs memory
Accumulation is there to train with a large batch in the memory of a small one. A schedule counted
in micro-batches runs as many times faster as a window has micro-batches, so that the run is not
the one with the large batch.

## Example
```python
for i, (inputs, targets) in enumerate(loader):
    loss = criterion(model(inputs), targets) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
    scheduler.step()
```

## Use instead
```python
for i, (inputs, targets) in enumerate(loader):
    loss = criterion(model(inputs), targets) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
```

## When it is fine
When the schedule was made for a count of micro-batches. A schedule whose length is computed in
this file from the length of the loader, without the window, is taken for such a one.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for window in facts.windows() {
        let unit = facts.structure.unit_of(window.rounds);
        for call in facts.calls_inside(window.rounds) {
            if is_schedule(facts, unit, call)
                && facts.is_every_round(call, &window)
                && !is_made_for_batches(facts, call, window.every.count)
            {
                report.add(
                    span(call.node),
                    format!(
                        "`{}` runs in every micro-batch, the optimizer in one of `{}`",
                        facts.text(call.node),
                        facts.text(window.every.count)
                    ),
                    "move it behind the optimizer's step, under the same condition",
                );
            }
        }
    }
}

/// `scheduler.step()` without an argument: one with a fraction of the epoch counts by itself.
fn is_schedule(facts: &Facts<'_>, unit: UnitId, call: &Call<'_>) -> bool {
    let Some((receiver, "step")) = facts.method(call.node) else {
        return false;
    };
    if !call.node.arguments.is_empty() {
        return false;
    }
    match facts.value(receiver).kind {
        Kind::Scheduler => true,
        // Known by being asked for the learning rate, or by a call that hands one in.
        Kind::Unknown => facts.path(receiver).is_some_and(|path| {
            facts.calls_in_unit(unit).any(|other| {
                matches!(facts.method(other.node), Some((asked, "get_last_lr" | "get_lr"))
                    if facts.path(asked) == Some(path))
            }) || is_handed_in(facts, unit, path)
        }),
        _ => false,
    }
}

/// Whether a call of the unit gives a scheduler for the parameter of this name.
fn is_handed_in(facts: &Facts<'_>, unit: UnitId, name: &str) -> bool {
    facts.structure.calls.iter().any(|call| {
        facts.value(&call.node.func).kind == Kind::Function(unit)
            && facts
                .argument_for(call.node, unit, name)
                .is_some_and(|given| facts.value(given).kind == Kind::Scheduler)
    })
}

/// Whether the schedule was made in this file from a number of batches that knows nothing of
/// the window: `OneCycleLR(optimizer, 0.1, epochs=3, steps_per_epoch=len(loader))`.
fn is_made_for_batches(facts: &Facts<'_>, step: &Call<'_>, count: &Expr) -> bool {
    let Some((receiver, _)) = facts.method(step.node) else {
        return false;
    };
    let Some(path) = facts.path(receiver) else {
        return false;
    };
    facts.structure.assigns.iter().any(|assign| {
        if !facts.targets(assign.target, path) {
            return false;
        }
        let parts = facts.made_of(assign.value);
        let mentions_length = parts.iter().any(|part| calls(part, "len"));
        let last = |expression: &Expr| facts.path(expression).map(last_name);
        let mentions_window =
            last(count).is_some_and(|count| parts.iter().any(|part| last(part) == Some(count)));
        mentions_length && !mentions_window
    })
}

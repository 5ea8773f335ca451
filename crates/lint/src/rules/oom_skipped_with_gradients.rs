//! A batch that is skipped after an out-of-memory error leaves half of its gradients behind.

use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::memory_errors::{Rescue, goes_on};
use crate::facts::structure::{BlockId, Call};
use crate::facts::value::Kind;
use crate::finding::Severity;
use crate::python::{Expr, Stmt, span};

pub static RULE: Rule = Rule {
    name: "oom-skipped-with-gradients",
    family: Family::NeedlessMemory,
    severity: Severity::Warning,
    summary: "a batch is skipped after an out-of-memory error, but its gradients stay",
    docs: "\
## What it does
Finds training loops, and functions that do one step, that catch an out-of-memory error and continue
with the next batch without setting the gradients to None in the handler or before the next `backward()`.

## Why it costs memory
An error in the middle of `backward()` leaves the gradients of some layers behind. They stay on the
card, up to the size of the parameters, just when memory is short, and are added to those of the next
batch.

## Example
```python
for inputs, targets in loader:
    try:
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
```

## Use instead
```python
for inputs, targets in loader:
    try:
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
    optimizer.zero_grad()
```

## When it is fine
When a function that the handler calls clears the gradients.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for rescue in facts.rescues() {
        let Some(rounds) = rounds_of(facts, rescue.block) else {
            continue;
        };
        let backward = facts
            .calls_inside(rescue.tried)
            .find(|call| facts.is_backward(call.node));
        let Some(backward) = backward else { continue };
        if !goes_on(&rescue.handler.body)
            || clears(facts, &rescue)
            || !is_cleared_later_only(facts, rounds, &rescue, backward)
        {
            continue;
        }
        report.add(
            span(rescue.handler).start..handler_head(facts, &rescue),
            "the next batch is added to the gradients that the failed `backward()` left behind"
                .to_owned(),
            "call `optimizer.zero_grad()` in the handler, or before every `backward()`",
        );
    }
}

/// The loop around a handler, or the function that a loop calls for every batch and that alone clears
/// gradients.
fn rounds_of(facts: &Facts<'_>, block: BlockId) -> Option<BlockId> {
    facts.structure.loop_around(block).or_else(|| {
        let unit = facts.structure.unit_of(block);
        let clears_too = facts.callers(unit).any(|caller| {
            let around = facts.structure.unit_of(caller.place.block);
            facts
                .calls_in_unit(around)
                .any(|call| matches!(facts.method(call.node), Some((_, "zero_grad"))))
        });
        (unit != 0 && facts.is_run_in_steps(unit) && !clears_too)
            .then_some(facts.structure.units[unit].block)
    })
}

/// The end of the handler's first line.
fn handler_head(facts: &Facts<'_>, rescue: &Rescue<'_>) -> usize {
    let start = span(rescue.handler).start;
    start
        + facts.source.text()[start..]
            .lines()
            .next()
            .map_or(0, str::len)
}

/// Whether a handler clears the gradients itself, or calls something that may.
fn clears(facts: &Facts<'_>, rescue: &Rescue<'_>) -> bool {
    let inside = span(rescue.handler);
    facts.calls_inside(rescue.block).any(|call| {
        matches!(facts.method(call.node), Some((_, "zero_grad")))
            || matches!(facts.value(&call.node.func).kind, Kind::Function(_))
            || call.node.arguments.args.iter().any(|argument| {
                matches!(
                    facts.value(argument).kind,
                    Kind::Optimizer | Kind::Module(_)
                )
            })
    }) || facts
        .structure
        .assigns
        .iter()
        .any(|assign| inside.contains(&span(assign.statement).start) && is_gradient(assign.target))
        || facts.structure.statements.iter().any(|(statement, _)| {
            inside.contains(&span(*statement).start)
                && matches!(statement, Stmt::Delete(node) if node.targets.iter().any(is_gradient))
        })
}

fn is_gradient(target: &Expr) -> bool {
    matches!(target, Expr::Attribute(attribute) if attribute.attr.as_str() == "grad")
}

/// Whether the loop clears gradients only where a failed iteration does not get: after the
/// `backward()`, inside the same `try`.
fn is_cleared_later_only(
    facts: &Facts<'_>,
    rounds: BlockId,
    rescue: &Rescue<'_>,
    backward: &Call<'_>,
) -> bool {
    let mut any = false;
    for call in facts.calls_inside(rounds) {
        if !matches!(facts.method(call.node), Some((_, "zero_grad"))) {
            continue;
        }
        let is_skipped = facts.structure.is_inside(call.place.block, rescue.tried)
            && call.place.order > backward.place.order;
        if !is_skipped {
            return false;
        }
        any = true;
    }
    any
}

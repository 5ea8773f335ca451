//! A scheduler that runs in every micro-batch decays several times too fast.

use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::structure::{Call, UnitId};
use crate::facts::value::Kind;
use crate::finding::Severity;
use crate::python::{Expr, ExprCall, Operator, span};
use crate::syntax::{calls, given, last_name};

pub static RULE: Rule = Rule {
    name: "scheduler-every-micro-batch",
    family: Family::Accumulation,
    severity: Severity::Warning,
    summary: "the scheduler steps in every micro-batch while gradients are accumulated",
    docs: "\
## What it does
Finds `scheduler.step()` in every micro-batch of a loop that steps its optimizer once per several.

## Why it costs memory
Gradient accumulation trains with a large batch in the memory of a small one. A schedule that counts
micro-batches runs faster by the number of micro-batches in a window, so the run differs from one
with the large batch.

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
When the schedule is defined in micro-batches. A schedule whose length is not a literal number, and is
not divided by the window, is assumed to be.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for window in facts.windows() {
        let unit = facts.structure.unit_of(window.rounds);
        for call in facts.calls_inside(window.rounds) {
            if is_schedule(facts, unit, call)
                && facts.is_every_round(call, &window)
                && !is_made_for_batches(facts, unit, call, window.every.count)
            {
                report.add(
                    span(call.node),
                    format!(
                        "`{}` runs in every micro-batch, the optimizer in one of `{}`",
                        facts.text(call.node),
                        facts.text(window.every.count)
                    ),
                    "move it after the optimizer's step, under the same condition",
                );
            }
        }
    }
}

/// `scheduler.step()` without an argument; a fractional epoch is its own count.
fn is_schedule(facts: &Facts<'_>, unit: UnitId, call: &Call<'_>) -> bool {
    let Some((receiver, "step")) = facts.method(call.node) else {
        return false;
    };
    if !call.node.arguments.is_empty() {
        return false;
    }
    match facts.value(receiver).kind {
        Kind::Scheduler => true,
        // Recognised by a query for the learning rate, or by a call that passes one in.
        Kind::Unknown => facts.path(receiver).is_some_and(|path| {
            facts.calls_in_unit(unit).any(|other| {
                matches!(facts.method(other.node), Some((asked, "get_last_lr" | "get_lr"))
                    if facts.path(asked) == Some(path))
            }) || is_handed_in(facts, unit, path)
        }),
        _ => false,
    }
}

/// Whether a call passes a scheduler for this parameter.
fn is_handed_in(facts: &Facts<'_>, unit: UnitId, name: &str) -> bool {
    facts.structure.calls.iter().any(|call| {
        facts.value(&call.node.func).kind == Kind::Function(unit)
            && facts
                .argument_for(call.node, unit, name)
                .is_some_and(|given| facts.value(given).kind == Kind::Scheduler)
    })
}

/// Whether the schedule may count micro-batches: its length does not depend on the window
/// (`steps_per_epoch=len(loader)`), or is multiplied by it.
fn is_made_for_batches(facts: &Facts<'_>, unit: UnitId, step: &Call<'_>, count: &Expr) -> bool {
    let Some(path) = facts
        .method(step.node)
        .and_then(|(receiver, _)| facts.path(receiver))
    else {
        return false;
    };
    let last = |expression: &Expr| facts.path(expression).map(last_name);
    let window = last(count);
    creations(facts, unit, path).into_iter().any(|made| {
        let parts = settings(facts, made);
        let is_divided = parts.iter().any(|part| {
            matches!(part, Expr::BinOp(operation)
                if matches!(operation.op, Operator::Div | Operator::FloorDiv)
                    && (window.is_some() && last(&operation.right) == window
                        || facts.same_text(&operation.right, count)))
        });
        let has_length = parts.iter().any(|part| calls(part, "len"))
            || window.is_some() && parts.iter().any(|part| last(part) == window)
            || parts
                .iter()
                .any(|part| matches!(part, Expr::Call(call) if is_given_length(call)));
        has_length && !is_divided
    })
}

/// The parts of what decides how long a schedule is: not the optimizer, and no function of the step.
fn settings<'a>(facts: &Facts<'a>, made: &'a Expr) -> Vec<&'a Expr> {
    let Expr::Call(call) = made else {
        return facts.made_of(made);
    };
    let mut parts = vec![made];
    for argument in given(call) {
        let is_length =
            !matches!(argument, Expr::Lambda(_)) && facts.value(argument).kind != Kind::Optimizer;
        if is_length {
            parts.extend(facts.made_of(argument));
        }
    }
    parts
}

/// The call that creates a scheduler: here, or in the caller.
fn creations<'a>(facts: &Facts<'a>, unit: UnitId, path: &str) -> Vec<&'a Expr> {
    let bound = |path: &str| -> Vec<&'a Expr> {
        let assigns = facts.structure.assigns.iter();
        assigns
            .filter(|assign| facts.targets(assign.target, path))
            .map(|assign| assign.value)
            .collect()
    };
    let mut made = bound(path);
    for caller in facts.callers(unit) {
        if let Some(given) = facts.argument_for(caller.node, unit, path) {
            match facts.path(given) {
                Some(path) => made.extend(bound(path)),
                None => made.push(given),
            }
        }
    }
    made
}

/// A length that is not a literal: it may count either.
fn is_given_length(call: &ExprCall) -> bool {
    const LENGTHS: &[&str] = &[
        "num_training_steps",
        "t_total",
        "total_steps",
        "total_iters",
        "steps_per_epoch",
        "T_max",
        "milestones",
    ];
    call.arguments.keywords.iter().any(|keyword| {
        keyword
            .arg
            .as_ref()
            .is_some_and(|name| LENGTHS.contains(&name.as_str()))
            && !matches!(keyword.value, Expr::NumberLiteral(_) | Expr::List(_))
    })
}

//! The loss is divided for a window, but every micro-batch makes a step.

use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::conditions::Every;
use crate::facts::structure::{BlockId, BlockKind, Call};
use crate::facts::value::Kind;
use crate::finding::Severity;
use crate::python::{Expr, Operator, span};
use crate::syntax::{plain_callee, range_count};

pub static RULE: Rule = Rule {
    name: "step-every-micro-batch",
    family: Family::Accumulation,
    severity: Severity::Error,
    summary: "an accumulation window is set up, but the optimizer steps in every micro-batch",
    docs: "\
## What it does
Finds a loop that divides its loss by the window length, or zeroes gradients once per window, but
calls `optimizer.step()` in every micro-batch.

## Why it costs memory
Gradient accumulation trains with a large batch in the memory of a small one. With a step in every
micro-batch, the gradients of a window are applied repeatedly, or every step is too small by the
number of micro-batches in a window.

## Example
```python
for i, (inputs, targets) in enumerate(loader):
    loss = criterion(model(inputs), targets) / 4
    loss.backward()
    optimizer.step()
    if (i + 1) % 4 == 0:
        optimizer.zero_grad()
```

## Use instead
```python
for i, (inputs, targets) in enumerate(loader):
    loss = criterion(model(inputs), targets) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
```

## When it is fine
When the gradients of earlier batches are to be applied again. A division by a number that no
condition uses is not considered a window.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for step in &facts.structure.calls {
        if !facts.is_optimizer_step(step) {
            continue;
        }
        let Some(rounds) = facts.structure.loop_around(step.place.block) else {
            continue;
        };
        let is_every_round = facts
            .conditions_of(step, rounds)
            .iter()
            .all(|condition| !facts.varies_in(rounds, condition.test));
        let backward = facts.calls_inside(rounds).find(|call| {
            facts.is_backward(call.node)
                && facts.structure.loop_around(call.place.block) == Some(rounds)
                && facts.periodic(call, rounds).is_none()
                && !facts.are_exclusive(call.place.block, step.place.block)
        });
        let (true, Some(backward)) = (is_every_round, backward) else {
            continue;
        };
        if let Some((zero, every)) = zeroed_per_window(facts, step, rounds) {
            report.add(
                span(step.node),
                format!(
                    "`{}` runs in every micro-batch, `{}` only in one of `{}`",
                    facts.text(step.node),
                    facts.text(zero.node),
                    facts.text(every.count)
                ),
                "step under the condition of `zero_grad()`, right before it",
            );
        } else if let Some(count) = window_of(facts, rounds, step)
            && facts
                .goes_back_unscaled_from(backward.node)
                .is_some_and(|loss| is_divided(facts, rounds, loss, count, step))
        {
            report.add(
                span(step.node),
                format!(
                    "the loss is divided by `{}` for a window, but `{}` runs in every micro-batch",
                    facts.text(count),
                    facts.text(step.node)
                ),
                "step once per window, and zero the gradients right after",
            );
        }
    }
}

/// The only `zero_grad()` of the loop, under a condition that holds once per window.
fn zeroed_per_window<'a, 'f>(
    facts: &'f Facts<'a>,
    step: &Call<'a>,
    rounds: BlockId,
) -> Option<(&'f Call<'a>, Every<'a>)> {
    let mut found = None;
    for call in facts.calls_inside(rounds) {
        if !matches!(facts.method(call.node), Some((_, "zero_grad")))
            || facts.are_exclusive(call.place.block, step.place.block)
        {
            continue;
        }
        found = match (found, facts.periodic(call, rounds)) {
            (None, Some((_, every))) if is_of(facts, call, step) => Some((call, every)),
            // Another one, or one that runs in every iteration.
            _ => return None,
        };
    }
    found.filter(|(_, every)| facts.varies_in(rounds, every.counter))
}

/// Whether gradients set to zero can be the ones a step uses: of the same optimizer, or of a
/// model.
fn is_of(facts: &Facts<'_>, zero: &Call<'_>, step: &Call<'_>) -> bool {
    match (facts.method(zero.node), facts.method(step.node)) {
        (Some((zeroed, _)), Some((stepped, _))) => {
            facts.same_text(zeroed, stepped)
                || facts.value(zeroed).is_module()
                || facts.value(stepped).kind == Kind::Scaler
        }
        _ => false,
    }
}

/// The length of a window the loop counts with: a condition that holds once every n iterations
/// (around something else than the step), or the number of its iterations.
fn window_of<'a>(facts: &Facts<'a>, rounds: BlockId, step: &Call<'a>) -> Option<&'a Expr> {
    if let BlockKind::For(node) = facts.structure.blocks[rounds].kind
        && let Some(count) = range_count(&node.iter)
        && facts.constant(count) != Some(1)
    {
        // If gradients are zeroed each time, every iteration over the same data is its own step.
        let takes_data = facts
            .calls_inside(rounds)
            .any(|call| plain_callee(call.node) == Some("next"));
        let zeroes = facts.calls_inside(rounds).any(|call| {
            matches!(facts.method(call.node), Some((_, "zero_grad")))
                && facts.periodic(call, rounds).is_none()
        });
        return (takes_data || !zeroes).then_some(count);
    }
    facts
        .calls_inside(rounds)
        .filter(|call| !facts.are_exclusive(call.place.block, step.place.block))
        .filter_map(|call| facts.periodic(call, rounds))
        .map(|(_, every)| every.count)
        .next()
}

/// Whether a loss is divided by the window in this loop, on a path that leads to the step.
fn is_divided(
    facts: &Facts<'_>,
    rounds: BlockId,
    loss: &Expr,
    count: &Expr,
    step: &Call<'_>,
) -> bool {
    if facts.divides_by(loss, count) {
        return true;
    }
    let Some(path) = facts.path(loss) else {
        return false;
    };
    facts
        .assigns_in_unit(facts.structure.unit_of(rounds))
        .any(|assign| {
            facts.structure.is_inside(assign.place.block, rounds)
                && facts.leads_to(assign.place, step.place)
                && facts.path(assign.target) == Some(path)
                && match assign.operator {
                    Some(Operator::Div) => facts.same_text(assign.value, count),
                    None => matches!(assign.value, Expr::BinOp(operation)
                        if operation.op == Operator::Div
                            && facts.same_text(&operation.right, count)),
                    _ => false,
                }
        })
}

//! `total += loss` keeps every step's graph.

use super::fixes::without_graph;
use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::structure::{Assign, BlockId, BlockKind};
use crate::facts::value::Kind;
use crate::finding::{Fix, Severity};
use crate::python::{Expr, ExprCall, Operator, span};

pub static RULE: Rule = Rule {
    name: "summed-loss",
    family: Family::KeptGraphs,
    severity: Severity::Warning,
    summary: "a loss is added to a running total together with its graph",
    docs: "\
## What it does
Finds a running total to which a loss is added, step after step, without `.item()` or `.detach()`.

## Why it costs memory
The total's graph reaches every loss that went into it. Without a `backward()` all activations of
every step stay on the card: that is an error. After a `backward()` they are gone, and what grows
with every step is the graph itself, in host memory, with whatever its nodes still hold.

## Example
```python
for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    total += loss
```

## Use instead
```python
for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    total += loss.item()
```

## When it is fine
When the total itself is backpropagated, or begins anew in every step.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for assign in &facts.structure.assigns {
        let Some(total) = facts.path(assign.target) else {
            continue;
        };
        let Some(added) = added(facts, assign, total) else {
            continue;
        };
        let value = facts.value(added);
        if !value.is_tensor() || !value.graph.is_yes() {
            continue;
        }
        let block = assign.place.block;
        let unit = facts.structure.unit_of(block);
        let Some(steps) = facts.structure.loop_around(block) else {
            continue;
        };
        if !facts.is_step_loop(steps)
            || !goes_over_steps(facts, steps)
            || facts.is_handed_out_by(steps, added)
            || begins_anew_around(facts, steps, total)
            || facts.is_bound_inside(steps, total)
            || facts.reaches_backward(unit, total)
        {
            continue;
        }
        // Without a `backward()` in the loop, a returned total may be the loss itself.
        let trains = facts
            .calls_inside(steps)
            .any(|call| facts.runs_backward(call.node));
        if !trains && facts.is_returned(unit, total) {
            continue;
        }
        let name = facts.text(added);
        let kept = if trains {
            "the graph"
        } else {
            "the graph and all activations"
        };
        let finding = report.add_with(
            span(assign.statement),
            format!("`{total}` keeps {kept} of every step's `{name}`"),
            "add `.item()` for a number, or `.detach()` for a tensor without its graph",
            Some(Fix::safe("Add `.detach()`", without_graph(facts, added))),
        );
        if !trains {
            finding.severity = Severity::Error;
        }
    }
}

/// Whether a loop goes over steps: not if it only backpropagates and the optimizer's step comes after
/// it; then it adds up the parts of one step, and its total ends with it.
fn goes_over_steps(facts: &Facts<'_>, steps: BlockId) -> bool {
    if let BlockKind::For(node) = facts.structure.blocks[steps].kind
        && facts.iterates_loader(&node.iter)
    {
        return true;
    }
    let is_step = |call: &ExprCall| {
        matches!(facts.method(call), Some((receiver, "step" | "train_batch"))
            if facts.value(receiver).kind != Kind::Scheduler)
    };
    let steps_inside = facts
        .calls_inside(steps)
        .any(|call| facts.reaches(call.node, &is_step));
    let unit = facts.structure.unit_of(steps);
    steps_inside || !facts.calls_in_unit(unit).any(|call| is_step(call.node))
}

/// Whether the total begins anew in a loop further out whose batches the model is given here: then
/// this loop goes over the parts of one batch.
fn begins_anew_around(facts: &Facts<'_>, steps: BlockId, total: &str) -> bool {
    let mut outer = facts.structure.blocks[steps].parent;
    while let Some(block) = outer.and_then(|block| facts.structure.loop_around(block)) {
        if let BlockKind::For(node) = facts.structure.blocks[block].kind
            && facts.is_bound_inside(block, total)
        {
            let mut batches = Vec::new();
            facts.each_target(&node.target, &mut |path| batches.push(path));
            let runs_on_batch =
                facts.calls_inside(steps).any(|call| {
                    facts.called_module(call.node).is_some()
                        && call.node.arguments.args.iter().any(|argument| {
                            batches.iter().any(|batch| facts.mentions(argument, batch))
                        })
                });
            if runs_on_batch {
                return true;
            }
        }
        outer = facts.structure.blocks[block].parent;
    }
    false
}

/// What is added to a total: of `total += x`, and of `total = total + x` either way round.
fn added<'a>(facts: &Facts<'a>, assign: &Assign<'a>, total: &str) -> Option<&'a Expr> {
    match assign.operator {
        Some(Operator::Add) => Some(assign.value),
        Some(_) => None,
        None => match assign.value {
            Expr::BinOp(sum) if sum.op == Operator::Add => {
                if facts.path(&sum.left) == Some(total) {
                    Some(&sum.right)
                } else if facts.path(&sum.right) == Some(total) {
                    Some(&sum.left)
                } else {
                    None
                }
            }
            _ => None,
        },
    }
}

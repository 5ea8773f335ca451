//! `total += loss` keeps every step's graph.

use super::fixes::without_graph;
use super::{Family, Report, Rule};
use crate::facts::structure::{Assign, BlockId};
use crate::facts::value::Kind;
use crate::facts::{Facts, each_expression};
use crate::finding::{Fix, Severity};
use crate::python::{Expr, Operator, span};

pub static RULE: Rule = Rule {
    name: "summed-loss",
    family: Family::KeptGraphs,
    severity: Severity::Warning,
    summary: "a loss is added to a running total with its graph",
    docs: "\
## What it does
Finds a running total to which every step adds its loss without `.item()` or `.detach()`.

## Why it costs memory
The total's graph reaches every loss that was added. Without `backward()`, all activations of every
step stay on the card; that is reported as an error. After `backward()` they are freed, and what
grows is the graph itself, in host memory, with whatever its nodes still hold.

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
When the total itself is backpropagated, or is reset in every step.
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
        if !value.is_tensor()
            || !value.graph.is_yes()
            || facts.gradients_at(assign.statement).is_no()
            // `+=` extends a list.
            || facts.value(assign.target).kind == Kind::Container
        {
            continue;
        }
        let block = assign.place.block;
        let unit = facts.structure.unit_of(block);
        let Some(steps) = facts.structure.loop_around(block) else {
            continue;
        };
        if !facts.is_step_loop(steps)
            || !facts.goes_over_steps(steps)
            || facts.is_handed_out_by(steps, added)
            || is_of_unknown_make(facts, steps, added)
            || facts.is_about_one_batch(steps, total)
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
            format!("`{total}` keeps {kept} of `{name}` from every step"),
            "add `.item()` for a number, or `.detach()` for a tensor without its graph",
            Some(Fix::safe("Add `.detach()`", without_graph(facts, added))),
        );
        if !trains {
            finding.severity = Severity::Error;
        }
    }
}

/// Computed only from unknown results that nothing backpropagates: an accuracy, a time.
fn is_of_unknown_make(facts: &Facts<'_>, steps: BlockId, added: &Expr) -> bool {
    let unit = facts.structure.unit_of(steps);
    let (mut unknown, mut known) = (false, false);
    each_expression(added, &mut |part| {
        let Some(path) = facts.path(part) else {
            return;
        };
        let value = facts.value(part);
        if value.is_tensor() && value.graph.is_yes() {
            let is_unknown =
                facts.is_one_of_several_results(unit, part) && !facts.reaches_backward(unit, path);
            unknown |= is_unknown;
            known |= !is_unknown;
        }
    });
    unknown && !known
}

/// What is added to a total: of `total += x`, and of `total = total + x` in either order.
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

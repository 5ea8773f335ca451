//! `total += loss` keeps every step's graph.

use super::fixes::without_graph;
use super::{Family, Report, Rule};
use crate::facts::roles::{Role, role};
use crate::facts::structure::{BlockId, BlockKind};
use crate::facts::torch_names::is_loss_function;
use crate::facts::value::Kind;
use crate::facts::{Facts, each_expression};
use crate::finding::{Fix, Severity};
use crate::python::{Expr, Stmt, span};

pub static RULE: Rule = Rule {
    name: "summed-loss",
    family: Family::KeptGraphs,
    severity: Severity::Warning,
    summary: "a loss is added to a running total with its graph",
    docs: "\
## What it does
Finds a running total or average to which every step adds its loss without `.item()` or `.detach()`:
in a loop over batches, or in a method that does one step (also Lightning's `training_step`) and adds
to an attribute.

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
When the total itself is backpropagated, or is reset in every step (of the optimizer). A total of losses that is
backpropagated every few batches is reported: a `backward()` for each batch frees its activations at once,
and the gradients are the same.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for grown in facts.grown() {
        let block = grown.place.block;
        let unit = facts.structure.unit_of(block);
        let total = grown.total;
        let with_graph: Vec<&Expr> = grown
            .added
            .iter()
            .copied()
            .filter(|added| {
                let value = facts.value(added);
                value.is_tensor() && value.graph.is_yes()
            })
            .collect();
        let Some(first) = with_graph.first().filter(|_| !facts.says_volatile(unit)) else {
            continue;
        };
        let Some(steps) = facts.steps_around(block) else {
            continue;
        };
        if facts.is_left_to_callers(unit, first) {
            continue;
        }
        if is_backpropagated_in_windows(facts, steps, total, &with_graph) {
            report.add(
                span(grown.statement),
                format!(
                    "`{total}` keeps the graph and all activations of `{}` from several batches until its backward pass",
                    facts.text(*first)
                ),
                "call `backward()` on each loss divided by the number of batches: gradients add up",
            );
            continue;
        }
        // In an evaluation without a loader, what changes step by step may be a sample, not a total.
        let is_total = facts.value(first).scalar.is_yes()
            || !facts.structure.blocks[steps].kind.is_loop()
            || facts.is_step_loop(steps);
        if !is_total {
            continue;
        }
        // `+=` extends a list; a comprehension makes one anew.
        let is_comprehended = matches!(grown.statement, Stmt::Assign(node)
            if matches!(*node.value, Expr::ListComp(_) | Expr::DictComp(_)));
        let is_list = facts.value(grown.target).kind == Kind::Container && !is_comprehended;
        if is_list
            || with_graph.iter().all(|added| {
                facts.is_handed_out_by(steps, added) || is_of_unknown_make(facts, steps, added)
            })
            || facts.is_about_one_batch(steps, total)
            || is_reset(facts, steps, total)
            || !facts.structure.blocks[steps].kind.is_loop() && !facts.outlives_step(steps, total)
            || facts.ends_in_backward(unit, total)
            || facts.reaches_backward(unit, total)
            || facts.is_returned_to_a_framework(unit, total)
        {
            continue;
        }
        // Without a `backward()` in the loop, a total that is handed on may be the loss itself.
        let trains = facts.returns_loss_to_a_framework(unit)
            || facts
                .calls_inside(steps)
                .any(|call| facts.runs_backward(call.node));
        if !trains && facts.escapes(unit, total) && !facts.is_evaluated(unit, first) {
            continue;
        }
        let name = facts.text(*first);
        let kept = if trains {
            "the graph"
        } else {
            "the graph and all activations"
        };
        let mut edits: Vec<_> = with_graph
            .iter()
            .flat_map(|added| without_graph(facts, added))
            .collect();
        edits.sort_by_key(|edit| edit.range.start);
        let finding = report.add_with(
            span(grown.statement),
            format!("`{total}` keeps {kept} of `{name}` from every step"),
            "add `.item()` for a number, or `.detach()` for a tensor without its graph",
            Some(Fix::safe("Add `.detach()`", edits)),
        );
        if !trains {
            finding.severity = Severity::Error;
        }
    }
}

/// Whether a total begins anew in every step: not only once every so many, when it is logged.
fn is_reset(facts: &Facts<'_>, steps: BlockId, total: &str) -> bool {
    let unit = facts.structure.unit_of(steps);
    let mut resets = facts
        .assigns_in_unit(unit)
        .filter(|assign| {
            assign.operator.is_none()
                && facts.structure.is_inside(assign.place.block, steps)
                && facts.targets(assign.target, total)
                && !facts.mentions(assign.value, total)
        })
        .peekable();
    // Where the optimizer steps in the same branch, micro-batches make one step.
    let is_one_step = |block: BlockId| {
        facts
            .calls_inside(steps)
            .any(|call| call.place.block == block && facts.is_optimizer_step(call))
    };
    let is_periodic = resets.peek().is_some()
        && resets.all(|assign| {
            !is_one_step(assign.place.block)
                && facts
                    .conditions_at(assign.place, span(assign.statement).start, steps)
                    .iter()
                    .any(|condition| facts.every(condition).is_some())
        });
    facts.is_bound_inside(steps, total) && !facts.is_only_begun_inside(steps, total) && !is_periodic
}

/// Whether losses of independent batches are summed and backpropagated once every few batches: then all their
/// graphs are held at a time, although gradients could be accumulated.
fn is_backpropagated_in_windows<'a>(
    facts: &Facts<'a>,
    steps: BlockId,
    total: &str,
    added: &[&'a Expr],
) -> bool {
    let BlockKind::For(node) = facts.structure.blocks[steps].kind else {
        return false;
    };
    let unit = facts.structure.unit_of(steps);
    let is_model_call =
        |part: &&Expr| matches!(part, Expr::Call(call) if facts.called_module(call).is_some());
    // `out, state = model(x, state)`: batches that continue one another have one graph.
    let carries_state = facts.assigns_in_unit(unit).any(|assign| {
        let mut carries = false;
        facts.each_target(assign.target, &mut |path| {
            carries |= facts.structure.is_inside(assign.place.block, steps)
                && is_model_call(&assign.value)
                && facts.mentions(assign.value, path);
        });
        carries
    });
    let is_windowed = facts.calls_inside(steps).any(|call| {
        facts.is_backward(call.node)
            && facts.structure.loop_around(call.place.block) == Some(steps)
            && facts
                .goes_back_from(call.node)
                .is_some_and(|loss| facts.mentions(loss, total))
            && facts
                .conditions_at(call.place, span(call.node).start, steps)
                .iter()
                .any(|condition| facts.varies_in(steps, condition.test))
    });
    facts.iterates_loader(&node.iter)
        && is_windowed
        && facts.is_bound_inside(steps, total)
        && !carries_state
        && added
            .iter()
            .any(|part| facts.made_of(part).iter().any(is_model_call))
}

/// Whether an expression calls a criterion or a loss function of PyTorch.
fn is_of_a_criterion(facts: &Facts<'_>, added: &Expr) -> bool {
    let mut found = false;
    each_expression(added, &mut |part| {
        if let Expr::Call(call) = part {
            found |= facts.value(&call.func).kind == Kind::Criterion
                || facts
                    .callee(call)
                    .is_some_and(|name| is_loss_function(&name))
                || facts.result(call).scalar.is_yes()
                    && facts.path(&call.func).and_then(role) == Some(Role::Criterion);
        }
    });
    found
}

/// Computed only from unknown results that nothing backpropagates: an accuracy, a time.
fn is_of_unknown_make(facts: &Facts<'_>, steps: BlockId, added: &Expr) -> bool {
    let unit = facts.structure.unit_of(steps);
    // What a criterion makes of an output is a loss.
    if is_of_a_criterion(facts, added) {
        return false;
    }
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

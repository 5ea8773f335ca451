//! `losses.append(loss)` keeps every step's graph.

use super::collected_outputs::listed_generator;
use super::fixes::without_graph;
use super::{Family, Report, Rule};
use crate::facts::structure::{BlockId, UnitId};
use crate::facts::value::Kind;
use crate::facts::{Facts, each_expression};
use crate::finding::{Fix, Severity};
use crate::python::{Expr, ExprCall, span};

pub static RULE: Rule = Rule {
    name: "collected-losses",
    family: Family::KeptGraphs,
    severity: Severity::Warning,
    summary: "losses are collected with their graphs",
    docs: "\
## What it does
Finds a list or dict that collects the loss of every step without `.item()` or `.detach()`.

## Why it costs memory
Every loss in the list keeps its graph. After `backward()` the saved activations are freed: each
step leaves a small tensor on the card and the graph's nodes in host memory. Without `backward()`,
the activations of every step stay on the card.

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
When the losses are backpropagated together later, or the list is emptied in every step. Losses that
may still be backpropagated are not reported, nor are lists of fixed length (`deque(maxlen=100)`).
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    check_comprehensions(facts, report);
    check_generators(facts, report);
    for kept in facts.kept() {
        let value = facts.value(kept.value);
        // A list, a tuple or a record of losses is kept like a loss.
        let may_hold_loss = matches!(
            value.kind,
            Kind::Tensor | Kind::Container | Kind::Tuple(_) | Kind::Object(_)
        );
        if !may_hold_loss || !value.graph.is_yes() {
            continue;
        }
        let Some(steps) = facts.steps_around(kept.place.block) else {
            continue;
        };
        let unit = facts.structure.unit_of(steps);
        if facts.is_left_to_callers(unit, kept.value) {
            continue;
        }
        let backpropagated = is_backpropagated(facts, unit, steps, kept.value)
            || facts.is_term_of_a_loss(unit, kept.value);
        let is_loss = backpropagated
            || value.scalar.is_yes() && !facts.is_one_of_several_results(unit, kept.value);
        if !is_loss
            || facts.is_about_one_batch(steps, kept.container)
            || !facts.outlives_step(steps, kept.container)
            || facts.ends_in_backward(unit, kept.container)
            || !backpropagated
                && facts.escapes(unit, kept.container)
                && !facts.is_evaluated(unit, kept.value)
        {
            continue;
        }
        let name = facts.text(kept.value);
        let held = if backpropagated {
            "the graph"
        } else {
            "the graph and all activations"
        };
        // A list has no `.detach()`.
        let fix = value
            .is_tensor()
            .then(|| Fix::safe("Add `.detach()`", without_graph(facts, kept.value)));
        let finding = report.add_with(
            span(kept.statement),
            format!(
                "`{}` keeps {held} of `{name}` from every step",
                kept.container
            ),
            "add `.item()` for a number, or `.detach()` for a tensor without its graph",
            fix,
        );
        if !backpropagated {
            finding.severity = Severity::Error;
        }
    }
}

/// `losses = [train_step(batch) for batch in loader]`.
fn check_comprehensions(facts: &Facts<'_>, report: &mut Report<'_>) {
    for assign in &facts.structure.assigns {
        let (Expr::ListComp(comprehension), Some(container)) =
            (assign.value, facts.path(assign.target))
        else {
            continue;
        };
        let element = &*comprehension.elt;
        let value = facts.value(element);
        let unit = facts.structure.unit_of(assign.place.block);
        let mut steps = false;
        each_expression(element, &mut |part| {
            steps |= matches!(part, Expr::Call(call) if trains(facts, call)
            && facts.reaches(call, &|each| {
                matches!(facts.method(each), Some((_, "step")))
            }));
        });
        if !steps
            || !value.is_tensor()
            || !value.graph.is_yes()
            || facts.ends_in_backward(unit, container)
        {
            continue;
        }
        report.add_with(
            span(element),
            format!(
                "`{container}` keeps the graph of `{}` from every step",
                facts.text(element)
            ),
            "add `.item()` for a number, or `.detach()` for a tensor without its graph",
            Some(Fix::safe("Add `.detach()`", without_graph(facts, element))),
        );
    }
}

/// `losses = list(train(model, loader))` or `losses += list(...)` of a generator that trains and yields each loss.
fn check_generators(facts: &Facts<'_>, report: &mut Report<'_>) {
    for call in &facts.structure.calls {
        let Some(generator) = listed_generator(facts, call.node) else {
            continue;
        };
        let unit = facts.structure.unit_of(call.place.block);
        let container = facts
            .assigns_in_unit(unit)
            .find(|assign| span(assign.value) == span(call.node))
            .and_then(|assign| facts.path(assign.target));
        let Some(container) = container else {
            continue;
        };
        let yields_losses = facts
            .yielded(generator)
            .into_iter()
            .any(|(yielded, place)| {
                let value = facts.value(yielded);
                value.is_tensor()
                    && value.graph.is_yes()
                    && facts
                        .structure
                        .loop_around(place.block)
                        .is_some_and(|rounds| {
                            facts.is_step_loop(rounds)
                                && is_backpropagated(facts, generator, rounds, yielded)
                        })
            });
        if yields_losses && !facts.ends_in_backward(unit, container) {
            report.add(
                span(call.node),
                format!(
                    "`{container}` keeps the graph of what `{}` yields in every step",
                    facts.structure.units[generator].name
                ),
                "yield `.item()` for a number, or `.detach()` for a tensor without its graph",
            );
        }
    }
}

/// Whether a value is computed from what the same loop backpropagates, or comes from a function of the
/// file that backpropagates.
fn is_backpropagated<'a>(facts: &Facts<'a>, unit: UnitId, steps: BlockId, value: &'a Expr) -> bool {
    let mut found = false;
    each_expression(value, &mut |part| {
        if let Expr::Call(call) = part {
            found |= trains(facts, call);
        } else if let Some(path) = facts.path(part) {
            found |= facts.is_backpropagated_inside(steps, path)
                || match facts.last_value(unit, path, part) {
                    Some(Expr::Call(call)) => trains(facts, call),
                    // The sum of losses that were backpropagated one by one.
                    Some(made) => is_backpropagated_sum(facts, steps, made),
                    None => false,
                };
        }
    });
    found
}

fn is_backpropagated_sum(facts: &Facts<'_>, steps: BlockId, made: &Expr) -> bool {
    match made {
        Expr::BinOp(sum) => {
            is_backpropagated_sum(facts, steps, &sum.left)
                && is_backpropagated_sum(facts, steps, &sum.right)
        }
        Expr::NumberLiteral(_) => true,
        _ => facts
            .path(made)
            .is_some_and(|path| facts.is_backpropagated_inside(steps, path)),
    }
}

fn trains(facts: &Facts<'_>, call: &ExprCall) -> bool {
    facts.called_module(call).is_none() && facts.runs_backward(call)
}

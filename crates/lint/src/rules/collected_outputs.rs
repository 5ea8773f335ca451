//! `outputs.append(model(x))` fills the card with outputs, or with whole graphs.

use std::ops::Range;

use super::fixes::with_method;
use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::kept::Kept;
use crate::facts::roles::sounds_like_indices;
use crate::facts::structure::{BlockId, BlockKind, Call, UnitId};
use crate::facts::value::Kind;
use crate::finding::{Finding, Fix, Severity};
use crate::python::{Expr, ExprCall, Stmt, span};
use crate::syntax::plain_callee;

pub static RULE: Rule = Rule {
    name: "collected-outputs",
    family: Family::KeptGraphs,
    severity: Severity::Warning,
    summary: "a model's outputs are collected on the card",
    docs: "\
## What it does
Finds a list or dict that collects a model's output for every batch on the card, with or without its
graph: in a loop, in a comprehension, or from a generator of the file.

## Why it costs memory
With gradients enabled and no `backward()`, every output keeps the activations of its whole forward
pass: a few batches fill the card. Under `torch.no_grad()` the outputs themselves stay on the card
as long as the list does, so memory grows with the dataset.

## Example
```python
outputs = []
for inputs, targets in loader:
    output = model(inputs.to(device))
    loss = criterion(output, targets.to(device))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    outputs.append(output)
```

## Use instead
```python
outputs = []
for inputs, targets in loader:
    output = model(inputs.to(device))
    loss = criterion(output, targets.to(device))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    outputs.append(output.detach().cpu())
```

## When it is fine
When the outputs are backpropagated together later, or few, small and needed on the card. Outputs
kept in some iterations only are not reported, nor are reductions such as `output.argmax(1)`, which
keep little. Without gradients, only outputs are reported that are on the card and not used in later
computations there.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    check_comprehensions(facts, report);
    check_generators(facts, report);
    for kept in facts.kept() {
        let value = facts.value(kept.value);
        let has_graph = value.graph.is_yes();
        let is_large = value.is_tensor() && !value.scalar.is_yes()
            || value.kind == Kind::Container && has_graph;
        if !is_large || value.card.is_no() && !has_graph {
            continue;
        }
        let unit = facts.structure.unit_of(kept.place.block);
        if !has_graph && facts.path(kept.value).is_some_and(sounds_like_indices) {
            continue;
        }
        // With a graph, the output is kept by whatever was computed from it.
        let behind = || {
            has_graph
                .then(|| facts.model_behind(unit, kept.value))
                .flatten()
        };
        let late = || moved_too_late(facts, unit, &kept);
        let found = facts.model_call(unit, kept.value);
        let Some(call) = found.or_else(behind).or_else(late) else {
            continue;
        };
        // Without gradients, a model is not trained.
        let evaluates = facts.gradients_at(call).is_no()
            || facts
                .calls_in_unit(unit)
                .find(|each| std::ptr::eq(each.node, call))
                .is_some_and(|each| {
                    facts.evaluation_at(each).is_some() || facts.evaluation_inside(each).is_some()
                });
        let Some(steps) = batches_around(facts, kept.place.block, evaluates) else {
            continue;
        };
        if !facts.outlives_step(steps, kept.container)
            || is_for_some_rounds(facts, &kept, steps)
            || facts
                .path(kept.value)
                .is_some_and(|path| facts.is_backpropagated_inside(steps, path))
            || has_graph
                && (facts.is_term_of_a_loss(unit, kept.value)
                    || facts.is_left_to_callers(unit, kept.value))
        {
            continue;
        }
        let trains = facts.returns_loss_to_a_framework(unit)
            || facts
                .calls_inside(steps)
                .any(|call| facts.is_backward(call.node));
        let name = facts.text(kept.value);
        let container = kept.container;
        if value.graph.is_yes() && facts.gradients_at(call).is_yes() {
            if facts.ends_in_backward(unit, container)
                || is_a_part_of_a_model(facts, unit) && facts.escapes(unit, container)
                || !trains
                    && !evaluates
                    && (facts.escapes(unit, container)
                        || is_in_what_is_given(facts, unit, container))
                || trains && value.card.is_no()
            {
                continue;
            }
            let held = if trains {
                "with what its graph still holds"
            } else {
                "with all activations of its forward pass"
            };
            // Moved to the host, it could not be joined or used with what is on the card.
            let belongs_on_card = kept.is_joined || facts.is_used_on_card(unit, container);
            let finding = report_graph(
                facts,
                report,
                kept.value,
                belongs_on_card,
                span(kept.statement),
                format!("`{container}` keeps `{name}` from every batch, {held}"),
            );
            if !trains {
                finding.severity = Severity::Error;
            }
        } else if value.graph.is_no()
            && value.card.is_yes()
            && (grows_over_epochs(facts, unit, container)
                || !facts.is_used_on_card(unit, container))
        {
            let help = if kept.is_joined {
                "collect the outputs in a list with `.cpu()`, and join them once at the end"
            } else {
                "add `.cpu()`, or reduce the outputs batch by batch"
            };
            // What is joined has to be where the other part is.
            let fix = (!kept.is_joined)
                .then(|| Fix::unsafe_("Add `.cpu()`", with_method(facts, kept.value, ".cpu()")));
            report.add_with(
                span(kept.statement),
                format!("`{container}` keeps `{name}` from every batch on the card"),
                help,
                fix,
            );
        }
    }
}

/// The model call of one of several results of unknown size, if what collects them is moved to the host at the
/// end: `[each.cpu() for each in attentions]`.
fn moved_too_late<'a>(facts: &Facts<'a>, unit: UnitId, kept: &Kept<'a>) -> Option<&'a ExprCall> {
    let call = facts.model_of_several(unit, kept.value)?;
    let reached = facts.flows(unit, kept.container);
    let is_moved = facts.calls_in_unit(unit).any(|call| {
        matches!(facts.method(call.node), Some((receiver, "cpu"))
            if call.place.order > kept.place.order
                && (reached.iter().any(|path| facts.path(receiver) == Some(path))
                    || is_element_of(facts, call, receiver, kept.container)))
    });
    is_moved.then_some(call)
}

/// `each` of `[each.cpu() for each in collected]`.
fn is_element_of(facts: &Facts<'_>, call: &Call<'_>, receiver: &Expr, container: &str) -> bool {
    facts
        .structure
        .enclosing(call.place.block)
        .any(|(_, kind)| match kind {
            BlockKind::Comprehension(Expr::ListComp(comprehension)) => {
                comprehension.generators.iter().any(|generator| {
                    facts.path(&generator.iter) == Some(container)
                        && facts.path(&generator.target) == facts.path(receiver)
                })
            }
            _ => false,
        })
}

/// `outputs = [model(x) for x in loader]`.
fn check_comprehensions(facts: &Facts<'_>, report: &mut Report<'_>) {
    for assign in &facts.structure.assigns {
        let (Expr::ListComp(comprehension), Some(container)) =
            (joined(facts, assign.value), facts.path(assign.target))
        else {
            continue;
        };
        let [generator] = &*comprehension.generators else {
            continue;
        };
        let unit = facts.structure.unit_of(assign.place.block);
        let element = &*comprehension.elt;
        let value = facts.value(element);
        // Joined at once, outputs may be meant to stay, unless they are moved to the host next.
        let is_joined = !matches!(assign.value, Expr::ListComp(_));
        if is_joined && !is_moved_to_host(facts, unit, container) {
            continue;
        }
        let Some(call) = facts.model_call(unit, element) else {
            continue;
        };
        if !value.is_tensor() || !facts.iterates_loader(&generator.iter) {
            continue;
        }
        let name = facts.text(element);
        if value.graph.is_no() && value.card.is_yes() {
            if !facts.is_used_on_card(unit, container) {
                report.add_with(
                    span(element),
                    format!("`{container}` keeps `{name}` from every batch on the card"),
                    "add `.cpu()`, or reduce the outputs batch by batch",
                    (!is_joined).then(|| {
                        Fix::unsafe_("Add `.cpu()`", with_method(facts, element, ".cpu()"))
                    }),
                );
            }
            continue;
        }
        let evaluates = facts
            .calls_in_unit(unit)
            .find(|each| std::ptr::eq(each.node, call))
            .is_some_and(|each| facts.evaluation_at(each).is_some());
        if value.graph.is_yes()
            && facts.gradients_at(call).is_yes()
            && !facts.ends_in_backward(unit, container)
            && (evaluates || !facts.escapes(unit, container))
        {
            report_graph(
                facts,
                report,
                element,
                facts.is_used_on_card(unit, container),
                span(element),
                format!(
                    "`{container}` keeps `{name}` from every batch, with all activations of its forward pass"
                ),
            )
            .severity = Severity::Error;
        }
    }
}

/// Whether a unit moves what a path holds to the host: `features.cpu()`.
fn is_moved_to_host(facts: &Facts<'_>, unit: UnitId, path: &str) -> bool {
    facts.calls_in_unit(unit).any(|call| {
        matches!(facts.method(call.node), Some((receiver, "cpu" | "numpy" | "tolist"))
            if facts.path(receiver) == Some(path))
    })
}

/// What `torch.cat(outputs)` joins, or the expression itself.
fn joined<'a>(facts: &Facts<'a>, value: &'a Expr) -> &'a Expr {
    match value {
        Expr::Call(call)
            if facts.callee(call).is_some_and(|name| {
                matches!(
                    name.as_str(),
                    "torch.cat" | "torch.concat" | "torch.vstack" | "torch.stack"
                )
            }) =>
        {
            call.arguments.args.first().unwrap_or(value)
        }
        _ => value,
    }
}

/// `outputs = list(predict(model, loader))` of a generator that yields a model's outputs.
fn check_generators(facts: &Facts<'_>, report: &mut Report<'_>) {
    for assign in &facts.structure.assigns {
        let (Expr::Call(call), Some(container)) = (assign.value, facts.path(assign.target)) else {
            continue;
        };
        let Some(generator) = listed_generator(facts, call) else {
            continue;
        };
        let unit = facts.structure.unit_of(assign.place.block);
        let keeps = facts
            .yielded(generator)
            .into_iter()
            .any(|(yielded, place)| {
                let value = facts.value(yielded);
                value.is_tensor()
                    && value.card.is_yes()
                    && value.graph.is_no()
                    && facts.model_call(generator, yielded).is_some()
                    && (facts.structure.loop_around(place.block))
                        .is_some_and(|rounds| facts.goes_over_inputs(rounds))
            });
        if keeps && !facts.is_used_on_card(unit, container) {
            report.add(
                span(call),
                format!(
                    "`{container}` keeps what `{}` yields for every batch on the card",
                    facts.structure.units[generator].name
                ),
                "yield it with `.cpu()`, or reduce the outputs batch by batch",
            );
        }
    }
}

/// The generator of `list(predict(...))`.
pub(super) fn listed_generator(facts: &Facts<'_>, call: &ExprCall) -> Option<UnitId> {
    match (plain_callee(call), &*call.arguments.args) {
        (Some("list" | "tuple"), [given]) => match facts.value(given).kind {
            Kind::Generator(unit) => Some(unit),
            _ => None,
        },
        _ => None,
    }
}

fn report_graph<'r>(
    facts: &Facts<'_>,
    report: &'r mut Report<'_>,
    value: &Expr,
    belongs_on_card: bool,
    range: Range<usize>,
    message: String,
) -> &'r mut Finding {
    if !facts.value(value).is_tensor() {
        let help = "add `.detach().cpu()` to what it holds";
        return report.add_with(range, message, help, None);
    }
    // On the host already, but its graph is on the card.
    let method = if belongs_on_card || facts.value(value).card.is_no() {
        ".detach()"
    } else {
        ".detach().cpu()"
    };
    report.add_with(
        range,
        message,
        format!("add `{method}`"),
        Some(Fix::unsafe_(
            format!("Add `{method}`"),
            with_method(facts, value, method),
        )),
    )
}

/// What is repeated for every batch around a block: also a hook of a framework that evaluates, and in an
/// evaluation any loop that gives a model its inputs.
fn batches_around(facts: &Facts<'_>, block: BlockId, evaluates: bool) -> Option<BlockId> {
    facts.steps_around(block).or_else(|| {
        let unit = facts.structure.unit_of(block);
        match facts.structure.loop_around(block) {
            Some(rounds) => (evaluates && facts.goes_over_inputs(rounds)).then_some(rounds),
            None => facts
                .is_batch_hook(unit)
                .then_some(facts.structure.units[unit].block),
        }
    })
}

/// Whether something is kept in some iterations only: `if step == 0`, `if len(outputs) < 16`. (What the
/// first iteration begins, the others add to.)
fn is_for_some_rounds(facts: &Facts<'_>, kept: &Kept<'_>, steps: BlockId) -> bool {
    facts
        .conditions_at(kept.place, span(kept.statement).start, steps)
        .iter()
        .any(|condition| {
            (facts.varies_in(steps, condition.test)
                || facts.mentions(condition.test, kept.container))
                && !facts.asks_whether_begun(condition, kept.container)
                && !ends_the_loop(facts, condition.test)
        })
}

/// `if item is None: break`: the iterations after it are none.
fn ends_the_loop(facts: &Facts<'_>, test: &Expr) -> bool {
    facts.structure.statements.iter().any(|(statement, _)| {
        matches!(statement, Stmt::If(node)
            if std::ptr::eq(&*node.test, test)
                && matches!(node.body.last(), Some(Stmt::Break(_) | Stmt::Return(_) | Stmt::Raise(_))))
    })
}

/// Whether a unit is a method of a module, whose callers backpropagate what it returns.
fn is_a_part_of_a_model(facts: &Facts<'_>, unit: UnitId) -> bool {
    facts.structure.units[unit].class.is_some_and(|class| {
        facts.structure.classes[class].method("forward").is_some() && !facts.is_batch_hook(unit)
    })
}

/// Whether a container is a part of what the unit is given: its callers may backpropagate and empty it.
fn is_in_what_is_given(facts: &Facts<'_>, unit: UnitId, container: &str) -> bool {
    container
        .split_once('.')
        .is_some_and(|(root, _)| root != "self" && facts.is_parameter_of(unit, root))
}

/// Whether a hook of a framework adds to a container that nothing ever empties.
fn grows_over_epochs(facts: &Facts<'_>, unit: UnitId, container: &str) -> bool {
    container.starts_with("self.")
        && facts.is_batch_hook(unit)
        && !facts.is_ever_emptied(unit, container)
}

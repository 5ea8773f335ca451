//! `outputs.append(model(x))` fills the card with outputs, or with whole graphs.

use std::ops::Range;

use super::fixes::with_method;
use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::keeping::Kept;
use crate::facts::structure::{BlockId, BlockKind, UnitId};
use crate::finding::{Finding, Fix, Severity};
use crate::python::{Expr, ExprCall, Operator, span};

pub static RULE: Rule = Rule {
    name: "collected-outputs",
    family: Family::KeptGraphs,
    severity: Severity::Warning,
    summary: "a model's outputs are collected on the card",
    docs: "\
## What it does
Finds a list or dict that collects a model's output for every batch on the card, with or without its
graph.

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
keep little. Without gradients, only outputs that are certainly on the card and not used in later
computations there are reported.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    check_comprehensions(facts, report);
    for kept in facts.kept() {
        let value = facts.value(kept.value);
        let is_large = value.is_tensor() && !value.scalar.is_yes();
        if !is_large || value.card.is_no() && !value.graph.is_yes() {
            continue;
        }
        let Some(steps) = facts.structure.loop_around(kept.place.block) else {
            continue;
        };
        let unit = facts.structure.unit_of(steps);
        if !facts.outlives(steps, kept.container)
            || is_for_some_rounds(facts, &kept, steps)
            || facts
                .path(kept.value)
                .is_some_and(|path| facts.is_backpropagated_inside(steps, path))
        {
            continue;
        }
        let Some(call) = facts.model_call(unit, kept.value) else {
            continue;
        };
        let evaluates = facts
            .calls_inside(steps)
            .find(|each| std::ptr::eq(each.node, call))
            .is_some_and(|each| facts.evaluation_at(each).is_some());
        let goes_over_batches =
            facts.is_step_loop(steps) || evaluates && takes_what_it_goes_over(facts, steps, call);
        if !goes_over_batches {
            continue;
        }
        let trains = facts
            .calls_inside(steps)
            .any(|call| facts.is_backward(call.node));
        // The pieces of one batch, whose step comes after the loop.
        if trains && !facts.goes_over_steps(steps) {
            continue;
        }
        let name = facts.text(kept.value);
        let container = kept.container;
        if value.graph.is_yes() && facts.gradients_at(call).is_yes() {
            if facts.ends_in_backward(unit, container)
                || !trains && !evaluates && facts.escapes(unit, container)
                || trains && value.card.is_no()
            {
                continue;
            }
            let held = if trains {
                "with what its graph still holds"
            } else {
                "with all activations of its forward pass"
            };
            let finding = report_graph(
                facts,
                report,
                kept.value,
                span(kept.statement),
                format!("`{container}` keeps `{name}` from every batch, {held}"),
            );
            if !trains {
                finding.severity = Severity::Error;
            }
        } else if value.graph.is_no()
            && value.card.is_yes()
            && !is_used_on_card(facts, unit, container)
        {
            report.add_with(
                span(kept.statement),
                format!("`{container}` keeps `{name}` from every batch on the card"),
                "add `.cpu()`, or reduce the outputs batch by batch",
                Some(Fix::unsafe_(
                    "Add `.cpu()`",
                    with_method(facts, kept.value, ".cpu()"),
                )),
            );
        }
    }
}

/// `outputs = [model(x) for x in loader]` with gradients enabled.
fn check_comprehensions(facts: &Facts<'_>, report: &mut Report<'_>) {
    for assign in &facts.structure.assigns {
        let (Expr::ListComp(comprehension), Some(container)) =
            (assign.value, facts.path(assign.target))
        else {
            continue;
        };
        let [generator] = &*comprehension.generators else {
            continue;
        };
        let unit = facts.structure.unit_of(assign.place.block);
        let element = &*comprehension.elt;
        let value = facts.value(element);
        let Some(call) = facts.model_call(unit, element) else {
            continue;
        };
        let evaluates = facts
            .calls_in_unit(unit)
            .find(|each| std::ptr::eq(each.node, call))
            .is_some_and(|each| facts.evaluation_at(each).is_some());
        if value.is_tensor()
            && value.graph.is_yes()
            && facts.gradients_at(call).is_yes()
            && facts.iterates_loader(&generator.iter)
            && !facts.ends_in_backward(unit, container)
            && (evaluates || !facts.escapes(unit, container))
        {
            report_graph(
                facts,
                report,
                element,
                span(element),
                format!(
                    "`{container}` keeps `{}` from every batch, with all activations of its forward pass",
                    facts.text(element)
                ),
            )
            .severity = Severity::Error;
        }
    }
}

fn report_graph<'r>(
    facts: &Facts<'_>,
    report: &'r mut Report<'_>,
    value: &Expr,
    range: Range<usize>,
    message: String,
) -> &'r mut Finding {
    // On the host already, but its graph is on the card.
    let method = if facts.value(value).card.is_no() {
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

/// Whether a model is given what a loop iterates over: batches, not the steps of one sequence.
fn takes_what_it_goes_over(facts: &Facts<'_>, steps: BlockId, call: &ExprCall) -> bool {
    let BlockKind::For(node) = facts.structure.blocks[steps].kind else {
        return false;
    };
    let mut taken = false;
    facts.each_target(&node.target, &mut |path| {
        taken |= call
            .arguments
            .args
            .iter()
            .any(|each| facts.mentions(each, path));
    });
    taken
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
        })
}

/// Methods whose result is in host memory.
const TO_HOST: &[&str] = &["cpu", "numpy", "tolist", "item"];

/// Whether the collected outputs are used in a computation: then they belong on the card.
fn is_used_on_card(facts: &Facts<'_>, unit: UnitId, container: &str) -> bool {
    let mut joined = vec![container.to_owned()];
    for assign in facts.assigns_in_unit(unit) {
        if let (Some(target), Expr::Call(call)) = (facts.path(assign.target), assign.value)
            && joins(facts, call)
            && joined.iter().any(|path| facts.mentions(assign.value, path))
        {
            joined.push(target.to_owned());
        }
    }
    let named = |expression: &Expr| joined.iter().any(|path| facts.mentions(expression, path));
    let computes = facts.calls_in_unit(unit).any(|call| {
        let given = call.node.arguments.args.iter().any(named);
        let called_on =
            matches!(&*call.node.func, Expr::Attribute(function) if named(&function.value));
        match facts.callee(call.node) {
            Some(name) => {
                given
                    && name.starts_with("torch.")
                    && !joins(facts, call.node)
                    && name != "torch.save"
                    && !facts.is_put_through(unit, call.node, TO_HOST)
            }
            None => {
                let method = match &*call.node.func {
                    Expr::Attribute(function) => function.attr.as_str(),
                    Expr::Name(name) => name.id.as_str(),
                    _ => "",
                };
                let harmless = matches!(
                    method,
                    "append"
                        | "extend"
                        | "cpu"
                        | "numpy"
                        | "tolist"
                        | "detach"
                        | "size"
                        | "print"
                        | "len"
                        | "view"
                        | "reshape"
                        | "squeeze"
                        | "float"
                        | "items"
                        | "zip"
                        | "enumerate"
                        | "range"
                        | "list"
                        | "data"
                );
                (given || called_on) && !harmless && !facts.is_put_through(unit, call.node, TO_HOST)
            }
        }
    });
    let mut operates = false;
    for (statement, place) in &facts.structure.statements {
        if facts.structure.unit_of(place.block) == unit {
            facts.each_expression_of_statement(statement, &mut |part| {
                operates |= matches!(part, Expr::BinOp(operation)
                    if operation.op == Operator::MatMult && named(part));
            });
        }
    }
    computes || operates
}

fn joins(facts: &Facts<'_>, call: &ExprCall) -> bool {
    facts.callee(call).is_some_and(|name| {
        matches!(
            name.as_str(),
            "torch.cat" | "torch.stack" | "torch.concat" | "torch.vstack" | "torch.hstack"
        )
    })
}

//! A moving average of weights that keeps the graph of every update.

use super::{Family, Report, Rule};
use crate::facts::structure::{Assign, BlockKind};
use crate::facts::{Facts, each_expression};
use crate::finding::Severity;
use crate::python::{Expr, Operator, span};

pub static RULE: Rule = Rule {
    name: "averaged-weights-with-graph",
    family: Family::KeptGraphs,
    severity: Severity::Error,
    summary: "a moving average of weights keeps the graph of every update",
    docs: "\
## What it does
Finds a moving average of a model's parameters that is computed with gradients enabled, from the
parameters themselves and not from their `.data` or `.detach()`.

## Why it costs memory
Parameters require gradients, so autograd records the average. Each update adds to the graph of the
one before: every earlier average stays on the card, a set of weights more per update.

## Example
```python
average = {name: value.clone() for name, value in model.named_parameters()}
for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for name, value in model.named_parameters():
        average[name] = 0.99 * average[name] + 0.01 * value
```

## Use instead
```python
average = {name: value.detach().clone() for name, value in model.named_parameters()}
for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for name, value in model.named_parameters():
            average[name] = 0.99 * average[name] + 0.01 * value
```

## When it is fine
When the average is backpropagated, as in some methods of meta-learning: averages that reach a
`backward()` are not reported.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for assign in &facts.structure.assigns {
        let Expr::Subscript(target) = assign.target else {
            continue;
        };
        let unit = facts.structure.unit_of(assign.place.block);
        let Some(average) = facts.path(&target.value) else {
            continue;
        };
        if assign.operator.is_some()
            || !facts.gradients_at(assign.statement).is_yes()
            || !is_scaled_inside(facts, assign)
            || facts.value(assign.value).graph.is_no()
            || facts.ends_in_backward(unit, average)
        {
            continue;
        }
        let Some(parameter) = parameter_in(facts, assign) else {
            continue;
        };
        report.add(
            span(assign.statement),
            format!(
                "`{average}` keeps the graph of every update, and with it every earlier average"
            ),
            format!("compute it under `torch.no_grad()`, or from `{parameter}.detach()`"),
        );
    }
}

/// Whether the value has the target itself, multiplied: an average, not a sum.
fn is_scaled_inside(facts: &Facts<'_>, assign: &Assign<'_>) -> bool {
    let mut scaled = false;
    each_expression(assign.value, &mut |part| {
        scaled |= matches!(part, Expr::BinOp(product)
            if product.op == Operator::Mult
                && (facts.same_text(&product.left, assign.target)
                    || facts.same_text(&product.right, assign.target)));
    });
    scaled
}

/// The parameter, given by a loop over `named_parameters()`, whose graph goes into the value.
fn parameter_in<'a>(facts: &Facts<'a>, assign: &Assign<'a>) -> Option<&'a str> {
    facts
        .structure
        .enclosing(assign.place.block)
        .find_map(|(_, kind)| {
            let BlockKind::For(node) = kind else {
                return None;
            };
            let mut parameters = false;
            each_expression(&node.iter, &mut |part| {
                parameters |= matches!(part, Expr::Call(call)
                    if matches!(facts.method(call), Some((_, "named_parameters" | "parameters"))));
            });
            let mut found = None;
            if parameters {
                facts.each_target(&node.target, &mut |path| {
                    if is_summand(facts, assign.value, path) {
                        found = Some(path);
                    }
                });
            }
            found
        })
}

/// Whether a sum of products has a path among its factors, as it is: `0.1 * p`.
fn is_summand(facts: &Facts<'_>, value: &Expr, path: &str) -> bool {
    match value {
        Expr::BinOp(operation) => {
            is_summand(facts, &operation.left, path) || is_summand(facts, &operation.right, path)
        }
        _ => facts.path(value) == Some(path),
    }
}

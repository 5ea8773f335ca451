//! A moving average of weights that keeps the graph of every update.

use super::{Family, Report, Rule};
use crate::facts::reads::generators;
use crate::facts::structure::{Assign, BlockKind, UnitId};
use crate::facts::value::Kind;
use crate::facts::{Facts, each_expression};
use crate::finding::Severity;
use crate::python::{Expr, ExprCall, Operator, span};
use crate::syntax::plain_callee;

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
    check_comprehensions(facts, report);
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
        let Some(parameter) = parameter_in(facts, assign).or_else(|| entry_in(facts, unit, assign))
        else {
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

/// `average = [0.9 * a + 0.1 * p for a, p in zip(average, model.parameters())]`.
fn check_comprehensions(facts: &Facts<'_>, report: &mut Report<'_>) {
    for assign in &facts.structure.assigns {
        let unit = facts.structure.unit_of(assign.place.block);
        let Some(average) = facts.path(assign.target) else {
            continue;
        };
        let loops = generators(assign.value);
        if assign.operator.is_some()
            || loops.is_empty()
            || !facts.gradients_at(assign.statement).is_yes()
            || facts.value(assign.value).graph.is_no()
            || facts.ends_in_backward(unit, average)
        {
            continue;
        }
        let Some(added) = facts.added_to(assign.target, assign.value) else {
            continue;
        };
        let mut parameter = None;
        for generator in loops {
            each_source(&generator.target, &generator.iter, &mut |name, source| {
                if gives_parameters(facts, unit, source)
                    && let Some(path) = facts.path(name)
                    && added.iter().any(|each| is_summand(facts, each, path))
                {
                    parameter = Some(path);
                }
            });
        }
        if let Some(parameter) = parameter {
            report.add(
                span(assign.statement),
                format!(
                    "`{average}` keeps the graph of every update, and with it every earlier average"
                ),
                format!("compute it under `torch.no_grad()`, or from `{parameter}.detach()`"),
            );
        }
    }
}

/// Calls `visit` for each name that a loop of a comprehension binds, and what it goes over for it.
fn each_source<'a>(
    target: &'a Expr,
    iterated: &'a Expr,
    visit: &mut dyn FnMut(&'a Expr, &'a Expr),
) {
    match (target, iterated) {
        (Expr::Tuple(names), Expr::Call(call)) if plain_callee(call) == Some("zip") => {
            for (name, source) in names.elts.iter().zip(&call.arguments.args) {
                each_source(name, source, visit);
            }
        }
        // `for name, p in model.named_parameters()`
        (Expr::Tuple(names), _) => {
            if let [_, value] = &*names.elts {
                each_source(value, iterated, visit);
            }
        }
        _ => visit(target, iterated),
    }
}

/// Whether an expression gives parameters with their graph: `model.parameters()`, or a name for their list.
fn gives_parameters<'a>(facts: &Facts<'a>, unit: UnitId, source: &'a Expr) -> bool {
    let source = match facts.path(source) {
        Some(path) => facts.last_value(unit, path, source).unwrap_or(source),
        None => source,
    };
    let (mut parameters, mut cut) = (false, false);
    each_expression(source, &mut |part| match part {
        Expr::Call(call) => {
            parameters |= matches!(
                facts.method(call),
                Some((_, "named_parameters" | "parameters"))
            );
        }
        Expr::Attribute(attribute) => {
            cut |= matches!(attribute.attr.as_str(), "detach" | "data");
        }
        _ => {}
    });
    parameters && !cut
}

/// Whether the value has the target itself, multiplied: an average, not a sum.
fn is_scaled_inside(facts: &Facts<'_>, assign: &Assign<'_>) -> bool {
    let mut scaled = false;
    each_expression(assign.value, &mut |part| {
        let is_it = |each: &Expr| facts.same_text(each, assign.target);
        scaled |= match part {
            Expr::BinOp(product) => {
                product.op == Operator::Mult && (is_it(&product.left) || is_it(&product.right))
            }
            // `torch.lerp(average, p, 0.01)`, `average.lerp(p, 0.01)`
            Expr::Call(call) => is_lerp(facts, call) && lerped(call).any(is_it),
            _ => false,
        };
    });
    scaled
}

fn is_lerp(facts: &Facts<'_>, call: &ExprCall) -> bool {
    facts.callee(call).as_deref() == Some("torch.lerp")
        || matches!(facts.method(call), Some((_, "lerp")))
}

/// What a call of `lerp` mixes.
fn lerped(call: &ExprCall) -> impl Iterator<Item = &Expr> {
    let receiver = match &*call.func {
        Expr::Attribute(function) => Some(&*function.value),
        _ => None,
    };
    receiver
        .into_iter()
        .chain(call.arguments.args.iter().take(2))
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
                parameters |= facts.value(part).kind == Kind::Parameters
                    || matches!(part, Expr::Call(call)
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
    has_summand(facts, value, &|each| facts.path(each) == Some(path))
}

fn has_summand(facts: &Facts<'_>, value: &Expr, wanted: &dyn Fn(&Expr) -> bool) -> bool {
    match value {
        Expr::BinOp(operation) => {
            has_summand(facts, &operation.left, wanted)
                || has_summand(facts, &operation.right, wanted)
        }
        Expr::Call(call) if is_lerp(facts, call) => {
            lerped(call).any(|each| has_summand(facts, each, wanted))
        }
        _ => wanted(value),
    }
}

/// An entry of a dict of parameters, whose graph goes into the value: `parameters[name]`.
fn entry_in<'a>(facts: &Facts<'a>, unit: UnitId, assign: &Assign<'a>) -> Option<&'a str> {
    let mut found = None;
    each_expression(assign.value, &mut |part| {
        if let Expr::Subscript(entry) = part
            && gives_parameters(facts, unit, &entry.value)
            && has_summand(facts, assign.value, &|each| span(each) == span(part))
        {
            found = Some(facts.text(part));
        }
    });
    found
}

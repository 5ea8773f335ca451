//! The whole data set on the card before the loop.

use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::structure::{Assign, BlockKind, UnitId};
use crate::facts::value::Kind;
use crate::finding::Severity;
use crate::python::{Expr, ExprCall, Stmt, span};

pub static RULE: Rule = Rule {
    name: "dataset-on-card",
    family: Family::Placement,
    severity: Severity::Warning,
    summary: "a whole data set is put on the card, and then taken batch by batch",
    docs: "\
## What it does
Finds data that is put on the card as a whole before the training loop, and then goes into a
`TensorDataset` with a `DataLoader`, or is cut into batches inside the loop.

## Why it costs memory
Only one batch is needed at a time, but all of them stay on the card for the whole run: memory
for the model goes down with every sample added to the set.

## Example
```python
data = torch.from_numpy(samples).to(device)
for start in range(0, len(data), 32):
    loss = model(data[start:start + 32]).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Use instead
```python
data = torch.from_numpy(samples)
for start in range(0, len(data), 32):
    loss = model(data[start:start + 32].to(device)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine
For data that is small beside the model: then it saves the copy in every step. Data that a
function is given, that was computed on the card, or that goes through the model as a whole is
not reported.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for assign in &facts.structure.assigns {
        let Expr::Call(moved) = assign.value else {
            continue;
        };
        if assign.operator.is_some() || !facts.moves_to_card(moved) || !is_data(facts, moved) {
            continue;
        }
        let Some(path) = facts.path(assign.target) else {
            continue;
        };
        let unit = facts.structure.unit_of(assign.place.block);
        let in_loop = facts.structure.loop_around(assign.place.block).is_some();
        if in_loop || path.contains(['.', '[']) {
            continue;
        }
        let how = if goes_into_a_loader(facts, unit, assign, path) {
            "is put on the card as a whole, although a loader hands it out batch by batch"
        } else if is_cut_into_batches(facts, unit, assign, path) {
            "is put on the card as a whole, although the loop takes it batch by batch"
        } else {
            continue;
        };
        report.add(
            span(assign.statement),
            format!("`{path}` {how}"),
            "leave it in host memory and move each batch to the card in the loop",
        );
    }
}

/// Whether what is moved comes from outside of the computation: read from a file, an array, a
/// list. What has a known small size or was made at random is no data set.
fn is_data(facts: &Facts<'_>, moved: &ExprCall) -> bool {
    let Expr::Attribute(function) = &*moved.func else {
        return false;
    };
    let mut next = &*function.value;
    loop {
        next = match next {
            Expr::Call(call) => match facts.callee(call) {
                Some(name) => {
                    return matches!(
                        name.as_str(),
                        "torch.from_numpy"
                            | "torch.tensor"
                            | "torch.as_tensor"
                            | "torch.Tensor"
                            | "torch.FloatTensor"
                            | "torch.LongTensor"
                            | "torch.load"
                    ) && !call.arguments.args.first().is_some_and(|first| {
                        matches!(
                            first,
                            Expr::List(_) | Expr::NumberLiteral(_) | Expr::ListComp(_)
                        )
                    });
                }
                None => match &*call.func {
                    Expr::Attribute(method) => &method.value,
                    _ => return false,
                },
            },
            // A name that was made so before.
            Expr::Name(_) => {
                let value = facts.value(next);
                return value.is_tensor() && value.graph.is_no() && is_made_of_data(facts, next);
            }
            Expr::Attribute(_) => return false,
            _ => return false,
        };
    }
}

fn is_made_of_data(facts: &Facts<'_>, name: &Expr) -> bool {
    facts.structure.assigns.iter().any(|assign| {
        facts.path(assign.target).is_some()
            && facts.path(assign.target) == facts.path(name)
            && span(assign.statement).end <= span(name).start
            && matches!(assign.value, Expr::Call(call)
                if facts.callee(call).is_some_and(|made| matches!(
                    made.as_str(),
                    "torch.from_numpy" | "torch.tensor" | "torch.as_tensor" | "torch.load"
                )) && !call.arguments.args.first().is_some_and(
                    |first| matches!(first, Expr::List(_) | Expr::NumberLiteral(_) | Expr::ListComp(_))))
    })
}

/// `TensorDataset(data, ...)` that goes into a `DataLoader` and into training.
fn goes_into_a_loader(facts: &Facts<'_>, unit: UnitId, assign: &Assign<'_>, path: &str) -> bool {
    facts.units_that_see(unit, path).into_iter().any(|unit| {
        facts.calls_in_unit(unit).any(|call| {
            facts.callee(call.node).is_some_and(|name| {
                name.starts_with("torch.utils.data") && name.ends_with("TensorDataset")
            }) && span(call.node).start > span(assign.statement).start
                && call
                    .node
                    .arguments
                    .args
                    .iter()
                    .any(|each| facts.path(each) == Some(path) && facts.value(each).card.is_yes())
        })
    })
}

/// `data[start:end]` or `data[chosen]` in a loop that steps, with bounds made in the loop.
fn is_cut_into_batches(facts: &Facts<'_>, unit: UnitId, assign: &Assign<'_>, path: &str) -> bool {
    facts.structure.statements.iter().any(|(statement, place)| {
        if facts.structure.unit_of(place.block) != unit
            || span(*statement).start < span(assign.statement).end
            || matches!(
                statement,
                Stmt::For(_) | Stmt::While(_) | Stmt::If(_) | Stmt::With(_)
            )
        {
            return false;
        }
        let Some(steps) = facts.structure.loop_around(place.block) else {
            return false;
        };
        let trains = facts
            .calls_inside(steps)
            .any(|call| facts.is_backward(call.node));
        let mut cut = false;
        facts.each_expression_of_statement(statement, &mut |part| {
            if let Expr::Subscript(subscript) = part
                && facts.path(&subscript.value) == Some(path)
                && matches!(
                    facts.value(&subscript.value).kind,
                    Kind::Tensor | Kind::Unknown
                )
            {
                cut |= is_made_in_loop(facts, unit, steps, &subscript.slice);
            }
        });
        trains && cut
    })
}

fn is_made_in_loop(facts: &Facts<'_>, unit: UnitId, steps: usize, slice: &Expr) -> bool {
    let first = match slice {
        Expr::Tuple(tuple) => match tuple.elts.first() {
            Some(first) => first,
            None => return false,
        },
        other => other,
    };
    // One sample after the other is cut by numbers: that may be a table of a few rows.
    if !matches!(first, Expr::Slice(_)) && !facts.value(first).is_tensor() {
        return false;
    }
    let mut made = false;
    crate::facts::each_expression(first, &mut |part| {
        if let Some(name) = facts.path(part) {
            made |= match facts.structure.blocks[steps].kind {
                BlockKind::For(node) => facts.targets(&node.target, name),
                _ => false,
            };
            made |= facts.assigns_in_unit(unit).any(|assign| {
                facts.structure.is_inside(assign.place.block, steps)
                    && facts.targets(assign.target, name)
            });
        }
    });
    made
}

//! `best = model.state_dict()` is not a copy: it changes with the weights.

use super::state_dict_copied_on_card::state_dict_of;
use super::{Family, Report, Rule};
use crate::facts::structure::{Assign, BlockId, BlockKind, Call, UnitId};
use crate::facts::{Facts, each_expression};
use crate::finding::{Edit, Fix, Severity};
use crate::python::{CmpOp, Expr, Stmt, span};

pub static RULE: Rule = Rule {
    name: "state-dict-aliased",
    family: Family::Placement,
    severity: Severity::Error,
    summary: "a state dict is kept across training steps, but changes with the weights",
    docs: "\
## What it does
Finds `best = model.state_dict()` that is kept while training continues, and then loaded, saved or
returned.

## Why it costs memory
It costs none, and that is the mistake: the tensors in a state dict are the model's own weights, not
a copy. Every later step changes them, so the \"best\" weights are in fact the last ones.

## Example
```python
best_loss = float(\"inf\")
for epoch in range(10):
    for inputs, targets in loader:
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    if loss.item() < best_loss:
        best_loss = loss.item()
        best = model.state_dict()
model.load_state_dict(best)
```

## Use instead
```python
best_loss = float(\"inf\")
for epoch in range(10):
    for inputs, targets in loader:
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    if loss.item() < best_loss:
        best_loss = loss.item()
        best = {name: value.cpu().clone() for name, value in model.state_dict().items()}
model.load_state_dict(best)
```

## When it is fine
When the state dict is saved before the next step, or the last weights are intended. Only variables
that are assigned where a metric is compared and read after the training loop, or assigned before
training and loaded into the same model after it, are reported.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for assign in &facts.structure.assigns {
        let value = in_tuple(facts, assign.value);
        let Some(model) = state_dict_of(facts, value) else {
            continue;
        };
        let (Some(path), None) = (facts.path(assign.target), assign.operator) else {
            continue;
        };
        let unit = facts.structure.unit_of(assign.place.block);
        let kept = if path.starts_with("self.") {
            is_kept_by_an_object(facts, unit, assign)
                || is_kept_over_steps(facts, unit, assign, path)
        } else {
            let is_plain = !path.contains(['.', '[']);
            // `best["state"]` of a dict of the unit.
            (is_plain || !path.contains('.') && path.ends_with("\"]"))
                && is_kept_over_steps(facts, unit, assign, path)
                || is_plain && is_restored(facts, unit, assign, model, path)
        };
        if !kept {
            continue;
        }
        let model = facts.text(model);
        report.add_with(
            span(value),
            format!("`{path}` is not a copy: every later step changes it together with `{model}`"),
            "keep a copy: `{name: value.cpu().clone() for name, value in ...}`",
            Some(Fix::unsafe_(
                "Copy the state dict to the CPU",
                vec![Edit::replace(
                    span(value),
                    format!(
                        "{{name: value.cpu().clone() for name, value in {model}.state_dict().items()}}"
                    ),
                )],
            )),
        );
    }
}

/// The state dict in `best = (loss, model.state_dict())`, or the value itself.
fn in_tuple<'a>(facts: &Facts<'a>, value: &'a Expr) -> &'a Expr {
    match value {
        Expr::Tuple(tuple) => tuple
            .elts
            .iter()
            .find(|each| state_dict_of(facts, each).is_some())
            .unwrap_or(value),
        _ => value,
    }
}

/// Bound in a loop that trains, under a condition, and read only after the loop.
fn is_kept_over_steps(facts: &Facts<'_>, unit: UnitId, assign: &Assign<'_>, path: &str) -> bool {
    let mut outermost: Option<BlockId> = None;
    for (id, kind) in facts.structure.enclosing(assign.place.block) {
        if !kind.is_loop() || !trains(facts, id) {
            continue;
        }
        // Begun anew in each round of a loop further out, such as one over folds.
        let begins = outermost.is_some_and(|inner| {
            facts.assigns_in_unit(unit).any(|other| {
                facts.targets(other.target, path)
                    && facts.structure.is_inside(other.place.block, id)
                    && !facts.structure.is_inside(other.place.block, inner)
            })
        });
        if begins {
            break;
        }
        outermost = Some(id);
    }
    let Some(steps) = outermost else {
        return false;
    };
    let conditional = facts
        .structure
        .conditions(assign.place.block, steps)
        .iter()
        .any(|(test, _)| compares_a_metric(facts, assign.place.block, test));
    // Moving the model creates new weight tensors and leaves these alone.
    let moved = facts.calls_inside(steps).any(|call| {
        matches!(facts.method(call.node), Some((receiver, "cpu" | "cuda" | "to"))
            if facts.value(receiver).is_module())
    });
    // An early stop right after it: no later step changes it.
    let stops = facts.structure.statements.iter().any(|(statement, place)| {
        place.block == assign.place.block
            && place.order > assign.place.order
            && matches!(statement, Stmt::Break(_) | Stmt::Return(_))
    });
    conditional && !moved && !stops && is_used_after(facts, unit, steps, path)
}

/// The best weights that an object (early stopping, a trainer) keeps, for another method or a caller to
/// load or save.
fn is_kept_by_an_object(facts: &Facts<'_>, unit: UnitId, assign: &Assign<'_>) -> bool {
    let Expr::Attribute(target) = assign.target else {
        return false;
    };
    let around = facts.structure.units[unit].block;
    let compares = facts
        .structure
        .conditions(assign.place.block, around)
        .iter()
        .any(|(test, _)| compares_a_metric(facts, assign.place.block, test));
    compares
        && facts.structure.calls.iter().any(|call| {
            facts.structure.unit_of(call.place.block) != unit
                && takes_state(facts, call)
                && call.node.arguments.args.iter().any(|each| {
                    matches!(each, Expr::Attribute(read) if read.attr.as_str() == target.attr.as_str())
                })
        })
}

/// Bound before training and loaded into the same model after it, or in each of its iterations: a
/// copy of the initial weights was intended.
fn is_restored(
    facts: &Facts<'_>,
    unit: UnitId,
    assign: &Assign<'_>,
    model: &Expr,
    path: &str,
) -> bool {
    let bound_once = facts
        .assigns_in_unit(unit)
        .filter(|other| facts.targets(other.target, path))
        .count()
        == 1;
    if !bound_once {
        return false;
    }
    // Bound in every round, it has to be restored in the same one.
    let around = facts.structure.loop_around(assign.place.block);
    // `own[name] = value` modifies it.
    let changed = facts.assigns_in_unit(unit).any(|other| {
        matches!(other.target, Expr::Subscript(part) if facts.path(&part.value) == Some(path))
    }) || facts.calls_in_unit(unit).any(|call| {
        matches!(facts.method(call.node), Some((receiver, "update" | "pop"))
            if facts.path(receiver) == Some(path))
    });
    let trained = |from: usize, until: usize| {
        facts.calls_in_unit(unit).any(|call| {
            from < call.place.order && call.place.order < until && facts.runs_backward(call.node)
        })
    };
    !changed
        && facts.calls_in_unit(unit).any(|call| {
            let restores = matches!(facts.method(call.node), Some((receiver, "load_state_dict"))
                if facts.path(receiver).is_some() && facts.path(receiver) == facts.path(model))
                && call
                    .node
                    .arguments
                    .args
                    .first()
                    .is_some_and(|each| facts.path(each) == Some(path));
            let in_rounds = facts
                .structure
                .loop_around(call.place.block)
                .is_some_and(|rounds| around.is_none() && trains(facts, rounds));
            restores
                && around.is_none_or(|rounds| facts.structure.is_inside(call.place.block, rounds))
                && call.place.order > assign.place.order
                && (trained(assign.place.order, call.place.order) || in_rounds)
        })
}

/// Whether a condition asks which of two values is larger, and neither counts the iterations: the
/// state that is kept there is the best one, not the last.
fn compares_a_metric<'a>(facts: &Facts<'a>, block: BlockId, test: &'a Expr) -> bool {
    let unit = facts.structure.unit_of(block);
    // `better = loss < best` before `if better`.
    let test = match facts.path(test) {
        Some(path) => facts.last_value(unit, path, test).unwrap_or(test),
        None => test,
    };
    let mut compares = false;
    each_expression(test, &mut |part| {
        if let Expr::Compare(comparison) = part
            && comparison
                .ops
                .iter()
                .any(|op| matches!(op, CmpOp::Lt | CmpOp::Gt | CmpOp::LtE | CmpOp::GtE))
        {
            let counts = facts.structure.enclosing(block).any(|(_, kind)| {
                let BlockKind::For(node) = kind else {
                    return false;
                };
                let mut named = false;
                facts.each_target(&node.target, &mut |path| {
                    named |= facts.mentions(part, path);
                });
                named
            });
            compares |= !counts;
        }
    });
    compares
}

/// Whether a loop steps an optimizer, itself or in functions in the file.
fn trains(facts: &Facts<'_>, rounds: BlockId) -> bool {
    facts
        .calls_inside(rounds)
        .any(|call| facts.runs_backward(call.node))
}

/// `model.load_state_dict(...)` and `torch.save(...)`.
fn takes_state(facts: &Facts<'_>, call: &Call<'_>) -> bool {
    matches!(facts.method(call.node), Some((_, "load_state_dict")))
        || facts.callee(call.node).as_deref() == Some("torch.save")
}

/// Whether a path is loaded, saved or returned after a loop.
fn is_used_after(facts: &Facts<'_>, unit: UnitId, steps: BlockId, path: &str) -> bool {
    let behind = |block: BlockId| !facts.structure.is_inside(block, steps);
    let used = facts.calls_in_unit(unit).any(|call| {
        behind(call.place.block)
            && takes_state(facts, call)
            && call
                .node
                .arguments
                .args
                .iter()
                .any(|each| facts.mentions(each, path))
    });
    used || facts.structure.statements.iter().any(|(statement, place)| {
        facts.structure.unit_of(place.block) == unit
            && behind(place.block)
            && matches!(statement, Stmt::Return(node)
                if node.value.as_deref().is_some_and(|value: &Expr| facts.mentions(value, path)))
    })
}

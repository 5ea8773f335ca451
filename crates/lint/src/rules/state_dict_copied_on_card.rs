//! A second copy of all weights on the card, only to keep the best ones.

use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::structure::{Assign, UnitId};
use crate::facts::value::Kind;
use crate::finding::{Edit, Fix, Severity};
use crate::python::{Expr, ast, span};

pub static RULE: Rule = Rule {
    name: "state-dict-copied-on-card",
    family: Family::Placement,
    severity: Severity::Warning,
    summary: "a state dict is copied on the card only to be stored",
    docs: "\
## What it does
Finds a deep copy (or clones) of the state dict of a model on the card that is later only loaded,
saved or returned, or that a list collects in a loop.

## Why it costs memory
The copy is made where the weights are: on the card. It stays there while training continues, and
while a new best copy is made, the old one still exists: up to two more sets of weights.

## Example
```python
best = copy.deepcopy(model.state_dict())
for inputs, targets in loader:
    loss = criterion(model(inputs.to(device)), targets.to(device))
    loss.backward()
    optimizer.step()
model.load_state_dict(best)
```

## Use instead
```python
best = {name: value.cpu().clone() for name, value in model.state_dict().items()}
for inputs, targets in loader:
    loss = criterion(model(inputs.to(device)), targets.to(device))
    loss.backward()
    optimizer.step()
model.load_state_dict(best)
```

## When it is fine
When the model is small compared with its activations. A copy that is used in computations on the
card (a moving average) is not reported.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    check_collected(facts, report);
    for assign in &facts.structure.assigns {
        let found = records(assign.value)
            .iter()
            .find_map(|value| Some((*value, copied_state(facts, value)?)));
        let Some((value, copied)) = found else {
            continue;
        };
        let Some(path) = facts.path(assign.target) else {
            continue;
        };
        let unit = facts.structure.unit_of(assign.place.block);
        if !is_on_card(facts, unit, copied.model)
            || !is_only_put_away(facts, unit, path)
            || is_of_every_round(facts, assign)
        {
            continue;
        }
        let model = facts.text(copied.model);
        let fix = copied.whole.then(|| {
            Fix::unsafe_(
                "Copy to the CPU",
                vec![Edit::replace(
                    span(value),
                    format!(
                        "{{name: value.cpu().clone() for name, value in {model}.state_dict().items()}}"
                    ),
                )],
            )
        });
        report.add_with(
            span(value),
            format!("`{path}` is a second copy of the weights of `{model}` on the card"),
            "copy it to the CPU: `{name: value.cpu().clone() for name, value in ...}`",
            fix,
        );
    }
}

/// What is bound: a value, or those of `(score, weights)` and of `{"epoch": epoch, "weights": weights}`.
fn records(value: &Expr) -> Vec<&Expr> {
    match value {
        Expr::Tuple(tuple) => tuple.elts.iter().collect(),
        Expr::List(list) => list.elts.iter().collect(),
        Expr::Dict(dict) => dict.items.iter().map(|item| &item.value).collect(),
        _ => vec![value],
    }
}

/// Whether a model is on the card, as the file shows, or was moved there by a statement of its own.
fn is_on_card<'a>(facts: &Facts<'a>, unit: UnitId, model: &'a Expr) -> bool {
    facts.module_is_on_card(unit, model)
        || facts
            .path(model)
            .is_some_and(|path| facts.is_moved_in_place(unit, path))
}

/// `snapshots.append(copy.deepcopy(model.state_dict()))` in a loop: one copy more in every round.
fn check_collected(facts: &Facts<'_>, report: &mut Report<'_>) {
    for kept in facts.kept() {
        let unit = facts.structure.unit_of(kept.place.block);
        let is_repeated = facts
            .structure
            .loop_around(kept.place.block)
            .is_some_and(|rounds| facts.outlives(rounds, kept.container));
        if let Some(copied) = copied_state(facts, kept.value)
            && is_repeated
            && is_on_card(facts, unit, copied.model)
        {
            report.add(
                span(kept.value),
                format!(
                    "`{}` collects copies of the weights of `{}` on the card",
                    kept.container,
                    facts.text(copied.model)
                ),
                "copy them to the CPU: `{name: value.cpu() for name, value in ...}`",
            );
        }
    }
}

struct Copied<'a> {
    model: &'a Expr,
    /// Whether it is a plain deep copy, which a fix can replace.
    whole: bool,
}

/// The model of `copy.deepcopy(model.state_dict())` and of
/// `{k: v.clone() for k, v in model.state_dict().items()}`.
fn copied_state<'a>(facts: &Facts<'a>, value: &'a Expr) -> Option<Copied<'a>> {
    match value {
        Expr::Call(call)
            if facts
                .callee(call)
                .is_some_and(|name| name == "copy.deepcopy") =>
        {
            let model = state_dict_of(facts, call.arguments.args.first()?)?;
            Some(Copied { model, whole: true })
        }
        Expr::DictComp(ast::ExprDictComp {
            value, generators, ..
        }) => {
            let [generator] = &**generators else {
                return None;
            };
            let Expr::Call(items) = &generator.iter else {
                return None;
            };
            let Some((state, "items")) = facts.method(items) else {
                return None;
            };
            let model = state_dict_of(facts, state)?;
            let mut clones = false;
            let mut moves = false;
            crate::facts::each_expression(value, &mut |part| {
                if let Expr::Call(call) = part
                    && let Expr::Attribute(function) = &*call.func
                {
                    clones |= function.attr.as_str() == "clone";
                    moves |= matches!(function.attr.as_str(), "cpu" | "to" | "numpy");
                }
            });
            (clones && !moves).then_some(Copied {
                model,
                whole: false,
            })
        }
        _ => None,
    }
}

/// The model of `model.state_dict()`.
pub(super) fn state_dict_of<'a>(facts: &Facts<'a>, expression: &'a Expr) -> Option<&'a Expr> {
    let Expr::Call(call) = expression else {
        return None;
    };
    match facts.method(call) {
        Some((model, "state_dict"))
            if facts.value(model).is_module() || facts.value(model).kind == Kind::Unknown =>
        {
            Some(model)
        }
        _ => None,
    }
}

/// Whether the copy is made in every iteration of a training loop, to be restored at once as in
/// meta-learning, where a copy on the CPU would be slow.
fn is_of_every_round(facts: &Facts<'_>, assign: &Assign<'_>) -> bool {
    facts
        .structure
        .loop_around(assign.place.block)
        .is_some_and(|rounds| {
            facts
                .structure
                .conditions(assign.place.block, rounds)
                .is_empty()
                && facts
                    .calls_inside(rounds)
                    .any(|call| facts.runs_backward(call.node))
        })
}

/// Whether a path is only given to `load_state_dict` and `torch.save`, or returned.
fn is_only_put_away(facts: &Facts<'_>, unit: UnitId, path: &str) -> bool {
    facts.units_that_see(unit, path).into_iter().all(|unit| {
        let passes_on = facts
            .assigns_in_unit(unit)
            .any(|assign| facts.mentions(assign.value, path));
        let calculates = facts.calls_in_unit(unit).any(|call| {
            let given = call
                .node
                .arguments
                .args
                .iter()
                .any(|each| facts.mentions(each, path));
            let called_on = matches!(&*call.node.func, Expr::Attribute(function)
                if facts.mentions(&function.value, path));
            let puts_away = matches!(facts.method(call.node), Some((_, "load_state_dict")))
                || facts
                    .callee(call.node)
                    .is_some_and(|name| name == "torch.save");
            (given && !puts_away) || called_on
        });
        !passes_on && !calculates
    })
}

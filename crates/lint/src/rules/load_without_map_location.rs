//! `torch.load(path)` brings a checkpoint back to the card it was saved from.

use super::fixes::with_keyword;
use super::{Family, Report, Rule};
use crate::facts::roles::sounds_like_optimizer;
use crate::facts::structure::{BlockKind, Call, UnitId};
use crate::facts::value::Kind;
use crate::facts::{Facts, each_expression};
use crate::finding::{Fix, Severity};
use crate::python::{Expr, ExprCall, span};
use crate::syntax::plain_callee;

pub static RULE: Rule = Rule {
    name: "load-without-map-location",
    family: Family::Placement,
    severity: Severity::Warning,
    summary: "a checkpoint is loaded onto the card it was saved from, next to the model",
    docs: "\
## What it does
Finds `torch.load` without `map_location` whose result goes into a model's `load_state_dict`,
where the model is already on the card or a variable still holds the checkpoint while the model runs.

## Why it costs memory
Tensors that were saved from a card are restored to the same card. `load_state_dict` copies them into
the model, so both exist at the same time; a variable that still holds the checkpoint keeps its copy
of the weights (and of the optimizer state) on the card for the whole run.

## Example
```python
checkpoint = torch.load(\"last.pt\")
model.load_state_dict(checkpoint[\"model\"])
optimizer.load_state_dict(checkpoint[\"optimizer\"])
for inputs, targets in loader:
    criterion(model(inputs.to(device)), targets.to(device)).backward()
    optimizer.step()
```

## Use instead
```python
checkpoint = torch.load(\"last.pt\", map_location=\"cpu\")
model.load_state_dict(checkpoint[\"model\"])
optimizer.load_state_dict(checkpoint[\"optimizer\"])
for inputs, targets in loader:
    criterion(model(inputs.to(device)), targets.to(device)).backward()
    optimizer.step()
```

## When it is fine
When the file was saved from a model on the CPU; a script that moves what it saves to the CPU is not
reported. Neither is a dict that is freed right after it is loaded into a model on the CPU, a whole
model (`model = torch.load(path)`), data, or a checkpoint that may be a published file (`load_url`).
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    let mut uses_card = None;
    for call in &facts.structure.calls {
        if !matches!(&*call.node.func, Expr::Attribute(_) | Expr::Name(_))
            || facts.callee(call.node).as_deref() != Some("torch.load")
        {
            continue;
        }
        let arguments = &call.node.arguments;
        let given = arguments.args.len() > 1
            || arguments.find_keyword("map_location").is_some()
            || arguments.keywords.iter().any(|each| each.arg.is_none())
            || arguments
                .args
                .iter()
                .any(|each| matches!(each, Expr::Starred(_)));
        if given || !*uses_card.get_or_insert_with(|| facts.uses_card() && !saves_from_host(facts))
        {
            continue;
        }
        if reads_a_buffer(facts, call) || is_published(facts, call) {
            continue;
        }
        let Some(message) = cost(facts, call) else {
            continue;
        };
        report.add_with(
            span(call.node),
            message,
            "add `map_location=\"cpu\"`: `load_state_dict` copies every tensor to the right device",
            with_keyword(facts, call.node, "map_location=\"cpu\"")
                .map(|edits| Fix::unsafe_("Add `map_location=\"cpu\"`", edits)),
        );
    }
}

/// What the loaded dict costs, if it certainly costs something.
fn cost(facts: &Facts<'_>, load: &Call<'_>) -> Option<String> {
    let unit = facts.structure.unit_of(load.place.block);
    let bound = facts
        .assigns_in_unit(unit)
        .find(|assign| span(assign.value) == span(load.node))
        .and_then(|assign| Some((facts.path(assign.target)?, assign.place.order)));
    match bound {
        Some((path, order)) => {
            let taken = loads_of(facts, unit, path, order);
            if taken.is_empty() {
                return None;
            }
            let stays = !path.contains(['.', '['])
                && !facts.is_let_go_after(unit, path, order)
                && facts.runs_a_model_after(unit, load.place);
            if stays {
                Some(format!(
                    "`{path}` is loaded onto the card it was saved from and stays there next to the model"
                ))
            } else {
                taken
                    .iter()
                    .any(|model| is_on_card_already(facts, unit, model, order))
                    .then(|| {
                        format!("`{path}` is loaded onto the card it was saved from, next to the model's own weights")
                    })
            }
        }
        None => {
            let outer = facts.calls_in_unit(unit).find(|call| {
                call.node
                    .arguments
                    .args
                    .iter()
                    .any(|each| contains(each, load))
                    && loads_state(facts, call).is_some()
            })?;
            let model = loads_state(facts, outer)?;
            is_on_card_already(facts, unit, model, load.place.order).then(|| {
                "the checkpoint is loaded onto the card it was saved from, next to the model's own weights"
                    .to_owned()
            })
        }
    }
}

/// Whether what is loaded was written to a buffer by the same function.
fn reads_a_buffer<'a>(facts: &Facts<'a>, load: &Call<'a>) -> bool {
    let unit = facts.structure.unit_of(load.place.block);
    load.node.arguments.args.first().is_some_and(|file| {
        let made = facts
            .path(file)
            .and_then(|path| facts.last_value(unit, path, file));
        matches!(made, Some(Expr::Call(call))
            if facts.callee(call).as_deref() == Some("io.BytesIO") && call.arguments.is_empty())
    })
}

/// Whether something of unknown kind is stepped: an optimizer from elsewhere.
fn steps<'a>(facts: &Facts<'a>, call: &Call<'a>, receiver: &'a Expr) -> bool {
    facts.path(receiver).is_some_and(|path| {
        let unit = facts.structure.unit_of(call.place.block);
        facts
            .units_that_see(unit, path)
            .into_iter()
            .any(|unit| facts.usage(unit, path).step)
    })
}

/// Whether a module is part of a model: it loads published weights, and it is unknown where they were
/// saved.
fn is_a_part(facts: &Facts<'_>, module: &Expr) -> bool {
    matches!(module, Expr::Attribute(part)
        if part.attr.as_str() != "module"
            && (facts.value(&part.value).is_module()
                || facts.value(&part.value).kind == Kind::Unknown)
            && !matches!(&*part.value, Expr::Name(name) if name.id.as_str() == "self"))
}

/// Whether the file itself saves tensors from the host: what it loads comes back there.
fn saves_from_host(facts: &Facts<'_>) -> bool {
    let saves = facts.structure.calls.iter().any(|call| {
        facts
            .callee(call.node)
            .is_some_and(|name| name == "torch.save")
    });
    saves
        && facts.structure.calls.iter().any(|call| {
            // `{name: value.cpu() for name, value in model.state_dict().items()}`
            let of_state = facts
                .structure
                .enclosing(call.place.block)
                .any(|(_, kind)| {
                    matches!(kind, BlockKind::Comprehension(comprehension)
                    if reads_state(facts, comprehension))
                });
            if of_state && matches!(facts.method(call.node), Some((_, "cpu"))) {
                return true;
            }
            let mut receiver = match facts.method(call.node) {
                Some((receiver, "cpu")) => receiver,
                Some((receiver, "to")) if goes_to_host(call.node) => receiver,
                _ => return false,
            };
            loop {
                let kind = facts.value(receiver).kind;
                if matches!(kind, Kind::StateDict | Kind::Module(_)) {
                    return true;
                }
                receiver = match receiver {
                    Expr::Subscript(part) => &part.value,
                    Expr::Attribute(part) => &part.value,
                    _ => return false,
                };
            }
        })
}

/// Whether an expression asks a model for its state.
fn reads_state(facts: &Facts<'_>, expression: &Expr) -> bool {
    let mut found = false;
    each_expression(expression, &mut |part| {
        found |= matches!(part, Expr::Call(call)
            if matches!(facts.method(call), Some((_, "state_dict"))));
    });
    found
}

/// Whether another branch loads the same from a published file: then this may be one too, and it is
/// unknown where it was saved.
fn is_published(facts: &Facts<'_>, load: &Call<'_>) -> bool {
    let unit = facts.structure.unit_of(load.place.block);
    let target = facts
        .assigns_in_unit(unit)
        .find(|assign| span(assign.value) == span(load.node))
        .and_then(|assign| facts.path(assign.target));
    is_from_basicsr(facts, unit, target)
        || facts.assigns_in_unit(unit).any(|assign| {
            target.is_some()
                && facts.path(assign.target) == target
                && matches!(assign.value, Expr::Call(call)
                if matches!(&*call.func, Expr::Attribute(function)
                    if matches!(function.attr.as_str(), "load_url" | "load_state_dict_from_url"))
                    || plain_callee(call).is_some_and(|name| {
                        matches!(name, "load_url" | "load_state_dict_from_url")
                    }))
        })
}

/// The keys of BasicSR, which saves from host memory: `checkpoint["params"]`.
fn is_from_basicsr(facts: &Facts<'_>, unit: UnitId, target: Option<&str>) -> bool {
    let mut found = false;
    for (statement, place) in &facts.structure.statements {
        if facts.structure.unit_of(place.block) == unit {
            facts.each_expression_of_statement(statement, &mut |part| {
                found |= matches!(part, Expr::Subscript(part)
                    if target.is_some()
                        && facts.path(&part.value) == target
                        && matches!(&*part.slice, Expr::StringLiteral(key)
                            if matches!(key.value.to_str(), "params" | "params_ema")));
            });
        }
    }
    found
}

/// `.to("cpu")`.
fn goes_to_host(call: &ExprCall) -> bool {
    matches!(call.arguments.args.first(), Some(Expr::StringLiteral(device))
        if device.value.to_str() == "cpu")
}

/// Whether a model is on the card where it is loaded, and not moved there later.
fn is_on_card_already<'a>(facts: &Facts<'a>, unit: UnitId, model: &'a Expr, order: usize) -> bool {
    let moved_later = facts.calls_in_unit(unit).any(|call| {
        call.place.order > order
            && matches!(facts.method(call.node), Some((receiver, "cuda" | "to"))
                if facts.path(receiver).is_some() && facts.path(receiver) == facts.path(model))
    });
    // `net = Tuned(net).cuda()`
    let wrapped_later = facts.assigns_in_unit(unit).any(|assign| {
        assign.place.order > order
            && facts.path(model).is_some_and(|path| {
                facts.path(assign.target) == Some(path)
                    && facts.mentions(assign.value, path)
                    && matches!(assign.value, Expr::Call(call)
                        if matches!(facts.method(call), Some((_, "cuda" | "to"))))
            })
    });
    !moved_later && !wrapped_later && facts.module_is_on_card(unit, model)
}

/// Whether an expression is a call or a part of its result: `torch.load(p)["model"]`.
fn contains(expression: &Expr, load: &Call<'_>) -> bool {
    match expression {
        Expr::Call(_) => span(expression) == span(load.node),
        Expr::Subscript(subscript) => contains(&subscript.value, load),
        _ => false,
    }
}

/// The modules and optimizers that take (a part of) what a path holds.
fn loads_of<'a>(facts: &Facts<'a>, unit: UnitId, path: &'a str, order: usize) -> Vec<&'a Expr> {
    let reached = facts.flows(unit, path);
    facts
        .calls_in_unit(unit)
        .filter(|call| {
            call.place.order > order
                && call
                    .node
                    .arguments
                    .args
                    .iter()
                    .any(|each| reached.iter().any(|path| facts.mentions(each, path)))
        })
        .filter_map(|call| loads_state(facts, call))
        .collect()
}

/// The receiver of `x.load_state_dict(...)`.
fn loads_state<'a>(facts: &Facts<'a>, call: &Call<'a>) -> Option<&'a Expr> {
    match facts.method(call.node) {
        Some((receiver, "load_state_dict"))
            if !matches!(
                facts.value(receiver).kind,
                // An optimizer takes the loaded tensors themselves: no second copy.
                Kind::Scheduler | Kind::Scaler | Kind::Criterion | Kind::Optimizer
            ) && !facts.path(receiver).is_some_and(sounds_like_optimizer)
                && !is_a_part(facts, receiver)
                && !steps(facts, call, receiver) =>
        {
            Some(receiver)
        }
        _ => None,
    }
}

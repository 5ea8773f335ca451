//! A forward hook that stores every output.

use super::fixes::with_method;
use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::structure::{Call, UnitId};
use crate::facts::value::Kind;
use crate::finding::{Fix, Severity};
use crate::python::{Expr, span};

pub static RULE: Rule = Rule {
    name: "activations-kept-by-hook",
    family: Family::KeptGraphs,
    severity: Severity::Error,
    summary: "a forward hook collects activations with their graphs",
    docs: "\
## What it does
Finds a forward hook that appends a module's output (or its inputs) to a list without
`.detach()`, in a file that runs the model in a loop and never empties that list. The same of a backward
hook, or a hook of a tensor, that collects gradients on the card.

## Why it costs memory
The hook runs in every forward pass. Each output it keeps holds its graph, with the activations of
all layers up to that point: memory grows by one forward pass per batch.

## Example
```python
features = []

def keep(module, inputs, output):
    features.append(output)

model.register_forward_hook(keep)
for inputs, targets in loader:
    model(inputs)
```

## Use instead
```python
features = []

def keep(module, inputs, output):
    features.append(output.detach().cpu())

model.register_forward_hook(keep)
for inputs, targets in loader:
    model(inputs)
```

## When it is fine
When the activations go into a loss, or the list is emptied after every batch. A hook that
overwrites one entry in every forward pass keeps a single pass and is not reported.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    let registers = facts
        .structure
        .calls
        .iter()
        .any(|call| registers_hook(&call.node.func));
    if !registers || !runs_a_model_in_a_loop(facts) {
        return;
    }
    let mut reported = Vec::new();
    for call in &facts.structure.calls {
        if !registers_hook(&call.node.func) || !is_run_later(facts, call) {
            continue;
        }
        let Some(hook) = call.node.arguments.args.first() else {
            continue;
        };
        let (hook, bound) = partially_bound(facts, hook);
        let unit = match facts.value(hook).kind {
            Kind::Function(unit) => unit,
            _ => {
                if let Expr::Lambda(lambda) = hook {
                    let names: Vec<&str> = lambda
                        .parameters
                        .iter()
                        .flat_map(|parameters| parameters.iter())
                        .map(|each| each.name().as_str())
                        .collect();
                    let unit = facts.structure.unit_of(call.place.block);
                    let kind = hook_kind(&call.node.func);
                    report_kept(
                        facts,
                        report,
                        unit,
                        (&names, kind),
                        Some(span(hook)),
                        &mut reported,
                    );
                }
                continue;
            }
        };
        let Some(node) = facts.structure.units[unit].node else {
            continue;
        };
        let names: Vec<&str> = node
            .parameters
            .iter()
            .map(|each| each.name().as_str())
            .filter(|name| *name != "self")
            .skip(bound)
            .collect();
        let kind = hook_kind(&call.node.func);
        report_kept(facts, report, unit, (&names, kind), None, &mut reported);
    }
}

fn report_kept(
    facts: &Facts<'_>,
    report: &mut Report<'_>,
    unit: UnitId,
    (parameters, hook): (&[&str], Option<Hook>),
    within: Option<std::ops::Range<usize>>,
    reported: &mut Vec<std::ops::Range<usize>>,
) {
    // The module itself is the first one; a tensor's hook gets the gradient alone.
    let first = usize::from(hook != Some(Hook::Gradient));
    let Some(activations) = parameters.get(first..) else {
        return;
    };
    for kept in facts.kept() {
        let range = span(kept.value);
        let here = facts.structure.unit_of(kept.place.block) == unit
            && within
                .as_ref()
                .is_none_or(|lambda| lambda.start <= range.start && range.end <= lambda.end);
        if !here
            || reported.contains(&range)
            || !is_activation(facts, kept.value, activations)
            || facts.is_ever_emptied(unit, kept.container)
            || facts.ends_in_backward(unit, kept.container)
            || facts.escapes(unit, kept.container)
        {
            continue;
        }
        // Gradients have no graph: on the host, they cost the card nothing.
        let is_moved = matches!(kept.value, Expr::Call(call)
            if matches!(&*call.func, Expr::Attribute(function) if function.attr.as_str() == "cpu"));
        let is_backward = matches!(hook, Some(Hook::Backward | Hook::Gradient));
        if is_backward && is_moved {
            continue;
        }
        reported.push(range);
        let (what, method) = match hook {
            Some(Hook::Backward | Hook::Gradient) => ("backward pass on the card", ".cpu()"),
            _ => ("forward pass, with its graph", ".detach().cpu()"),
        };
        report.add_with(
            span(kept.value),
            format!(
                "`{}` keeps `{}` from every {what}",
                kept.container,
                facts.text(kept.value)
            ),
            format!("add `{method}`, and empty the list after use"),
            Some(Fix::unsafe_(
                format!("Add `{method}`"),
                with_method(facts, kept.value, method),
            )),
        );
    }
}

/// When a hook runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hook {
    Forward,
    Backward,
    /// When the gradient of one tensor is known.
    Gradient,
}

/// The function of `partial(keep, name)`, and how many of its arguments are given.
fn partially_bound<'a>(facts: &Facts<'a>, hook: &'a Expr) -> (&'a Expr, usize) {
    match hook {
        Expr::Call(call) if facts.callee(call).as_deref() == Some("functools.partial") => {
            match &*call.arguments.args {
                [function, bound @ ..] => (function, bound.len()),
                [] => (hook, 0),
            }
        }
        _ => (hook, 0),
    }
}

fn registers_hook(function: &Expr) -> bool {
    hook_kind(function).is_some()
}

fn hook_kind(function: &Expr) -> Option<Hook> {
    let Expr::Attribute(function) = function else {
        return None;
    };
    match function.attr.as_str() {
        "register_forward_hook" | "register_forward_pre_hook" => Some(Hook::Forward),
        "register_full_backward_hook" | "register_backward_hook" => Some(Hook::Backward),
        "register_hook" => Some(Hook::Gradient),
        _ => None,
    }
}

/// Whether a value is a hook's parameter, a part of it, or a tensor of the same size computed from it,
/// with its graph.
fn is_activation(facts: &Facts<'_>, value: &Expr, parameters: &[&str]) -> bool {
    if facts.value(value).graph.is_no() {
        return false;
    }
    let mut next = value;
    loop {
        next = match next {
            Expr::Name(name) => return parameters.contains(&name.id.as_str()),
            Expr::Subscript(subscript) => &subscript.value,
            Expr::Call(call) => match &*call.func {
                Expr::Attribute(function)
                    if matches!(
                        function.attr.as_str(),
                        "clone"
                            | "cpu"
                            | "cuda"
                            | "view"
                            | "reshape"
                            | "squeeze"
                            | "flatten"
                            | "contiguous"
                            | "permute"
                    ) =>
                {
                    &function.value
                }
                _ => return false,
            },
            _ => return false,
        };
    }
}

/// Whether the file runs a model in a loop where gradients are enabled.
fn runs_a_model_in_a_loop(facts: &Facts<'_>) -> bool {
    facts.structure.calls.iter().any(|call| {
        facts.structure.loop_around(call.place.block).is_some()
            && !facts.gradients_at(call.node).is_no()
            && facts.reaches(call.node, &|each| {
                facts.called_module(each).is_some() && !facts.gradients_at(each).is_no()
            })
    })
}

/// Whether a model may run in a loop after a script registers a hook; inside a function this is unknown.
fn is_run_later(facts: &Facts<'_>, register: &Call<'_>) -> bool {
    let runs_in_a_loop = |call: &Call<'_>| {
        facts.called_module(call.node).is_some()
            && facts.structure.loop_around(call.place.block).is_some()
    };
    let unit = facts.structure.unit_of(register.place.block);
    // `handle.remove()` in the same function: only what runs there counts.
    let is_removed = facts.assigns_in_unit(unit).any(|assign| {
        span(assign.value) == span(register.node)
            && facts.calls_in_unit(unit).any(|call| {
                matches!(facts.method(call.node), Some((handle, "remove"))
                    if facts.path(handle).is_some()
                        && facts.path(handle) == facts.path(assign.target))
            })
    });
    if unit != 0 && is_removed {
        return facts.calls_in_unit(unit).any(runs_in_a_loop);
    }
    let around = facts.structure.loop_around(register.place.block);
    unit != 0
        || facts.calls_in_unit(0).any(|call| {
            let is_later = call.place.order > register.place.order
                || around.is_some_and(|rounds| facts.structure.is_inside(call.place.block, rounds));
            is_later
                && (runs_in_a_loop(call)
                    || facts
                        .callee_unit(call.node)
                        .is_some_and(|callee| facts.runs(callee, &runs_in_a_loop)))
        })
}

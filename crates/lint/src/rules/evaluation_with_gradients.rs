//! A model in `eval()` that still records its graph.

use super::fixes::decorated;
use super::{Family, Report, Rule};
use crate::facts::evaluating::Evaluation;
use crate::facts::structure::{BlockKind, Call, UnitId};
use crate::facts::{Facts, torch_names};
use crate::finding::{Fix, Severity};
use crate::python::{Expr, ExprCall, Stmt, span};
use crate::syntax::{given, is_false};

pub static RULE: Rule = Rule {
    name: "evaluation-with-gradients",
    family: Family::Evaluation,
    severity: Severity::Warning,
    summary: "a model in evaluation mode runs with gradients enabled",
    docs: "\
## What it does
Finds a model that runs after `eval()` without `torch.no_grad()` or `torch.inference_mode()`, in code
that computes no gradients, also through a function of the file; and a loop that trains or evaluates, by a
condition, and records gradients in both.

## Why it costs memory
`eval()` only changes how layers such as dropout behave. Autograd still saves the activations of
every layer until the output is freed: evaluation needs as much memory as the forward pass of
training, so the batch cannot be larger.

## Example
```python
model.eval()
for inputs, targets in loader:
    outputs = model(inputs)
    total += (outputs.argmax(1) == targets).sum().item()
```

## Use instead
```python
model.eval()
with torch.no_grad():
    for inputs, targets in loader:
        outputs = model(inputs)
        total += (outputs.argmax(1) == targets).sum().item()
```

## When it is fine
When gradients are needed in evaluation mode: adversarial examples, saliency, optimizing an input.
Not reported: code that differentiates, enables gradients on an input or passes the outputs on with
their graph; a function that the file only calls under `no_grad`; a method that only other files
call; a run with gradients that a condition chooses instead of one without; a model that is frozen or
certainly on the CPU; a single run next to an export; and code with the `volatile=True` of PyTorch before
0.4.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    // Code that reads a graph's nodes needs the graph.
    if !facts.readers_of_attribute("grad_fn").is_empty() || explains(facts) {
        return;
    }
    check_phases(facts, report);
    let mut reported: Vec<(UnitId, usize)> = Vec::new();
    // Calls of models first: what is reported in a function is not reported again where it is called.
    let (direct, others): (Vec<_>, Vec<_>) = facts
        .structure
        .calls
        .iter()
        .partition(|call| facts.called_module(call.node).is_some());
    for call in direct.into_iter().chain(others) {
        if !facts.gradients_at(call.node).is_yes() || !facts.result(call.node).graph.is_yes() {
            continue;
        }
        // The model itself, or a function of the file that runs it and returns what has its graph.
        let run = match facts.called_module(call.node) {
            Some(model) => facts
                .evaluation_at(call)
                .map(|evaluation| (model, evaluation)),
            None => facts.evaluation_inside(call).filter(|_| {
                let callee = facts.callee_unit(call.node);
                !reported.iter().any(|(unit, _)| Some(*unit) == callee)
            }),
        };
        let Some((model, evaluation)) = run else {
            continue;
        };
        let unit = facts.structure.unit_of(call.place.block);
        if reported.contains(&(unit, evaluation.from))
            || facts.wants_gradients(unit, evaluation)
            || facts.hands_on_graph(unit, call)
            || facts.says_volatile(unit)
            // A function may move its batch itself.
            || facts.called_module(call.node).is_some() && is_on_host(facts, call)
            || facts.is_a_unit_test(unit)
            || switches_off_elsewhere(facts, unit)
            || is_a_trial_for_an_export(facts, call)
            || is_a_way_out(facts, call)
            || is_the_other_choice(facts, call, model)
            || facts.is_surely_on_host(unit, model)
            || is_dropped_at_once(facts, call)
            || is_frozen_script(facts, unit, model)
            || is_a_method_nobody_calls(facts, unit)
                && !is_whole_evaluation(facts, call, evaluation)
            || is_handed_on(facts, unit)
        {
            continue;
        }
        reported.push((unit, evaluation.from));
        report.add_with(
            span(call.node),
            format!("`{model}` is in evaluation mode, but autograd records its graph here"),
            "run it under `torch.no_grad()` or `torch.inference_mode()`",
            (evaluation.until == usize::MAX)
                .then(|| decorated(facts, unit, "torch.no_grad()"))
                .flatten()
                .map(|edits| Fix::unsafe_("Add `@torch.no_grad()`", edits)),
        );
    }
}

/// One loop for training and validation, in which gradients are always recorded.
fn check_phases(facts: &Facts<'_>, report: &mut Report<'_>) {
    let mut reported: Vec<UnitId> = Vec::new();
    for call in &facts.structure.calls {
        let unit = facts.structure.unit_of(call.place.block);
        if reported.contains(&unit)
            || !facts.gradients_at(call.node).is_yes()
            || !facts.result(call.node).graph.is_yes()
            || facts.hands_on_graph(unit, call)
            || switches_off_elsewhere(facts, unit)
            || is_on_host(facts, call)
        {
            continue;
        }
        // What does one step may be called without gradients, by a framework as well.
        let goes_over_batches = facts
            .structure
            .loop_around(call.place.block)
            .is_some_and(|rounds| facts.is_step_loop(rounds) || facts.goes_over_inputs(rounds));
        let phases = facts.called_module(call.node).zip(facts.phases_at(call));
        let Some((model, phase)) = phases.filter(|_| goes_over_batches) else {
            continue;
        };
        reported.push(unit);
        let phase = facts.text(phase);
        report.add(
            span(call.node),
            format!("`{model}` is also evaluated here, where `{phase}` does not hold, but autograd records its graph"),
            format!("run it under `torch.set_grad_enabled({phase})`"),
        );
    }
}

/// A caller from another file may use `no_grad`.
fn is_a_method_nobody_calls(facts: &Facts<'_>, unit: UnitId) -> bool {
    facts.structure.units[unit].class.is_some() && facts.callers(unit).next().is_none()
}

/// Whether a unit puts the model into evaluation mode itself, and then goes over a loader: nobody has to
/// prepare that from outside.
fn is_whole_evaluation(facts: &Facts<'_>, call: &Call<'_>, evaluation: Evaluation) -> bool {
    let goes_over_loader = facts
        .structure
        .enclosing(call.place.block)
        .any(|(_, kind)| matches!(kind, BlockKind::For(node) if facts.iterates_loader(&node.iter)));
    evaluation.from > 0 && goes_over_loader
}

/// Whether a function is only passed on (`partial(evaluate, model)`), and may run anywhere.
fn is_handed_on(facts: &Facts<'_>, unit: UnitId) -> bool {
    if unit == 0 || facts.callers(unit).next().is_some() || facts.is_engine_step(unit) {
        return false;
    }
    let name = facts.structure.units[unit].name;
    facts.structure.calls.iter().any(|call| {
        // A web page runs it as it is.
        let is_of_a_page = facts
            .callee(call.node)
            .is_some_and(|name| name.starts_with("gradio."));
        !is_of_a_page
            && given(call.node).any(|each| match each {
                Expr::Name(given) => given.id.as_str() == name,
                Expr::Attribute(given) => given.attr.as_str() == name,
                _ => false,
            })
    })
}

/// A single run whose output nothing uses (to warm up, to calibrate, to count) keeps nothing.
fn is_dropped_at_once(facts: &Facts<'_>, call: &Call<'_>) -> bool {
    let is_dropped = match call.statement {
        // `model(x).shape` at the end of a cell, too.
        Stmt::Expr(node) => is_read_from(&node.value, call.node),
        Stmt::Assign(node) => {
            span(&*node.value) == span(call.node)
                && matches!(&*node.targets, [Expr::Name(name)] if name.id.as_str() == "_")
        }
        _ => false,
    };
    facts.structure.loop_around(call.place.block).is_none() && is_dropped
}

/// Whether an expression is a call, or an attribute, an entry or a method's result of what it gives.
fn is_read_from(expression: &Expr, call: &ExprCall) -> bool {
    if span(expression) == span(call) {
        return true;
    }
    match expression {
        Expr::Attribute(attribute) => is_read_from(&attribute.value, call),
        Expr::Subscript(subscript) => is_read_from(&subscript.value, call),
        Expr::Call(outer) => match &*outer.func {
            Expr::Attribute(method) => is_read_from(&method.value, call),
            _ => false,
        },
        _ => false,
    }
}

/// Whether the model is on the CPU: it was moved there, or gets a tensor created there.
fn is_on_host<'a>(facts: &Facts<'a>, call: &Call<'a>) -> bool {
    let module = match &*call.node.func {
        Expr::Attribute(function) if function.attr.as_str() == "forward" => &*function.value,
        other => other,
    };
    let unit = facts.structure.unit_of(call.place.block);
    let mut given = call.node.arguments.args.iter();
    facts.value(module).card.is_no()
        || gives_numpy(facts, unit, call)
        || given.any(|each| facts.is_made_on_host(unit, each))
}

/// Whether an output becomes an array without being moved, which only works on the CPU.
fn gives_numpy(facts: &Facts<'_>, unit: UnitId, call: &Call<'_>) -> bool {
    let mut outputs = Vec::new();
    for assign in facts.assigns_in_unit(unit) {
        if span(assign.value) == span(call.node) {
            facts.each_target(assign.target, &mut |path| outputs.push(path));
        }
    }
    facts.calls_in_unit(unit).any(|other| {
        let makes_array = || {
            facts
                .callee(other.node)
                .is_some_and(|name| matches!(name.as_str(), "numpy.array" | "numpy.asarray"))
        };
        let mut receiver = match (facts.method(other.node), other.node.arguments.args.first()) {
            (Some((receiver, "numpy")), _) => receiver,
            (_, Some(first)) if makes_array() => first,
            _ => return false,
        };
        loop {
            if facts
                .path(receiver)
                .is_some_and(|path| outputs.contains(&path))
                || span(receiver) == span(call.node)
            {
                return true;
            }
            receiver = match receiver {
                Expr::Attribute(part) => &part.value,
                Expr::Subscript(part) => &part.value,
                Expr::Call(inner) => match (&*inner.func, inner.arguments.args.first()) {
                    // `F.softmax(output, dim=1)`
                    (_, Some(first))
                        if facts
                            .callee(inner)
                            .is_some_and(|name| name.starts_with("torch.")) =>
                    {
                        first
                    }
                    (Expr::Attribute(method), _)
                        if matches!(
                            method.attr.as_str(),
                            "argmax" | "detach" | "sigmoid" | "softmax" | "squeeze" | "view"
                        ) =>
                    {
                        &method.value
                    }
                    _ => return false,
                },
                _ => return false,
            };
        }
    })
}

/// Libraries that differentiate the outputs they get.
fn explains(facts: &Facts<'_>) -> bool {
    ["captum", "torchcam", "pytorch_grad_cam", "zennit"]
        .iter()
        .any(|package| facts.imports.uses(package))
}

/// `torch.set_grad_enabled(False)` in another part of the file may apply here too.
fn switches_off_elsewhere(facts: &Facts<'_>, unit: UnitId) -> bool {
    facts.structure.calls.iter().any(|call| {
        facts.structure.unit_of(call.place.block) != unit
            && matches!(call.statement, Stmt::Expr(node) if span(&*node.value) == span(call.node))
            && facts
                .callee(call.node)
                .is_some_and(|name| torch_names::is_set_grad_enabled(&name))
            && call.node.arguments.args.first().is_some_and(is_false)
    })
}

/// A single run next to the export of a model, to compare both.
fn is_a_trial_for_an_export(facts: &Facts<'_>, call: &Call<'_>) -> bool {
    let unit = facts.structure.unit_of(call.place.block);
    facts.structure.loop_around(call.place.block).is_none()
        && facts.calls_in_unit(unit).any(|other| {
            facts.callee(other.node).is_some_and(|name| {
                [
                    "torch.onnx.",
                    "torch.jit.trace",
                    "torch.jit.script",
                    "torch.export.",
                    "coremltools.",
                ]
                .iter()
                .any(|export| name.starts_with(export))
            })
        })
}

/// A module frozen by TorchScript, or a quantized one, has no parameters that require gradients.
fn is_frozen_script(facts: &Facts<'_>, unit: UnitId, model: &str) -> bool {
    facts
        .units_that_see(unit, model)
        .into_iter()
        .flat_map(|unit| facts.assigns_in_unit(unit))
        .any(|assign| {
            facts.path(assign.target) == Some(model)
                && matches!(assign.value, Expr::Call(call)
                if facts.callee(call).is_some_and(|name| matches!(
                    name.as_str(),
                    "torch.jit.freeze" | "torch.jit.optimize_for_inference"
                ) || name.contains(".quantization.")))
        })
}

/// Whether the same model runs without gradients in the other branch of an `if`: the caller decides.
fn is_the_other_choice(facts: &Facts<'_>, call: &Call<'_>, model: &str) -> bool {
    let unit = facts.structure.unit_of(call.place.block);
    facts.calls_in_unit(unit).any(|other| {
        facts.called_module(other.node) == Some(model)
            && facts.gradients_at(other.node).is_no()
            && facts.are_exclusive(other.place.block, call.place.block)
    })
}

/// Whether a call is in an `except`: it is retried with a graph, because it failed without.
fn is_a_way_out(facts: &Facts<'_>, call: &Call<'_>) -> bool {
    facts
        .structure
        .enclosing(call.place.block)
        .any(|(_, kind)| matches!(kind, BlockKind::Handler(_)))
}

//! A recurrent state that is carried from step to step with the graph of all earlier steps.

use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::structure::{BlockId, BlockKind, UnitId};
use crate::finding::Severity;
use crate::python::{Expr, span};
use crate::syntax::{given, says_true};

pub static RULE: Rule = Rule {
    name: "recurrent-state",
    family: Family::KeptGraphs,
    severity: Severity::Error,
    summary: "a state is carried from step to step with its graph",
    docs: "\
## What it does
Finds a state that a model takes and returns (`output, state = model(inputs, state)`), in a loop that
calls `backward(retain_graph=True)` in every step and never detaches the state; also in a method that
does one step with a state on `self`.

## Why it costs memory
The state's graph reaches back to the first step. With `retain_graph=True` none of it is freed:
memory and the time of `backward()` grow with every step. (Without `retain_graph=True` the second
step fails: \"Trying to backward through the graph a second time\". Detaching the state fixes
both.)

## Example
```python
state = torch.zeros(1, 32, 4, device=device)
for inputs, targets in loader:
    output, state = model(inputs, state)
    loss = criterion(output, targets)
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
```

## Use instead
```python
state = torch.zeros(1, 32, 4, device=device)
for inputs, targets in loader:
    state = state.detach()
    output, state = model(inputs, state)
    loss = criterion(output, targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine
When backpropagation through all steps is intended; then call `backward()` once, after the last one.
A state stored inside the model is not reported.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for assign in &facts.structure.assigns {
        let Expr::Call(call) = assign.value else {
            continue;
        };
        if assign.operator.is_some() || facts.called_module(call).is_none() {
            continue;
        }
        let unit = facts.structure.unit_of(assign.place.block);
        let around = facts.structure.loop_around(assign.place.block);
        let steps = match around {
            Some(steps) => steps,
            // A method that does one step, with a state that the object keeps.
            None if facts.is_one_step(unit) => facts.structure.units[unit].block,
            None => continue,
        };
        let retains = facts.calls_inside(steps).any(|call| {
            facts.is_backward(call.node)
                && says_true(call.node, "retain_graph")
                && facts.structure.loop_around(call.place.block) == around
        });
        if !retains {
            continue;
        }
        let mut carried = None;
        facts.each_target(assign.target, &mut |path| {
            let is_given = given(call).any(|each| facts.mentions(each, path));
            let is_kept = around.is_some()
                || path.starts_with("self.") && !is_detached_elsewhere(facts, unit, path);
            if is_given && is_kept && keeps_graph(facts, steps, path) {
                carried = Some(path);
            }
        });
        if let Some(path) = carried {
            report.add(
                span(assign.statement),
                format!("`{path}` carries the graph of all earlier steps into the next one"),
                format!("detach it once per step: `{path} = {path}.detach()`, and remove `retain_graph=True`"),
            );
        }
    }
}

/// Whether another method of the class cuts an attribute off its graph.
fn is_detached_elsewhere(facts: &Facts<'_>, unit: UnitId, path: &str) -> bool {
    facts
        .units_that_see(unit, path)
        .into_iter()
        .filter(|each| *each != unit && facts.structure.units[*each].name != "__init__")
        .any(|each| {
            facts
                .assigns_in_unit(each)
                .any(|assign| facts.targets(assign.target, path))
                || facts.calls_in_unit(each).any(|call| {
                    matches!(facts.method(call.node), Some((receiver, "detach_"))
                        if facts.mentions(receiver, path))
                })
        })
}

/// Whether everything a loop binds a path to has a graph.
fn keeps_graph<'a>(facts: &Facts<'a>, steps: BlockId, path: &'a str) -> bool {
    let unit = facts.structure.unit_of(steps);
    let mut keeps = true;
    for assign in facts.assigns_in_unit(unit) {
        if facts.structure.is_inside(assign.place.block, steps)
            && facts.targets(assign.target, path)
        {
            let is_model = matches!(assign.value, Expr::Call(call)
                if facts.called_module(call).is_some() && facts.gradients_at(call).is_yes());
            keeps &= is_model;
        }
    }
    // In place, the whole or its parts: `for part in state: part.detach_()`.
    let parts = facts.flows(unit, path);
    let detached = facts.calls_inside(steps).any(|call| {
        matches!(facts.method(call.node), Some((receiver, "detach_"))
            if parts.iter().any(|part| facts.mentions(receiver, part)))
    });
    let is_given = facts
        .structure
        .blocks
        .iter()
        .enumerate()
        .any(|(id, block)| {
            matches!(block.kind, BlockKind::For(node)
            if facts.structure.is_inside(id, steps) && facts.targets(&node.target, path))
        });
    keeps && !detached && !is_given
}

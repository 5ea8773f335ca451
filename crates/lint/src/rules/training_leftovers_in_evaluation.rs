//! The last batch's graph stays alive during evaluation.

use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::structure::{BlockId, Call, UnitId};
use crate::finding::Severity;
use crate::python::{Expr, span};
use crate::syntax::says_true;

pub static RULE: Rule = Rule {
    name: "training-leftovers-in-evaluation",
    family: Family::Evaluation,
    severity: Severity::Note,
    summary: "the graph of the last training step stays on the card during evaluation",
    docs: "\
## What it does
Finds a variable that still holds a model's output, with its full graph, after a training loop (it
was never backpropagated, or only with `retain_graph=True`), while the same function goes on to
evaluate without gradients.

## Why it costs memory
A variable outlives its loop. The graph of the last output keeps the activations of all layers through
the whole evaluation.

## Example
```python
def evaluate():
    with torch.no_grad():
        for inputs, targets in loader:
            print(model(inputs.to(device)).argmax(1))

for epoch in range(10):
    for inputs, targets in loader:
        loss = criterion(model(inputs.to(device)), targets.to(device))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        after = model(inputs.to(device))
        print((after.argmax(1) == targets.to(device)).sum().item())
    evaluate()
```

## Use instead
```python
def evaluate():
    with torch.no_grad():
        for inputs, targets in loader:
            print(model(inputs.to(device)).argmax(1))

for epoch in range(10):
    for inputs, targets in loader:
        loss = criterion(model(inputs.to(device)), targets.to(device))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            after = model(inputs.to(device))
        print((after.argmax(1) == targets.to(device)).sum().item())
    evaluate()
```

## When it is fine
When evaluation needs far less memory than training. After a plain `backward()` the activations are
freed and only the output itself stays, which is not reported. Only outputs that are certainly on the
card are reported, and only evaluation that the file runs right after the loop.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for (steps, block) in facts.structure.blocks.iter().enumerate() {
        if !block.kind.is_loop() {
            continue;
        }
        let trains = facts.calls_inside(steps).any(|call| {
            facts.is_backward(call.node)
                && facts.structure.loop_around(call.place.block) == Some(steps)
        });
        if !trains {
            continue;
        }
        let unit = block.unit;
        let end = last_order(facts, steps);
        let Some(evaluation) = evaluation_after(facts, unit, steps, end) else {
            continue;
        };
        let Some(name) = leftover(facts, unit, steps, evaluation.place.order) else {
            continue;
        };
        report.add(
            span(evaluation.node),
            format!(
                "`{name}` from the last training step keeps its full graph during this evaluation"
            ),
            format!("`del {name}` after the loop, or compute it under `torch.no_grad()`"),
        );
    }
}

/// Whether every `backward()` of a loop retains its graph.
fn retains(facts: &Facts<'_>, steps: BlockId) -> bool {
    facts
        .calls_inside(steps)
        .filter(|call| facts.is_backward(call.node))
        .all(|call| says_true(call.node, "retain_graph"))
}

fn last_order(facts: &Facts<'_>, block: BlockId) -> usize {
    let calls = facts.calls_inside(block).map(|call| call.place.order);
    let statements = facts
        .structure
        .statements
        .iter()
        .filter(|(_, place)| facts.structure.is_inside(place.block, block))
        .map(|(_, place)| place.order);
    calls.chain(statements).max().unwrap_or(0)
}

/// The first evaluation without gradients after a loop, where the loop has certainly run before.
fn evaluation_after<'f, 'a>(
    facts: &'f Facts<'a>,
    unit: UnitId,
    steps: BlockId,
    end: usize,
) -> Option<&'f Call<'a>> {
    let around = facts.structure.blocks[steps].parent?;
    facts
        .calls_in_unit(unit)
        .filter(|call| {
            call.place.order > end && facts.structure.is_inside(call.place.block, around)
        })
        .find(|call| {
            facts.callee_unit(call.node).is_some_and(|callee| {
                callee != unit
                    && facts.called_module(call.node).is_none()
                    && facts.runs(callee, &|inner| {
                        facts.called_module(inner.node).is_some()
                            && facts.gradients_at(inner.node).is_no()
                    })
                    && !facts.runs_backward(call.node)
            })
        })
}

/// An output on the card with a whole graph that a loop binds and nothing frees before evaluation.
fn leftover<'a>(
    facts: &Facts<'a>,
    unit: UnitId,
    steps: BlockId,
    evaluation: usize,
) -> Option<&'a str> {
    facts.assigns_in_unit(unit).find_map(|assign| {
        let path = facts.path(assign.target)?;
        let value = facts.value(assign.value);
        let is_output =
            matches!(assign.value, Expr::Call(call) if facts.called_module(call).is_some());
        let in_loop = facts.structure.is_inside(assign.place.block, steps);
        let kept = is_output
            && in_loop
            && assign.operator.is_none()
            && !path.contains(['.', '['])
            && value.is_tensor()
            && value.graph.is_yes()
            && value.card.is_yes()
            && !value.scalar.is_yes()
            && (retains(facts, steps) || !facts.ends_in_backward(unit, path))
            && !is_bound_again(facts, unit, path, assign.place.order, evaluation)
            && !facts
                .deletions(unit, path)
                .any(|place| (assign.place.order..evaluation).contains(&place.order));
        kept.then_some(path)
    })
}

fn is_bound_again(facts: &Facts<'_>, unit: UnitId, path: &str, from: usize, until: usize) -> bool {
    facts.assigns_in_unit(unit).any(|assign| {
        assign.place.order > from
            && assign.place.order < until
            && facts.targets(assign.target, path)
    })
}

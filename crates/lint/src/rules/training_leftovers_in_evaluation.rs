//! The last batch's outputs are still there while evaluation runs.

use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::structure::{BlockId, BlockKind, Call, UnitId};
use crate::finding::Severity;
use crate::python::{Expr, span};

pub static RULE: Rule = Rule {
    name: "training-leftovers-in-evaluation",
    family: Family::Evaluation,
    severity: Severity::Note,
    summary: "a training step's outputs stay on the card while evaluation runs",
    docs: "\
## What it does
Finds a model's output that a training loop leaves behind in a name, where the same function then
evaluates without gradients while the name still holds it.

## Why it costs memory
A name lives on after its loop. `backward()` has freed the activations, but the last output itself
stays on the card for the whole evaluation, beside the outputs of evaluation: for segmentation
maps or the logits of a language model that is a large tensor.

## Example
```python
def evaluate():
    with torch.no_grad():
        for inputs, targets in loader:
            print(model(inputs.to(device)).argmax(1))

for epoch in range(10):
    for inputs, targets in loader:
        outputs = model(inputs.to(device))
        loss = criterion(outputs, targets.to(device))
        loss.backward()
        optimizer.step()
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
        outputs = model(inputs.to(device))
        loss = criterion(outputs, targets.to(device))
        loss.backward()
        optimizer.step()
    del outputs
    evaluate()
```

## When it is fine
When the outputs are small, or evaluation needs far less than training. Only outputs that are
surely on the card are looked at, and only evaluation that this file runs right after the loop.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for (steps, block) in facts.structure.blocks.iter().enumerate() {
        if !matches!(block.kind, BlockKind::For(_) | BlockKind::While(_)) {
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
        let Some(name) = leftover(facts, unit, steps, end, evaluation.place.order) else {
            continue;
        };
        report.add(
            span(evaluation.node),
            format!("`{name}` of the last training step stays on the card during this evaluation"),
            format!("`del {name}` after the loop, or put the training loop into a function"),
        );
    }
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

/// The first evaluation without gradients behind a loop, where the loop has surely run before.
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
                    && !facts.runs(callee, &|inner| facts.is_backward(inner.node))
            })
        })
}

/// A large output on the card that a loop binds and nothing lets go of before evaluation.
fn leftover<'a>(
    facts: &Facts<'a>,
    unit: UnitId,
    steps: BlockId,
    end: usize,
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
            && facts.usage(unit, path).backward.is_none()
            && !is_bound_again(facts, unit, path, assign.place.order, evaluation)
            && !is_deleted(facts, unit, path, end.min(assign.place.order), evaluation);
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

fn is_deleted(facts: &Facts<'_>, unit: UnitId, path: &str, from: usize, until: usize) -> bool {
    facts.structure.statements.iter().any(|(statement, place)| {
        facts.structure.unit_of(place.block) == unit
            && from < place.order
            && place.order < until
            && matches!(statement, crate::python::Stmt::Delete(node)
                if node.targets.iter().any(|each| facts.targets(each, path)))
    })
}

//! A model's output that nothing uses any more keeps its graph through the training.

use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::structure::{Assign, BlockId};
use crate::facts::value::Kind;
use crate::finding::Severity;
use crate::python::{Expr, span};

pub static RULE: Rule = Rule {
    name: "intermediate-kept-by-name",
    family: Family::NeedlessMemory,
    severity: Severity::Warning,
    summary: "a variable keeps a model's output and its graph alive during training",
    docs: "\
## What it does
Finds a model's output, or a loss of it, that is computed on the card with gradients before the training
loop and not used afterwards: often a smoke test on one batch.

## Why it costs memory
The variable keeps the tensor, and the tensor keeps all activations of its forward pass through the
whole training: the memory of one more batch.

## Example
```python
sample = torch.randn(32, 4, device=device)
output = model(sample)
print(output.shape)
for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
```

## Use instead
```python
sample = torch.randn(32, 4, device=device)
with torch.no_grad():
    output = model(sample)
print(output.shape)
for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
```

## When it is fine
When the batch is tiny. Variables that are used, reassigned or deleted later are not reported.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for assign in &facts.structure.assigns {
        let (Expr::Name(name), Expr::Call(call)) = (assign.target, assign.value) else {
            continue;
        };
        let value = facts.value(assign.value);
        if !value.is_tensor() || !value.graph.is_yes() || value.card.is_no() {
            continue;
        }
        // A loss that is computed from an output keeps what the output would keep.
        let unit = facts.structure.unit_of(assign.place.block);
        let run = match facts.value(&call.func).kind {
            Kind::Module(_) => call,
            _ => match facts.model_behind(unit, assign.value) {
                Some(run) if span(call).contains(&span(run).start) => run,
                _ => continue,
            },
        };
        let is_on_card = value.card.is_yes()
            || facts.result(run).card.is_yes()
            || facts.value(&run.func).card.is_yes();
        if !is_on_card || assign.operator.is_some() {
            continue;
        }
        let path = name.id.as_str();
        if let Some(rounds) = later_training(facts, assign)
            && is_trained(facts, rounds, &run.func)
            && !is_touched_later(facts, assign, path, rounds)
            && !lets_go(facts, assign, path)
        {
            report.add(
                span(assign.statement),
                format!(
                    "`{path}` keeps the activations of its forward pass alive through the training \
                     loop below, which does not use it"
                ),
                "compute it under `torch.no_grad()`, or `del` it before the loop",
            );
        }
    }
}

/// A loop after an assignment, in the same unit and not around it, that backpropagates.
fn later_training(facts: &Facts<'_>, assign: &Assign<'_>) -> Option<BlockId> {
    let unit = facts.structure.unit_of(assign.place.block);
    // A separate branch or loop may not have run.
    if facts.structure.blocks[assign.place.block]
        .kind
        .is_conditional()
    {
        return None;
    }
    let end = span(assign.statement).end;
    facts.calls_in_unit(unit).find_map(|call| {
        let rounds = facts.structure.loop_around(call.place.block)?;
        (facts.is_backward(call.node)
            && span(call.node).start > end
            && !facts.structure.is_inside(assign.place.block, rounds)
            && outermost_is_later(facts, rounds, end))
        .then_some(rounds)
    })
}

/// Whether the loop runs the same model, not a layer that was only tested.
fn is_trained(facts: &Facts<'_>, rounds: BlockId, model: &Expr) -> bool {
    facts.path(model).is_some_and(|path| {
        facts
            .calls_inside(rounds)
            .any(|call| facts.path(&call.node.func) == Some(path))
    })
}

/// Whether the loop begins after a byte.
fn outermost_is_later(facts: &Facts<'_>, rounds: BlockId, end: usize) -> bool {
    facts.structure.blocks[rounds]
        .kind
        .loop_span()
        .is_some_and(|span| span.start > end)
}

/// Whether a name is used, bound or deleted in the loop or after it, or by a function of the
/// file. What is done with it before the loop does not matter.
fn is_touched_later(facts: &Facts<'_>, assign: &Assign<'_>, path: &str, rounds: BlockId) -> bool {
    let Some(start) = facts.structure.blocks[rounds]
        .kind
        .loop_span()
        .map(|span| span.start)
    else {
        return true;
    };
    let unit = facts.structure.unit_of(assign.place.block);
    facts.structure.statements.iter().any(|(statement, place)| {
        let same = facts.structure.unit_of(place.block) == unit;
        // A function may read a name of the file at any time.
        let may = same && span(*statement).end > start || !same && unit == 0;
        may && facts.statement_mentions(statement, path)
    })
}

/// Whether the name gets something else, or is released, or passed on, before the loop.
fn lets_go(facts: &Facts<'_>, assign: &Assign<'_>, path: &str) -> bool {
    let unit = facts.structure.unit_of(assign.place.block);
    facts.deletions(unit, path).next().is_some()
        || facts.assigns_in_unit(unit).any(|other| {
            other.place.order > assign.place.order && facts.targets(other.target, path)
        })
        // Another name for it may live longer, or be backpropagated.
        || facts.reaches_backward(unit, path)
}

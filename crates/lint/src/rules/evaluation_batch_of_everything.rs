//! `DataLoader(val, batch_size=len(val))`: the whole set in one batch.

use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::reads::generators;
use crate::facts::structure::{BlockId, BlockKind, Call, UnitId};
use crate::finding::Severity;
use crate::python::{Expr, span};
use crate::syntax::{holds, plain_callee};

pub static RULE: Rule = Rule {
    name: "evaluation-batch-of-everything",
    family: Family::Evaluation,
    severity: Severity::Warning,
    summary: "a model evaluates a whole dataset in one batch",
    docs: "\
## What it does
Finds a `DataLoader` whose batch size is the length of its dataset, and whose batch goes through a
model that is not trained on it.

## Why it costs memory
The activations of a forward pass grow with the batch size. A single batch needs memory for the whole
dataset, and more whenever the dataset grows; a fixed batch size gives the same result.

## Example
```python
held_out_loader = DataLoader(held_out, batch_size=len(held_out))
with torch.no_grad():
    for inputs, targets in held_out_loader:
        total += (model(inputs).argmax(1) == targets).sum().item()
```

## Use instead
```python
held_out_loader = DataLoader(held_out, batch_size=256)
with torch.no_grad():
    for inputs, targets in held_out_loader:
        total += (model(inputs).argmax(1) == targets).sum().item()
```

## When it is fine
For small datasets. A loader that only reads everything into host memory is not reported, nor is
full-batch training, or a model that is certainly on the CPU.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for call in &facts.structure.calls {
        let arguments = &call.node.arguments;
        let Some(Expr::Call(size)) = arguments.find_argument_value("batch_size", 1) else {
            continue;
        };
        let Some(data) = arguments.find_argument_value("dataset", 0) else {
            continue;
        };
        let is_whole = plain_callee(size) == Some("len")
            && size.arguments.args.first().is_some_and(|each| {
                facts.path(each).is_some() && facts.path(each) == facts.path(data)
            });
        if is_whole && facts.makes_loader(call.node) && runs_through_a_model(facts, call) {
            report.add(
                span(call.node),
                format!(
                    "all of `{}` goes through the model in one batch",
                    facts.text(data)
                ),
                "use a fixed batch size",
            );
        }
    }
}

/// Whether the loader's batches go through a model that is not trained on them.
fn runs_through_a_model(facts: &Facts<'_>, loader: &Call<'_>) -> bool {
    let unit = facts.structure.unit_of(loader.place.block);
    let bound = facts
        .assigns_in_unit(unit)
        .find(|assign| span(assign.value) == span(loader.node))
        .and_then(|assign| facts.path(assign.target));
    let names = |expression: &Expr| match bound {
        Some(path) => facts.mentions(expression, path),
        None => holds(expression, loader.node),
    };
    let units = match bound {
        Some(path) => facts.units_that_see(unit, path),
        None => vec![unit],
    };
    let mut evaluates = false;
    let mut trains = false;
    for unit in units {
        for (id, block) in facts.structure.blocks.iter().enumerate() {
            if let BlockKind::For(node) = block.kind
                && block.unit == unit
                && names(&node.iter)
            {
                evaluates |= runs_a_model(facts, id);
                trains |= trains_in(facts, id);
            }
            // `sum(hits(model(x), y) for x, y in loader)`
            if let BlockKind::Comprehension(comprehension) = block.kind
                && block.unit == unit
                && generators(comprehension)
                    .iter()
                    .any(|each| names(&each.iter))
            {
                evaluates |= facts.calls_inside(id).any(|call| {
                    (facts.called_module(call.node))
                        .is_some_and(|model| !facts.is_surely_on_host(unit, model))
                });
            }
        }
        for call in facts.calls_in_unit(unit) {
            if facts.callee_unit(call.node).is_some() && call.node.arguments.args.iter().any(names)
            {
                evaluates |=
                    facts.reaches(call.node, &|inner| facts.called_module(inner).is_some());
                trains |= facts.runs_backward(call.node);
            }
        }
        evaluates |= takes_one_batch(facts, unit, &names);
    }
    evaluates && !trains
}

fn runs_a_model(facts: &Facts<'_>, block: BlockId) -> bool {
    let unit = facts.structure.unit_of(block);
    facts.calls_inside(block).any(|call| {
        // In a loop further inside it runs on parts of the batch.
        facts.structure.loop_around(call.place.block) == Some(block)
            && facts
                .called_module(call.node)
                .is_some_and(|model| !facts.is_surely_on_host(unit, model))
    })
}

fn trains_in(facts: &Facts<'_>, block: BlockId) -> bool {
    facts
        .calls_inside(block)
        .any(|call| facts.differentiates(call.node))
}

/// `x, y = next(iter(loader))` and then `model(x)` without gradients.
fn takes_one_batch(facts: &Facts<'_>, unit: UnitId, names: &dyn Fn(&Expr) -> bool) -> bool {
    let mut taken = Vec::new();
    for assign in facts.assigns_in_unit(unit) {
        if let Expr::Call(call) = assign.value
            && plain_callee(call) == Some("next")
            && names(assign.value)
        {
            facts.each_target(assign.target, &mut |path| {
                taken.extend(facts.flows(unit, path));
            });
        }
    }
    facts.calls_in_unit(unit).any(|call| {
        facts.called_module(call.node).is_some()
            && facts.gradients_at(call.node).is_no()
            && call
                .node
                .arguments
                .args
                .iter()
                .any(|each| taken.iter().any(|path| facts.mentions(each, path)))
    })
}

//! Batch normalization sees micro-batches, however many make a step.

use super::{Family, Report, Rule};
use crate::facts::structure::{ClassId, UnitId};
use crate::facts::value::Kind;
use crate::facts::{Facts, each_expression};
use crate::finding::Severity;
use crate::python::{Expr, span};

pub static RULE: Rule = Rule {
    name: "batch-norm-while-accumulating",
    family: Family::Accumulation,
    severity: Severity::Note,
    summary: "a model with batch normalization is trained with small accumulated micro-batches",
    docs: "\
## What it does
Finds gradient accumulation over micro-batches of fewer than 16 samples (the batch size of the file's
loader) for a model with batch normalization, from the same file or from torchvision.

## Why it costs memory
Gradient accumulation trains with a large batch in the memory of a small one. Batch normalization
computes mean and variance per micro-batch and updates its running statistics for each: with very
small micro-batches, the result differs from training with the large batch.

## Example
```python
loader = DataLoader(dataset, batch_size=2)
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (inputs, targets) in enumerate(loader):
    loss = criterion(model(inputs), targets) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
```

## Use instead
```python
loader = DataLoader(dataset, batch_size=2)
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(4, 8), nn.Flatten(), nn.Linear(8, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (inputs, targets) in enumerate(loader):
    loss = criterion(model(inputs), targets) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
```

## When it is fine
When the normalization is frozen. Nothing is reported where the file does not show the size of a
micro-batch.
",
    check,
};

/// Batches of at least this many samples give good statistics.
const ENOUGH: i64 = 16;

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    if is_frozen(facts) {
        return;
    }
    for window in facts.windows() {
        // Statistics over many samples are good enough.
        if facts
            .batch_size(window.rounds)
            .is_none_or(|size| size >= ENOUGH)
        {
            continue;
        }
        let model = facts.calls_inside(window.rounds).find(|call| {
            call.place.order < window.backward.place.order
                && matches!(facts.value(&call.node.func).kind, Kind::Module(_))
                && has_batch_norm(facts, &call.node.func)
        });
        if let Some(model) = model {
            report.add(
                span(window.step.node),
                format!(
                    "the batch normalization in `{}` sees one micro-batch at a time, not the \
                     `{}` of a step",
                    facts.text(&*model.node.func),
                    facts.text(window.every.count)
                ),
                "keep micro-batches large enough for statistics, or use `GroupNorm`",
            );
        }
    }
}

/// Whether a called module has batch normalization, by its class or by what is bound to its name.
fn has_batch_norm(facts: &Facts<'_>, called: &Expr) -> bool {
    if let Kind::Module(Some(class)) = facts.value(called).kind {
        return class_has(facts, class, &mut Vec::new());
    }
    let Some(path) = facts.path(called) else {
        return false;
    };
    facts.structure.assigns.iter().any(|assign| {
        facts.path(assign.target) == Some(path)
            && expression_has(facts, assign.value, &mut Vec::new())
    })
}

fn class_has(facts: &Facts<'_>, class: ClassId, seen: &mut Vec<ClassId>) -> bool {
    if seen.contains(&class) {
        return false;
    }
    seen.push(class);
    let units: Vec<UnitId> = facts.structure.classes[class]
        .methods
        .iter()
        .map(|(_, unit)| *unit)
        .collect();
    facts.structure.calls.iter().any(|call| {
        units.contains(&facts.structure.unit_of(call.place.block))
            && call_has(facts, &call.node.func, seen)
    })
}

fn expression_has(facts: &Facts<'_>, expression: &Expr, seen: &mut Vec<ClassId>) -> bool {
    let mut called = Vec::new();
    each_expression(expression, &mut |part| {
        if let Expr::Call(call) = part {
            called.push(&*call.func);
        }
    });
    called.into_iter().any(|each| call_has(facts, each, seen))
}

/// Whether a call creates batch normalization, or a module with it.
fn call_has(facts: &Facts<'_>, called: &Expr, seen: &mut Vec<ClassId>) -> bool {
    if let Some(name) = facts.imports.qualified(called) {
        let last = name.rsplit('.').next().unwrap_or(&name);
        return name.starts_with("torch.nn.") && last.starts_with("BatchNorm")
            || name.starts_with("torchvision.models.")
                && [
                    "resnet",
                    "resnext",
                    "wide_resnet",
                    "densenet",
                    "mobilenet",
                    "efficientnet_b",
                    "regnet",
                    "shufflenet",
                    "mnasnet",
                    "googlenet",
                    "inception",
                ]
                .iter()
                .any(|family| last.starts_with(family))
            || name.starts_with("torchvision.models.segmentation.")
            || name.starts_with("torchvision.models.vgg") && last.ends_with("_bn");
    }
    match facts.value(called).kind {
        Kind::Class(class) => class_has(facts, class, seen),
        _ => false,
    }
}

/// Normalization layers that are put into `eval()`, or synchronized across cards.
fn is_frozen(facts: &Facts<'_>) -> bool {
    facts.structure.calls.iter().any(|call| {
        facts
            .callee(call.node)
            .is_some_and(|name| name.ends_with("convert_sync_batchnorm"))
            || matches!(&*call.node.func, Expr::Name(name) if name.id.as_str() == "isinstance")
                && call.node.arguments.args.get(1).is_some_and(|class| {
                    let mut found = false;
                    each_expression(class, &mut |part| {
                        found |= facts.imports.qualified(part).is_some_and(|name| {
                            name.starts_with("torch.nn.") && name.contains("BatchNorm")
                        });
                    });
                    found
                })
    })
}

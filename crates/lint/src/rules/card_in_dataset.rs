//! Tensors moved to the card inside a `Dataset`.

use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::structure::{ClassId, UnitId};
use crate::facts::value::Kind;
use crate::finding::Severity;
use crate::python::{Expr, ExprCall, Number, span};

pub static RULE: Rule = Rule {
    name: "card-in-dataset",
    family: Family::Placement,
    severity: Severity::Warning,
    summary: "a dataset moves its samples to the card in the loader's workers",
    docs: "\
## What it does
Finds `.cuda()`, `.to(\"cuda\")` and `device=\"cuda\"` in the `__getitem__` (or `__iter__`) of a
`Dataset`, and in a `collate_fn`.

## Why it costs memory
That code runs in the workers of the `DataLoader`. Each worker that touches the card creates its own
CUDA context, some hundred MiB, and prefetched batches wait on the card instead of in host memory.
With forked workers, the default on Linux, it fails outright: \"Cannot re-initialize CUDA in forked
subprocess\".

## Example
```python
class Pictures(Dataset):
    def __init__(self, tensors):
        self.tensors = tensors

    def __len__(self):
        return len(self.tensors)

    def __getitem__(self, index):
        return self.tensors[index].cuda()

batches = DataLoader(Pictures(tensors), batch_size=32, num_workers=4)
```

## Use instead
```python
class Pictures(Dataset):
    def __init__(self, tensors):
        self.tensors = tensors

    def __len__(self):
        return len(self.tensors)

    def __getitem__(self, index):
        return self.tensors[index]

batches = DataLoader(Pictures(tensors), batch_size=32, num_workers=4)
```

## When it is fine
When the loader has no workers. A dataset that the file only passes to loaders without workers is not
reported.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for class in 0..facts.structure.classes.len() {
        if !is_dataset(facts, class) || !may_have_workers(facts, class) {
            continue;
        }
        for name in ["__getitem__", "__iter__"] {
            if let Some(unit) = facts.structure.classes[class].method(name) {
                let what = format!("`{}.{name}`", facts.structure.classes[class].node.name);
                report_moves(facts, report, unit, &what);
            }
        }
    }
    let mut seen = Vec::new();
    for call in &facts.structure.calls {
        if let Some(collate) = call.node.arguments.find_keyword("collate_fn")
            && facts.makes_loader(call.node)
            && workers(call.node) != Workers::None
            && let Some(unit) = run_by(facts, &collate.value)
            && !seen.contains(&unit)
        {
            seen.push(unit);
            let class = facts.structure.units[unit].class;
            let name = class.map_or(facts.structure.units[unit].name, |class| {
                facts.structure.classes[class].node.name.as_str()
            });
            let what = format!("`{name}`");
            report_moves(facts, report, unit, &what);
        }
    }
}

/// The function that a collator is: itself, or the `__call__` of its class.
fn run_by(facts: &Facts<'_>, collate: &Expr) -> Option<UnitId> {
    match facts.value(collate).kind {
        Kind::Function(unit) => Some(unit),
        Kind::Object(class) => facts.structure.classes[class].method("__call__"),
        _ => None,
    }
}

/// Reports what a function that runs in workers moves to the card, itself or through others.
fn report_moves(facts: &Facts<'_>, report: &mut Report<'_>, unit: UnitId, what: &str) {
    for each in facts.units_run_by(unit) {
        for call in facts.calls_in_unit(each) {
            if facts.moves_to_card(call.node) {
                report.add(
                    span(call.node),
                    format!(
                        "{what} runs in the loader's workers and moves tensors to the card there"
                    ),
                    "return CPU tensors, and move the batch to the card in the loop",
                );
            }
        }
    }
}

/// Whether a class is a dataset of PyTorch's, also through a class of the file.
pub(super) fn is_dataset(facts: &Facts<'_>, class: ClassId) -> bool {
    facts.structure.classes[class]
        .node
        .bases()
        .iter()
        .any(|base| {
            if let Expr::Name(name) = base
                && let Some(other) = facts
                    .structure
                    .classes
                    .iter()
                    .position(|other| other.node.name.as_str() == name.id.as_str())
            {
                return other < class && is_dataset(facts, other);
            }
            facts.imports.qualified(base).is_some_and(|name| {
                name.starts_with("torch.utils.data") && name.ends_with("Dataset")
                    || name.starts_with("torchvision.datasets.")
            })
        })
}

#[derive(PartialEq, Eq)]
enum Workers {
    None,
    Some,
}

/// The workers of a loader: none where no number is given.
fn workers(call: &ExprCall) -> Workers {
    match call.arguments.find_argument_value("num_workers", 5) {
        None if call
            .arguments
            .keywords
            .iter()
            .all(|each| each.arg.is_some()) =>
        {
            Workers::None
        }
        Some(Expr::NumberLiteral(number)) if matches!(&number.value, Number::Int(number) if number.as_u64() == Some(0)) => {
            Workers::None
        }
        _ => Workers::Some,
    }
}

/// Whether a loader of this file runs a dataset in workers, or none of this file has it.
fn may_have_workers(facts: &Facts<'_>, class: ClassId) -> bool {
    let mut known = false;
    let mut unsure = false;
    for call in &facts.structure.calls {
        if !facts.makes_loader(call.node) {
            continue;
        }
        match call
            .node
            .arguments
            .find_argument_value("dataset", 0)
            .map(|data| facts.value(data).kind)
        {
            Some(Kind::Object(other)) if other == class => {
                if workers(call.node) == Workers::Some {
                    return true;
                }
                known = true;
            }
            // What is not known may be this dataset, through a subset or a split.
            Some(Kind::Unknown | Kind::Tuple(_) | Kind::Container | Kind::Tensor) => {
                if workers(call.node) == Workers::Some {
                    unsure = true;
                } else {
                    known = true;
                }
            }
            _ => {}
        }
    }
    unsure || !known
}

//! `nn.DataParallel` puts more on the first card than on the others.

use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::finding::Severity;
use crate::python::{Expr, span};

pub static RULE: Rule = Rule {
    name: "data-parallel",
    family: Family::NeedlessMemory,
    severity: Severity::Note,
    summary: "`DataParallel` fills its first card more than the others",
    docs: "\
## What it does
Finds models wrapped in `torch.nn.DataParallel`.

## Why it costs memory
With several cards, the first one holds what it holds alone (the parameters, its share of the
batch), and also the whole input, the gathered outputs of all cards, the loss computed on them, the
summed gradients and the optimizer's state. The batch must fit the first card; the others stay
partly empty.

## Example
```python
model = nn.DataParallel(model)
```

## Use instead
```python
model = nn.parallel.DistributedDataParallel(model)
```

## When it is fine
With one card it does nothing; for a quick run on two it is the least work.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for call in &facts.structure.calls {
        let Some(name) = facts.callee(call.node) else {
            continue;
        };
        if !matches!(
            name.as_str(),
            "torch.nn.DataParallel"
                | "torch.nn.parallel.DataParallel"
                | "torch.nn.parallel.data_parallel.DataParallel"
        ) || call.node.arguments.is_empty()
            || is_for_one_card(facts, call.node)
        {
            continue;
        }
        report.add(
            span(call.node),
            "with several cards, the first one also holds the whole batch, all outputs and the \
             optimizer's state"
                .to_owned(),
            "use `DistributedDataParallel`, one process per card",
        );
    }
}

/// `device_ids=[0]`, or a module that is on the processor on purpose.
fn is_for_one_card(facts: &Facts<'_>, call: &crate::python::ExprCall) -> bool {
    let one = call
        .arguments
        .find_argument_value("device_ids", 1)
        .is_some_and(|devices| {
            matches!(devices, Expr::List(list) if list.elts.len() == 1)
                || matches!(devices, Expr::Tuple(tuple) if tuple.elts.len() == 1)
        });
    one || call
        .arguments
        .args
        .first()
        .is_some_and(|model| facts.value(model).card.is_no())
}

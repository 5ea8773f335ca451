//! `nn.DataParallel` puts more on the first card than on the others.

use super::{Family, Report, Rule};
use crate::facts::structure::{Call, UnitId};
use crate::facts::value::Kind;
use crate::facts::{Facts, each_expression_of};
use crate::finding::Severity;
use crate::python::{Expr, span};
use crate::syntax::holds;

pub static RULE: Rule = Rule {
    name: "data-parallel",
    family: Family::NeedlessMemory,
    severity: Severity::Note,
    summary: "`DataParallel` puts more on its first card than on the others",
    docs: "\
## What it does
Finds models wrapped in `torch.nn.DataParallel` and trained in the same file.

## Why it costs memory
With several cards, the first one holds not only the parameters and its share of the batch, but also
the whole input, the gathered outputs of all cards, the loss, the summed gradients and the optimizer
state. The first card limits the batch size; the others stay partly empty.

## Example
```python
model = nn.DataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for inputs, targets in loader:
    criterion(model(inputs), targets).backward()
    optimizer.step()
```

## Use instead
```python
model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for inputs, targets in loader:
    criterion(model(inputs), targets).backward()
    optimizer.step()
```

## When it is fine
With one card it does nothing; for a quick run on two it is the simplest. Files that also support one
process per card (`DistributedDataParallel`, `torch.distributed`, Horovod, DeepSpeed), or that hide
all cards but one, are not reported.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    // If both are present, the other one is for several cards.
    if knows_distributed(facts) || sees_one_card(facts) || wraps_an_optimizer(facts) {
        return;
    }
    let mut reported: Vec<UnitId> = Vec::new();
    for call in &facts.structure.calls {
        let unit = facts.structure.unit_of(call.place.block);
        if !is_wrapper(facts, call)
            || call.node.arguments.is_empty()
            || reported.contains(&unit)
            || is_for_one_card(facts, call)
            || !is_trained(facts, call)
            || is_left_before_training(facts, call)
        {
            continue;
        }
        reported.push(unit);
        report.add(
            span(call.node),
            "with several cards, the first one also holds the whole batch, all outputs and the \
             optimizer state"
                .to_owned(),
            "use `DistributedDataParallel`, one process per card",
        );
    }
}

fn is_wrapper(facts: &Facts<'_>, call: &Call<'_>) -> bool {
    facts.callee(call.node).is_some_and(|name| {
        matches!(
            name.as_str(),
            "torch.nn.DataParallel"
                | "torch.nn.parallel.DataParallel"
                | "torch.nn.parallel.data_parallel.DataParallel"
        )
    })
}

/// Whether the file wraps an optimizer or a scheduler, too: it ends at the first step with several
/// cards, so it has only ever been run with one.
fn wraps_an_optimizer(facts: &Facts<'_>) -> bool {
    facts.structure.calls.iter().any(|call| {
        is_wrapper(facts, call)
            && call.node.arguments.args.first().is_some_and(|wrapped| {
                matches!(facts.value(wrapped).kind, Kind::Optimizer | Kind::Scheduler)
            })
    })
}

/// Whether the file itself hides all cards but one: `os.environ["CUDA_VISIBLE_DEVICES"] = "0"`.
fn sees_one_card(facts: &Facts<'_>) -> bool {
    facts.structure.assigns.iter().any(|assign| {
        matches!((assign.target, assign.value), (Expr::Subscript(target), Expr::StringLiteral(cards))
            if facts.imports.qualified(&target.value).as_deref() == Some("os.environ")
                && matches!(&*target.slice, Expr::StringLiteral(name)
                    if name.value.to_str() == "CUDA_VISIBLE_DEVICES")
                && !cards.value.to_str().contains(','))
    })
}

/// Whether a branch that wraps the model ends the program without training.
fn is_left_before_training(facts: &Facts<'_>, call: &Call<'_>) -> bool {
    let unit = facts.structure.unit_of(call.place.block);
    let mut leads_on = false;
    let mut is_kept_in = false;
    for other in facts.calls_in_unit(unit) {
        if other.place.order > call.place.order && facts.runs_backward(other.node) {
            let reached = facts.leads_to(call.place, other.place);
            leads_on |= reached;
            is_kept_in |= !reached;
        }
    }
    is_kept_in && !leads_on
}

/// Whether the file supports one process per card: `DistributedDataParallel` of PyTorch or of
/// Apex, Horovod, DeepSpeed.
fn knows_distributed(facts: &Facts<'_>) -> bool {
    let others = ["horovod", "deepspeed", "torch.distributed"];
    if others.iter().any(|package| facts.imports.uses(package)) {
        return true;
    }
    let is_it = |name: &str| {
        let last = name.rsplit('.').next().unwrap_or(name);
        matches!(last, "DistributedDataParallel" | "DDP")
    };
    let mut found = facts.imports.names().any(is_it);
    for statement in facts.tree.body() {
        if found {
            break;
        }
        each_expression_of(statement, &mut |part| {
            found |= matches!(part, Expr::Attribute(attribute) if is_it(attribute.attr.as_str()));
        });
    }
    found
}

/// `device_ids=[0]`, a module on the CPU, or the branch for machines without a card.
fn is_for_one_card(facts: &Facts<'_>, call: &Call<'_>) -> bool {
    let one = call
        .node
        .arguments
        .find_argument_value("device_ids", 1)
        .is_some_and(|devices| {
            matches!(devices, Expr::List(list) if list.elts.len() == 1)
                || matches!(devices, Expr::Tuple(tuple) if tuple.elts.len() == 1)
        });
    let on_processor = call
        .node
        .arguments
        .args
        .first()
        .is_some_and(|model| facts.value(model).card.is_no());
    let unit = facts.structure.unit_of(call.place.block);
    let without_card = facts
        .conditions_of(call, facts.structure.units[unit].block)
        .iter()
        .any(|condition| {
            !condition.holds
                && matches!(condition.test, Expr::Call(test)
                    if facts.callee(test).as_deref() == Some("torch.cuda.is_available"))
        });
    one || on_processor || without_card || facts.is_never_reached(call)
}

/// Whether the wrapped model is trained in this file.
fn is_trained(facts: &Facts<'_>, call: &Call<'_>) -> bool {
    let unit = facts.structure.unit_of(call.place.block);
    facts
        .structure
        .assigns
        .iter()
        .find(|assign| holds(assign.value, call.node))
        .and_then(|assign| facts.path(assign.target))
        .is_some_and(|path| facts.is_trained(unit, path))
        && facts
            .structure
            .calls
            .iter()
            .any(|other| facts.is_backward(other.node) && may_run(facts, other))
}

/// Whether a call's function is called somewhere, or by other files.
fn may_run(facts: &Facts<'_>, call: &Call<'_>) -> bool {
    let unit = facts.structure.unit_of(call.place.block);
    let mut callers = facts.callers(unit).peekable();
    callers.peek().is_none() || callers.any(|caller| !facts.is_never_reached(caller))
}

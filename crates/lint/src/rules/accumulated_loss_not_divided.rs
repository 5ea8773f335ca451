//! A mean loss that is backpropagated `n` times before a step gives `n` times the gradient.

use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::reduction::Reduction;
use crate::facts::structure::{Assign, BlockId, BlockKind, Call, UnitId};
use crate::facts::value::Kind;
use crate::finding::{Edit, Fix, Severity};
use crate::python::{Expr, Operator, span};
use crate::syntax::{last_name, plain_callee, range_count};

pub static RULE: Rule = Rule {
    name: "accumulated-loss-not-divided",
    family: Family::Accumulation,
    severity: Severity::Error,
    summary: "a mean loss is accumulated over micro-batches, but not divided by their number",
    docs: "\
## What it does
Finds a loop that backpropagates every micro-batch, steps once per several, and never divides the
mean loss of a micro-batch by their number.

## Why it costs memory
Gradient accumulation trains with a large batch in the memory of a small one. The gradient of the
large batch is the mean over the micro-batches; without the division it is their sum. The effective
learning rate grows with the window, and splitting a batch to save memory changes the training.

## Example
```python
for i, (inputs, targets) in enumerate(loader):
    loss = criterion(model(inputs), targets)
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
```

## Use instead
```python
for i, (inputs, targets) in enumerate(loader):
    loss = criterion(model(inputs), targets)
    (loss / 4).backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
```

## When it is fine
When the loss is a sum (`reduction=\"sum\"`), or the learning rate was chosen for the sum. Adam is
almost insensitive to the scale; clipping and weight decay are not.
",
    check,
};

const HELP: &str = "divide the loss by the number of micro-batches before `backward()`";

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    let mut windows: Vec<(BlockId, &Call<'_>, &Expr)> = facts
        .windows()
        .iter()
        .map(|window| (window.rounds, window.backward, window.every.count))
        .collect();
    windows.extend(inner_loops(facts));
    if windows.is_empty() || facts.sums_losses() {
        return;
    }
    for (rounds, backward, count) in windows {
        let Some(loss) = facts.goes_back_unscaled_from(backward.node) else {
            continue;
        };
        if facts.reduction(rounds, loss) != Reduction::Mean
            || is_divided_elsewhere(facts, facts.structure.unit_of(rounds), count)
            || changes_gradients(facts, rounds)
        {
            continue;
        }
        let name = facts.text(loss);
        report.add_with(
            span(backward.node),
            format!(
                "the gradients of `{}` micro-batches are summed, but `{name}` is not divided by their \
                 number",
                facts.text(count)
            ),
            HELP,
            Some(Fix::unsafe_(
                format!("Divide by `{}`", facts.text(count)),
                divided(facts, loss, count),
            )),
        );
    }
}

fn divided(facts: &Facts<'_>, loss: &Expr, count: &Expr) -> Vec<Edit> {
    let range = span(loss);
    let count = match count {
        Expr::Name(_) | Expr::Attribute(_) | Expr::NumberLiteral(_) | Expr::Call(_) => {
            facts.text(count).to_owned()
        }
        _ => format!("({})", facts.text(count)),
    };
    match loss {
        Expr::Name(_) | Expr::Attribute(_) | Expr::Subscript(_) | Expr::Call(_) => vec![
            Edit::insert(range.start, "("),
            Edit::insert(range.end, format!(" / {count})")),
        ],
        _ => vec![
            Edit::insert(range.start, "(("),
            Edit::insert(range.end, format!(") / {count})")),
        ],
    }
}

/// `for _ in range(n):` over micro-batches taken one by one, with the step right after it.
fn inner_loops<'a, 'f>(facts: &'f Facts<'a>) -> Vec<(BlockId, &'f Call<'a>, &'a Expr)> {
    let mut found = Vec::new();
    for (rounds, block) in facts.structure.blocks.iter().enumerate() {
        let BlockKind::For(node) = block.kind else {
            continue;
        };
        let (Some(count), Some(outer)) = (range_count(&node.iter), block.parent) else {
            continue;
        };
        if facts.constant(count) == Some(1) {
            continue;
        }
        let mut backward = None;
        let mut takes_data = false;
        let mut steps_inside = false;
        for call in facts.calls_inside(rounds) {
            if facts.is_backward(call.node) {
                backward = backward.or(Some(call));
            }
            takes_data |= plain_callee(call.node) == Some("next");
            steps_inside |= facts.is_optimizer_step(call);
        }
        let end = span(node).end;
        let steps_behind = facts
            .calls_inside(outer)
            .any(|call| span(call.node).start > end && facts.is_optimizer_step(call));
        if let (Some(backward), true, false, true) =
            (backward, takes_data, steps_inside, steps_behind)
        {
            found.push((rounds, backward, count));
        }
    }
    found
}

/// A division by the window elsewhere in the file: in a helper, in a learning rate. The number of steps
/// per epoch does not count.
fn is_divided_elsewhere(facts: &Facts<'_>, unit: UnitId, count: &Expr) -> bool {
    let last = |expression: &Expr| facts.path(expression).map(last_name);
    let Some(count) = last(count) else {
        return false;
    };
    let mut found = false;
    let mut look = |expression: &Expr| {
        crate::facts::each_expression(expression, &mut |part| {
            if let Expr::BinOp(operation) = part
                && operation.op == Operator::Div
                && last(&operation.right) == Some(count)
            {
                found |= facts.value(&operation.left).kind != Kind::Number;
            }
        });
    };
    for assign in &facts.structure.assigns {
        look(assign.value);
    }
    for call in &facts.structure.calls {
        look(&call.node.func);
        for argument in call.node.arguments.args.iter() {
            look(argument);
        }
    }
    found
        || facts.structure.assigns.iter().any(|assign| {
            assign.operator == Some(Operator::Div)
                && last(assign.value) == Some(count)
                && may_be_loss(facts, assign, unit)
        })
}

/// Whether a value divided in place can be the loss: in the unit of the window, a tensor or something
/// that is backpropagated.
fn may_be_loss(facts: &Facts<'_>, assign: &Assign<'_>, unit: UnitId) -> bool {
    let value = facts.value(assign.target);
    if facts.structure.unit_of(assign.place.block) != unit {
        return value.kind != Kind::Number;
    }
    value.is_tensor()
        || facts
            .path(assign.target)
            .is_some_and(|path| facts.reaches_backward(unit, path))
}

/// A division of the gradients themselves: `p.grad /= n`.
fn changes_gradients(facts: &Facts<'_>, rounds: BlockId) -> bool {
    let unit = facts.structure.unit_of(rounds);
    let is_gradient = |expression: &Expr| {
        let mut found = false;
        crate::facts::each_expression(expression, &mut |part| {
            found |=
                matches!(part, Expr::Attribute(attribute) if attribute.attr.as_str() == "grad");
        });
        found
    };
    facts
        .assigns_in_unit(unit)
        .any(|assign| is_gradient(assign.target))
        || facts.calls_in_unit(unit).any(|call| {
            matches!(&*call.node.func, Expr::Attribute(function)
                if matches!(function.attr.as_str(), "div_" | "mul_" | "copy_")
                    && is_gradient(&function.value))
        })
}

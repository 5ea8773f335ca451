//! Logits over a large vocabulary, copied to full precision.

use super::{Family, Report, Rule};
use crate::facts::structure::{ClassId, UnitId};
use crate::facts::usage::class_of;
use crate::facts::value::Kind;
use crate::facts::{Facts, each_expression, torch_names};
use crate::finding::Severity;
use crate::python::{Expr, ExprCall, UnaryOp, span};
use crate::syntax::given;

pub static RULE: Rule = Rule {
    name: "full-precision-logits",
    family: Family::NeedlessMemory,
    severity: Severity::Note,
    summary: "logits over a large vocabulary are converted to float32 all at once",
    docs: "\
## What it does
Finds `.float()` (or `.to(torch.float32)`) on the output of a linear layer with 32,000 columns or
more, where the file shows how many there are.

## Why it costs memory
Such logits are often the largest tensor of the step. A float32 copy is twice as large as the 16-bit
original, and the loss allocates its softmax and gradient at the same size: for 8,192 tokens and
50,257 words the peak was 5.06 GB instead of 2.59 GB.

## Example
```python
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(768, 50257, bias=False)

    def forward(self, hidden, targets):
        logits = self.project(hidden).float()
        return F.cross_entropy(logits.view(-1, 50257), targets.view(-1))
```

## Use instead
```python
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(768, 50257, bias=False)

    def forward(self, hidden, targets):
        logits = self.project(hidden)
        return F.cross_entropy(logits.view(-1, 50257), targets.view(-1))
```

## When it is fine
When there are few tokens per step, or the model runs in float32 anyway: then nothing is copied. Files
that use autocast (whose loss runs in float32 itself) or `torch.compile` are not reported. The loss
can also be computed in chunks of tokens, each in full precision.
",
    check,
};

/// From here on logits outweigh most activations.
const LARGE: i64 = 32_000;

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    let heads = heads(facts);
    if heads.is_empty() || widens_anyway(facts) {
        return;
    }
    for call in &facts.structure.calls {
        let Some((receiver, method)) = facts.method(call.node) else {
            continue;
        };
        let widens = match method {
            "float" => call.node.arguments.is_empty(),
            "to" | "type" => is_single_precision(facts, call.node),
            _ => false,
        };
        if !widens || facts.gradients_at(call.node).is_no() {
            continue;
        }
        let unit = facts.structure.unit_of(call.place.block);
        let class = class_of(&facts.structure, unit);
        let made_by = made_by(facts, unit, receiver, 0);
        let head = heads
            .iter()
            .find(|(owner, path, _)| *owner == class && made_by.as_deref() == Some(path.as_str()));
        if let Some((_, path, columns)) = head {
            report.add(
                span(call.node),
                format!(
                    "the {columns} columns of `{path}` are copied to float32 for all tokens at once"
                ),
                "pass them to the loss as they are, or compute the loss in chunks of tokens",
            );
        }
    }
}

/// Under autocast the loss runs in float32 anyway, and a compiler fuses both into one kernel.
fn widens_anyway(facts: &Facts<'_>) -> bool {
    facts.structure.calls.iter().any(|call| {
        facts.callee(call.node).is_some_and(|name| {
            name == "torch.compile" || name.starts_with("torch.") && name.ends_with("autocast")
        })
    })
}

/// The linear layers with many columns: class, path, columns.
fn heads(facts: &Facts<'_>) -> Vec<(Option<ClassId>, String, i64)> {
    let mut heads = Vec::new();
    for assign in &facts.structure.assigns {
        let (Some(path), Expr::Call(call)) = (facts.path(assign.target), assign.value) else {
            continue;
        };
        let unit = facts.structure.unit_of(assign.place.block);
        let is_linear = facts
            .callee(call)
            .is_some_and(|name| name == "torch.nn.Linear");
        let columns = call
            .arguments
            .find_argument_value("out_features", 1)
            .and_then(|columns| number(facts, unit, columns));
        if let (true, Some(columns)) = (is_linear, columns)
            && columns >= LARGE
        {
            heads.push((class_of(&facts.structure, unit), path.to_owned(), columns));
        }
    }
    heads
}

/// A number in the file: a constant, a parameter's default, or an argument of the call that creates the
/// object.
fn number(facts: &Facts<'_>, unit: UnitId, expression: &Expr) -> Option<i64> {
    if let Some(number) = facts.constant(expression) {
        return Some(number);
    }
    let name = facts.path(expression)?;
    let node = facts.structure.units[unit].node?;
    let index = node
        .parameters
        .iter()
        .position(|parameter| parameter.name().as_str() == name)?;
    let class = facts.structure.units[unit].class?;
    let mut given = facts.structure.calls.iter().filter_map(|call| {
        (facts.value(&call.node.func).kind == Kind::Class(class)).then(|| {
            call.node
                .arguments
                .find_argument_value(name, index.checked_sub(1)?)
        })?
    });
    match given.next() {
        Some(value) => given
            .next()
            .is_none()
            .then(|| facts.constant(value))
            .flatten(),
        None => node
            .parameters
            .iter()
            .nth(index)
            .and_then(|parameter| parameter.default())
            .and_then(|default| facts.constant(default)),
    }
}

/// The path of the module whose output an expression is, through names and views.
fn made_by(facts: &Facts<'_>, unit: usize, expression: &Expr, depth: usize) -> Option<String> {
    if depth > 4 {
        return None;
    }
    match expression {
        Expr::Call(call) => match facts.method(call) {
            Some((receiver, "view" | "reshape" | "contiguous" | "flatten" | "transpose")) => {
                made_by(facts, unit, receiver, depth + 1)
            }
            // With one token per text, few rows go through the layer.
            _ if call.arguments.args.first().is_some_and(takes_last) => None,
            _ => facts.path(&call.func).map(str::to_owned),
        },
        Expr::Subscript(subscript) => made_by(facts, unit, &subscript.value, depth + 1),
        _ => {
            let path = facts.path(expression)?;
            let before = span(expression).start;
            facts
                .assigns_in_unit(unit)
                .filter(|assign| {
                    facts.path(assign.target) == Some(path)
                        && span(assign.statement).end <= before
                        && !facts.mentions(assign.value, path)
                })
                .last()
                .and_then(|assign| made_by(facts, unit, assign.value, depth + 1))
        }
    }
}

fn is_single_precision(facts: &Facts<'_>, call: &ExprCall) -> bool {
    let mut found = false;
    let mut look = |expression: &Expr| {
        each_expression(expression, &mut |part| {
            found |= facts
                .imports
                .qualified(part)
                .is_some_and(|name| torch_names::is_single_precision(&name));
        });
    };
    given(call).for_each(&mut look);
    found
}

/// `hidden[:, -1]`, `hidden[:, [-1], :]`, `hidden[:, -1:]`.
fn takes_last(input: &Expr) -> bool {
    let Expr::Subscript(subscript) = input else {
        return false;
    };
    let mut found = false;
    each_expression(&subscript.slice, &mut |part| {
        found |= matches!(part, Expr::UnaryOp(minus) if minus.op == UnaryOp::USub);
    });
    found
}

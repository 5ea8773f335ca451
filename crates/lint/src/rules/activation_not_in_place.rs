//! The input of an activation that a variable keeps alive needlessly.

use super::fixes::with_keyword;
use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::structure::{Assign, UnitId};
use crate::facts::usage::class_of;
use crate::finding::{Fix, Severity};
use crate::python::{Expr, ExprCall, Stmt, span};

pub static RULE: Rule = Rule {
    name: "activation-not-in-place",
    family: Family::NeedlessMemory,
    severity: Severity::Note,
    summary: "a variable keeps the input of an activation that could work in place",
    docs: "\
## What it does
Finds, in a `forward`, the output of a convolution, linear layer or batch normalization that has its
own variable, goes into one activation that could work in place, and is not used again.

## Why it costs memory
The variable keeps the layer's output until `forward` returns, next to the activation's own output,
which the backward pass needs. Where the variable is reused at once
(`x = self.conv(x); x = F.relu(x)`), the output is freed anyway: working in place saves nothing at
the peak, and nothing is reported.

## Example
```python
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 64, 3)
        self.second = nn.Conv2d(64, 64, 3)

    def forward(self, images):
        features = self.first(images)
        active = F.relu(features)
        return self.second(active)
```

## Use instead
```python
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 64, 3)
        self.second = nn.Conv2d(64, 64, 3)

    def forward(self, images):
        features = self.first(images)
        active = F.relu(features, inplace=True)
        return self.second(active)
```

## When it is fine
When a hook or a caller reads the layer's output. This rule is off unless selected.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for assign in &facts.structure.assigns {
        let unit = facts.structure.unit_of(assign.place.block);
        if facts.structure.units[unit].name != "forward" {
            continue;
        }
        let (Some(output), Expr::Call(activation)) = (facts.path(assign.target), assign.value)
        else {
            continue;
        };
        let Some(input @ Expr::Name(name)) = activation.arguments.args.first() else {
            continue;
        };
        let path = name.id.as_str();
        if path == output
            || !could_be_in_place(facts, unit, activation)
            || !is_fresh(facts, unit, assign, path)
            || uses(facts, unit, path) != 1
            || !goes_on_with_layers(facts, unit, assign)
        {
            continue;
        }
        let edits = is_function(facts, activation)
            .then(|| with_keyword(facts, activation, "inplace=True"))
            .flatten();
        let fix = edits.map(|edits| Fix::safe("Work in place", edits));
        report.add_with(
            span(assign.statement),
            format!(
                "`{}` is kept until `forward` returns, next to `{output}`",
                facts.text(input)
            ),
            "let the activation work in place, or reuse the variable",
            fix,
        );
    }
}

/// `F.relu(x)` and the like, without `inplace`; or a module that is one.
fn could_be_in_place(facts: &Facts<'_>, unit: UnitId, call: &ExprCall) -> bool {
    if call.arguments.find_keyword("inplace").is_some() {
        return false;
    }
    is_function(facts, call)
        || module_class(facts, unit, &call.func).is_some_and(|(class, made)| {
            matches!(
                class.as_str(),
                "ReLU" | "ReLU6" | "LeakyReLU" | "ELU" | "Hardtanh"
            ) && made.arguments.find_keyword("inplace").is_none()
                && made.arguments.args.is_empty()
        })
}

fn is_function(facts: &Facts<'_>, call: &ExprCall) -> bool {
    facts.callee(call).is_some_and(|name| {
        matches!(
            name.as_str(),
            "torch.nn.functional.relu"
                | "torch.nn.functional.relu6"
                | "torch.nn.functional.leaky_relu"
                | "torch.nn.functional.elu"
        )
    })
}

/// The class of `torch.nn` that `self.x` is made of, with the call that makes it.
fn module_class<'a>(
    facts: &Facts<'a>,
    unit: UnitId,
    called: &Expr,
) -> Option<(String, &'a ExprCall)> {
    let path = facts.path(called)?;
    let class = class_of(&facts.structure, unit)?;
    let mut made = facts.structure.assigns.iter().filter(|assign| {
        facts.path(assign.target) == Some(path)
            && class_of(
                &facts.structure,
                facts.structure.unit_of(assign.place.block),
            ) == Some(class)
    });
    let (only, None) = (made.next()?, made.next()) else {
        return None;
    };
    let Expr::Call(call) = only.value else {
        return None;
    };
    let name = facts.callee(call)?;
    Some((name.strip_prefix("torch.nn.")?.to_owned(), call))
}

/// Whether the input is the output of a layer that does not need it for backward, bound once.
fn is_fresh(facts: &Facts<'_>, unit: UnitId, activation: &Assign<'_>, path: &str) -> bool {
    let mut bound = facts
        .assigns_in_unit(unit)
        .filter(|assign| facts.targets(assign.target, path));
    let (Some(only), None) = (bound.next(), bound.next()) else {
        return false;
    };
    let Expr::Call(layer) = only.value else {
        return false;
    };
    only.place.block == activation.place.block
        && only.place.order < activation.place.order
        && facts.path(only.target) == Some(path)
        && module_class(facts, unit, &layer.func).is_some_and(|(class, _)| {
            class.starts_with("Conv") || class.starts_with("BatchNorm") || class == "Linear"
        })
}

/// How often a name is read in a unit.
fn uses(facts: &Facts<'_>, unit: UnitId, path: &str) -> usize {
    let mut count = 0;
    for statement in facts.structure.units[unit].body {
        crate::facts::each_expression_of(statement, &mut |part| {
            count += usize::from(matches!(part, Expr::Name(name)
                if name.id.as_str() == path && name.ctx.is_load()));
        });
    }
    count
}

/// Whether the forward pass goes on after the activation, with more to be kept.
fn goes_on_with_layers(facts: &Facts<'_>, unit: UnitId, activation: &Assign<'_>) -> bool {
    facts.calls_in_unit(unit).any(|call| {
        call.place.order > activation.place.order
            && !matches!(call.statement, Stmt::Raise(_))
            && module_class(facts, unit, &call.node.func).is_some()
    })
}

//! Optimizers step through lists of tensors by default, with temporaries of the parameters' size.

use super::fixes::with_keyword;
use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::finding::{Fix, Severity};
use crate::python::{Expr, span};

pub static RULE: Rule = Rule {
    name: "foreach-where-fused",
    family: Family::NeedlessMemory,
    severity: Severity::Note,
    summary: "an optimizer on the card uses temporaries although a fused implementation exists",
    docs: "\
## What it does
Finds `Adam` and `AdamW` over the parameters of a model on the card, without `fused=True` or another
explicit choice of implementation.

## Why it costs memory
On the card, PyTorch updates all parameters at once by default (`foreach`), with temporaries as large
as all parameters. The fused implementation needs none: for 134 million parameters the peak was
2.75 GB with `foreach` and 2.22 GB fused.

## Example
```python
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
```

## Use instead
```python
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
```

## When it is fine
When the peak is elsewhere (large activations), or parameters are not floating point on the card.
Results differ in the last digits. This rule is off unless selected.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for call in &facts.structure.calls {
        let Some(name) = facts.callee(call.node) else {
            continue;
        };
        let Some(class @ ("Adam" | "AdamW")) = name.strip_prefix("torch.optim.") else {
            continue;
        };
        let chooses = call.node.arguments.keywords.iter().any(|keyword| {
            keyword.arg.as_ref().is_none_or(|name| {
                matches!(
                    name.as_str(),
                    "fused" | "foreach" | "capturable" | "differentiable"
                )
            })
        });
        let Some(Expr::Call(parameters)) = call.node.arguments.find_argument_value("params", 0)
        else {
            continue;
        };
        let on_card = matches!(facts.method(parameters), Some((model, "parameters"))
            if facts.value(model).is_module() && facts.value(model).card.is_yes());
        if chooses || !on_card {
            continue;
        }
        report.add_with(
            span(call.node),
            format!(
                "every step of `{class}` needs temporaries as large as all parameters; the fused \
                 implementation needs none"
            ),
            "add `fused=True`",
            with_keyword(facts, call.node, "fused=True")
                .map(|edits| Fix::unsafe_("Add `fused=True`", edits)),
        );
    }
}

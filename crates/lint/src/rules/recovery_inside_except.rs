//! Running the model again inside `except`, while the exception still holds the failed pass.

use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::structure::{BlockId, Call, UnitId};
use crate::facts::usage::bound_names;
use crate::facts::value::Kind;
use crate::finding::Severity;
use crate::python::{Expr, span};
use crate::syntax::given;

pub static RULE: Rule = Rule {
    name: "recovery-inside-except",
    family: Family::NeedlessMemory,
    severity: Severity::Warning,
    summary: "the model runs again while the caught out-of-memory error holds its tensors",
    docs: "\
## What it does
Finds handlers of out-of-memory errors that run the model again, or call the function that failed
again, inside the `except` block.

## Why it costs memory
The exception's traceback keeps every frame of the failed pass, and with them all its tensors. While
the `except` block runs, nothing can free them, not even `empty_cache()`: in one measurement 10.8 GB
was still held inside the block, and 0.16 GB after it.

## Example
```python
for inputs, targets in loader:
    try:
        loss = criterion(model(inputs), targets)
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        loss = criterion(model(inputs[:8]), targets[:8])
    loss.backward()
```

## Use instead
```python
for inputs, targets in loader:
    failed = False
    try:
        loss = criterion(model(inputs), targets)
    except torch.OutOfMemoryError:
        failed = True
    if failed:
        torch.cuda.empty_cache()
        loss = criterion(model(inputs[:8]), targets[:8])
    loss.backward()
```

## When it is fine
When the handler only logs, cleans up, or moves on to the next batch.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for rescue in facts.rescues() {
        let unit = facts.structure.unit_of(rescue.block);
        let again = facts.calls_inside(rescue.block).find(|call| {
            (runs_a_model(facts, unit, call) || is_tried_again(facts, unit, rescue.tried, call))
                && !is_on_the_processor(facts, call)
        });
        // A function that calls itself retries the same.
        let repeats = again.is_some_and(|call| {
            facts.value(&call.node.func).kind == Kind::Function(unit)
                || is_tried_again(facts, unit, rescue.tried, call)
        });
        if let Some(call) = again
            && (repeats
                || facts
                    .calls_inside(rescue.tried)
                    .any(|tried| runs_a_model(facts, unit, tried)))
        {
            report.add(
                span(call.node),
                format!(
                    "`{}` runs while the caught error still holds the tensors of the failed pass",
                    facts.text(&*call.node.func)
                ),
                "set a flag in the `except` block, and retry after it",
            );
        }
    }
}

/// Something that was passed in or made here (`model`, `self.step`) and failed is called again.
fn is_tried_again(facts: &Facts<'_>, unit: UnitId, tried: BlockId, call: &Call<'_>) -> bool {
    let is_own = match &*call.node.func {
        Expr::Name(name) => bound_names(&facts.structure, unit).contains(&name.id.as_str()),
        // An attribute that is not a method of the class.
        Expr::Attribute(function) => {
            matches!(&*function.value, Expr::Name(name) if name.id.as_str() == "self")
        }
        _ => false,
    };
    is_own
        && !call.node.arguments.is_empty()
        && facts.value(&call.node.func).kind == Kind::Unknown
        && facts.calls_inside(tried).any(|other| {
            facts.same_text(&other.node.func, &call.node.func)
                && facts.result(other.node).kind != Kind::Number
        })
}

/// A retry on the CPU needs nothing on the card.
fn is_on_the_processor(facts: &Facts<'_>, call: &Call<'_>) -> bool {
    given(call.node).any(|each| {
        facts.value(each).card.is_no()
            && matches!(each, Expr::Call(moved)
                if matches!(facts.method(moved), Some((_, "cpu" | "to"))))
    })
}

/// A model's call, a `backward()`, or a function in the file that does one of them.
fn runs_a_model(facts: &Facts<'_>, unit: UnitId, call: &Call<'_>) -> bool {
    facts.callee_unit(call.node) == Some(unit)
        || facts.reaches(call.node, &|each| {
            facts.is_backward(each) || matches!(facts.value(&each.func).kind, Kind::Module(_))
        })
}

//! `torch.cuda.empty_cache()` in every step frees memory only to allocate it again.

use super::fixes::without_statement;
use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::structure::{BlockId, BlockKind, Call, UnitId};
use crate::facts::value::Kind;
use crate::finding::{Fix, Severity};
use crate::python::{Stmt, span};

pub static RULE: Rule = Rule {
    name: "empty-cache-in-loop",
    family: Family::NeedlessMemory,
    severity: Severity::Warning,
    summary: "the allocator's cache is emptied in every step",
    docs: "\
## What it does
Finds `torch.cuda.empty_cache()` in every iteration of a loop over batches, also in a function of the
file that only cleans up.

## Why it costs memory
It frees nothing that PyTorch could not use anyway: the next step allocates from the cache. Once
it is empty, every step requests the same memory from the driver again, which synchronizes with the card; in
between, another process can take it.

## Example
```python
for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.cuda.empty_cache()
```

## Use instead
```python
for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
```

## When it is fine
When sizes vary so much between steps that cached blocks do not fit; then
`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` is the better solution. Calls between training and
evaluation, after an out-of-memory error, or next to an engine with its own allocator (vLLM) are not
reported.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    // An engine with its own allocator uses the freed memory.
    if facts.imports.uses("vllm") || facts.imports.uses("sglang") {
        return;
    }
    check_helpers(facts, report);
    for call in &facts.structure.calls {
        if !empties(facts, call) || !runs_every_step(facts, call) {
            continue;
        }
        let fix = match call.statement {
            Stmt::Expr(node) if span(&*node.value) == span(call.node) => {
                without_statement(facts, call.statement)
            }
            _ => None,
        };
        report.add_with(
            span(call.node),
            "the cache is emptied in every step, and the next step requests the same memory from the \
             driver again"
                .to_owned(),
            "remove it; against fragmentation, set `expandable_segments:True`",
            fix.map(|edits| Fix::unsafe_("Remove the call", edits)),
        );
    }
}

/// `clean_up()` of a function of the file that empties the cache, in every iteration of a loop over batches.
fn check_helpers(facts: &Facts<'_>, report: &mut Report<'_>) {
    for call in &facts.structure.calls {
        let Some(helper) = facts.callee_unit(call.node) else {
            continue;
        };
        let is_statement = matches!(call.statement, Stmt::Expr(node)
            if span(&*node.value) == span(call.node));
        let runs_every_time = |emptying: &Call<'_>| {
            facts.structure.loop_around(emptying.place.block).is_none()
                && is_unconditional(facts, emptying, facts.structure.units[helper].block)
        };
        // What does more than clean up is no helper for that.
        let only_cleans = !facts.calls_in_unit(helper).any(|inner| {
            facts.called_module(inner.node).is_some() || facts.is_backward(inner.node)
        });
        let in_loop = facts.structure.loop_around(call.place.block).is_some();
        if is_statement
            && in_loop
            && only_cleans
            && facts
                .calls_in_unit(helper)
                .any(|inner| empties(facts, inner) && runs_every_time(inner))
            && runs_every_step(facts, call)
        {
            report.add(
                span(call.node),
                format!(
                    "`{}` empties the cache in every step, and the next step requests the same memory from \
                     the driver again",
                    facts.text(&*call.node.func)
                ),
                "call it between training and evaluation; against fragmentation, set `expandable_segments:True`",
            );
        }
    }
}

fn empties(facts: &Facts<'_>, call: &Call<'_>) -> bool {
    facts.callee(call.node).is_some_and(|name| {
        name == "torch.cuda.empty_cache" || name == "torch.cuda.memory.empty_cache"
    })
}

/// In every iteration of a loop over batches, or in every call of a function that makes one step and
/// is called by such a loop.
fn runs_every_step(facts: &Facts<'_>, call: &Call<'_>) -> bool {
    match facts.structure.loop_around(call.place.block) {
        Some(rounds) => {
            (facts.is_step_loop(rounds) || runs_one_model(facts, rounds))
                && is_unconditional(facts, call, rounds)
        }
        None => {
            let unit = facts.structure.unit_of(call.place.block);
            unit != 0
                && is_unconditional(facts, call, facts.structure.units[unit].block)
                && makes_a_step(facts, unit)
                && is_called_by_step_loop(facts, unit)
        }
    }
}

/// Whether every iteration runs a model that the loop does not bind: not a loop over models.
fn runs_one_model(facts: &Facts<'_>, rounds: BlockId) -> bool {
    facts.calls_inside(rounds).any(|call| {
        facts.structure.loop_around(call.place.block) == Some(rounds)
            && matches!(facts.value(&call.node.func).kind, Kind::Module(_))
            && facts
                .path(&call.node.func)
                .is_some_and(|path| !facts.is_changed_inside(rounds, path))
    })
}

fn is_unconditional(facts: &Facts<'_>, call: &Call<'_>, until: BlockId) -> bool {
    facts
        .conditions_of(call, until)
        .iter()
        .all(|condition| !facts.varies_in(until, condition.test))
        && !facts
            .structure
            .enclosing(call.place.block)
            .take_while(|(block, _)| *block != until)
            .any(|(_, kind)| matches!(kind, BlockKind::Handler(_) | BlockKind::Lambda(_)))
        && !leaves_loop_after(facts, call)
}

/// Right before a `break` or `return`, it runs once.
fn leaves_loop_after(facts: &Facts<'_>, call: &Call<'_>) -> bool {
    facts.structure.statements.iter().any(|(statement, place)| {
        place.block == call.place.block
            && place.order > call.place.order
            && matches!(statement, Stmt::Break(_) | Stmt::Raise(_))
    })
}

fn makes_a_step(facts: &Facts<'_>, unit: UnitId) -> bool {
    facts
        .calls_in_unit(unit)
        .any(|call| facts.is_backward(call.node))
}

fn is_called_by_step_loop(facts: &Facts<'_>, unit: UnitId) -> bool {
    facts.structure.calls.iter().any(|call| {
        facts.value(&call.node.func).kind == Kind::Function(unit)
            && facts
                .structure
                .loop_around(call.place.block)
                .is_some_and(|rounds| {
                    matches!(facts.structure.blocks[rounds].kind, BlockKind::For(node)
                        if facts.iterates_loader(&node.iter))
                })
    })
}

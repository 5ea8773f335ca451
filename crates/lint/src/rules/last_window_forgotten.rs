//! The micro-batches after the last full window are computed and never stepped.

use super::{Family, Report, Rule};
use crate::facts::accumulation::Window;
use crate::facts::structure::{BlockKind, UnitId};
use crate::facts::value::Kind;
use crate::facts::{Facts, each_expression};
use crate::finding::Severity;
use crate::python::{CmpOp, Expr, Stmt, StmtFor, span};
use crate::syntax::{calls, is_false, plain_callee, range_count};

pub static RULE: Rule = Rule {
    name: "last-window-forgotten",
    family: Family::Accumulation,
    severity: Severity::Warning,
    summary: "the last micro-batches of an epoch are never applied if they do not fill a window",
    docs: "\
## What it does
Finds gradient accumulation that steps only on a count such as `(i + 1) % n == 0`, with `i` restarting
in every epoch, and has no step after the loop.

## Why it costs memory
Gradient accumulation trains with a large batch in the memory of a small one. When the number of
micro-batches is not a multiple of the window, the gradients of the last ones are left over:
discarded if the epoch begins with `zero_grad()`, otherwise added to the next epoch's first window
and lost after the last epoch. Until then they take memory.

## Example
```python
for i, (inputs, targets) in enumerate(loader):
    loss = criterion(model(inputs), targets) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
```

## Use instead
```python
for i, (inputs, targets) in enumerate(loader):
    loss = criterion(model(inputs), targets) / 4
    loss.backward()
    if (i + 1) % 4 == 0 or i + 1 == len(loader):
        optimizer.step()
        optimizer.zero_grad()
```

## When it is fine
When the loader's length is a multiple of the window. Loaders with `drop_last=True`, counters that
continue across epochs and loops that skip an incomplete window are not reported.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for window in facts.windows() {
        let BlockKind::For(node) = facts.structure.blocks[window.rounds].kind else {
            continue;
        };
        if window.has_alternative
            || !counts_anew(facts, node, &window)
            || has_later_step(facts, &window)
            || leaves_early(facts, &window)
            || skips_the_rest(facts, &window)
            || ends_with_a_step(facts, &window)
            || zeroes_every_round(facts, &window)
        {
            continue;
        }
        let (counter, count) = (
            facts.text(window.every.counter),
            facts.text(window.every.count),
        );
        let left = if zeroed_before(facts, &window) {
            "are discarded by the `zero_grad()` before the next epoch"
        } else {
            "go into the next epoch's first window, and are lost after the last epoch"
        };
        report.add(
            span(window.step.node),
            format!(
                "no step for the micro-batches after the last multiple of `{count}` in \
                 `{counter}`: their gradients {left}"
            ),
            "also step in the last iteration: `or i + 1 == len(loader)`",
        );
    }
}

/// Whether the counter is the number that `enumerate` gives over something whose length is not
/// made for the window.
fn counts_anew<'a>(facts: &Facts<'a>, node: &'a StmtFor, window: &Window<'a, '_>) -> bool {
    let (counter, count) = (window.every.counter, window.every.count);
    let unit = facts.structure.unit_of(window.rounds);
    let Expr::Tuple(targets) = &*node.target else {
        return counts_length(facts, node, counter, count);
    };
    let (Some(first), Some(iterated)) = (
        targets.elts.first(),
        enumerated(facts, unit, &node.iter, FAR),
    ) else {
        return false;
    };
    let Some(index) = facts.path(first) else {
        return false;
    };
    facts.mentions(counter, index) && !is_made_to_measure(facts, iterated)
}

/// `for i in range(len(data) // size)`: a length that comes from the data, not from the window.
fn counts_length(facts: &Facts<'_>, node: &StmtFor, counter: &Expr, count: &Expr) -> bool {
    let (Some(index), Some(length)) = (facts.path(&node.target), range_count(&node.iter)) else {
        return false;
    };
    let mut of_data = false;
    each_expression(length, &mut |part| of_data |= calls(part, "len"));
    let of_window = facts
        .path(count)
        .is_some_and(|count| facts.mentions(length, count));
    of_data && !of_window && facts.mentions(counter, index)
}

/// How many calls and names are followed to an `enumerate`.
const FAR: usize = 6;

/// What `enumerate` iterates over, also inside a progress bar that has a name.
fn enumerated<'a>(
    facts: &Facts<'a>,
    unit: UnitId,
    iterated: &'a Expr,
    far: usize,
) -> Option<&'a Expr> {
    let far = far.checked_sub(1)?;
    let Expr::Call(call) = iterated else {
        let path = facts.path(iterated)?;
        return enumerated(facts, unit, facts.last_value(unit, path, iterated)?, far);
    };
    let first = call.arguments.args.first()?;
    if plain_callee(call) == Some("enumerate") {
        Some(first)
    } else {
        enumerated(facts, unit, first, far)
    }
}

/// Ranges and slices have a chosen length, and a loader that drops the last batch is deliberate.
fn is_made_to_measure(facts: &Facts<'_>, iterated: &Expr) -> bool {
    match iterated {
        Expr::Call(call) => {
            let name = match &*call.func {
                Expr::Name(name) => name.id.as_str(),
                Expr::Attribute(attribute) => attribute.attr.as_str(),
                _ => "",
            };
            matches!(name, "range" | "islice" | "zip" | "cycle" | "repeat")
                || drops_last(iterated)
                || never_ends(facts, iterated)
                || call
                    .arguments
                    .args
                    .first()
                    .is_some_and(|first| is_made_to_measure(facts, first))
        }
        _ => {
            let bound = facts.path(iterated).is_some_and(|path| {
                facts.structure.assigns.iter().any(|assign| {
                    facts.targets(assign.target, path)
                        && (drops_last(assign.value)
                            || never_ends(facts, assign.value)
                            || calls(assign.value, "range")
                            || calls(assign.value, "cycle"))
                })
            });
            bound || facts.value(iterated).kind == Kind::Number
        }
    }
}

/// The result of a function of the file that loops forever.
fn never_ends(facts: &Facts<'_>, made: &Expr) -> bool {
    let Expr::Call(call) = made else {
        return false;
    };
    let Kind::Function(unit) = facts.value(&call.func).kind else {
        return false;
    };
    facts.structure.blocks.iter().any(|block| {
        block.unit == unit
            && matches!(block.kind, BlockKind::While(node)
                if matches!(&*node.test, Expr::BooleanLiteral(_) | Expr::NumberLiteral(_)))
    })
}

fn drops_last(expression: &Expr) -> bool {
    let mut found = false;
    each_expression(expression, &mut |part| {
        if let Expr::Call(call) = part {
            found |= call
                .arguments
                .find_keyword("drop_last")
                .is_some_and(|keyword| !is_false(&keyword.value));
        }
    });
    found
}

/// A step after the loop, in this unit, takes what is left over.
fn has_later_step(facts: &Facts<'_>, window: &Window<'_, '_>) -> bool {
    let unit = facts.structure.unit_of(window.rounds);
    facts.calls_in_unit(unit).any(|call| {
        call.place.order > window.step.place.order
            && !facts.structure.is_inside(call.place.block, window.rounds)
            && (facts.is_optimizer_step(call)
                || facts.callee_unit(call.node).is_some_and(|callee| {
                    facts.runs(callee, &|inner| {
                        facts.is_optimizer_step(inner) && !facts.is_backward(inner.node)
                    }) && !facts.runs_backward(call.node)
                }))
    })
}

/// Nothing is left over where every iteration discards what was there.
fn zeroes_every_round(facts: &Facts<'_>, window: &Window<'_, '_>) -> bool {
    facts.calls_inside(window.rounds).any(|call| {
        matches!(facts.method(call.node), Some((_, "zero_grad")))
            && facts.is_every_round(call, window)
    })
}

/// A loop with a `break` has another number of iterations.
fn leaves_early(facts: &Facts<'_>, window: &Window<'_, '_>) -> bool {
    facts.structure.statements.iter().any(|(statement, place)| {
        matches!(statement, Stmt::Break(_))
            && facts.structure.loop_around(place.block) == Some(window.rounds)
            && facts
                .structure
                .conditions(place.block, window.rounds)
                .is_empty()
    })
}

/// `if i >= whole: continue` before the forward pass: nothing is left over.
fn skips_the_rest(facts: &Facts<'_>, window: &Window<'_, '_>) -> bool {
    let unit = facts.structure.unit_of(window.rounds);
    let BlockKind::For(node) = facts.structure.blocks[window.rounds].kind else {
        return false;
    };
    let mut counters = Vec::new();
    facts.each_target(&node.target, &mut |path| {
        counters.extend(facts.flows(unit, path));
    });
    let counts = |side: &Expr| counters.iter().any(|path| facts.mentions(side, path));
    facts.structure.statements.iter().any(|(statement, place)| {
        let Stmt::If(branch) = statement else {
            return false;
        };
        let Expr::Compare(comparison) = &*branch.test else {
            return false;
        };
        let is_past = match (*comparison.ops).first() {
            Some(CmpOp::Gt | CmpOp::GtE) => counts(&comparison.left),
            Some(CmpOp::Eq) => {
                counts(&comparison.left) && matches!(branch.body.last(), Some(Stmt::Break(_)))
            }
            Some(CmpOp::Lt | CmpOp::LtE) => comparison.comparators.iter().any(counts),
            _ => false,
        };
        is_past
            && place.block == window.rounds
            && place.order < window.backward.place.order
            && matches!(branch.body.last(), Some(Stmt::Continue(_) | Stmt::Break(_)))
    })
}

/// One loop over everything that a `break` ends when enough steps were made: right after a step.
fn ends_with_a_step(facts: &Facts<'_>, window: &Window<'_, '_>) -> bool {
    let unit = facts.structure.unit_of(window.rounds);
    let runs_once = facts.structure.blocks[window.rounds]
        .parent
        .and_then(|parent| facts.structure.loop_around(parent))
        .is_none()
        && !facts
            .callers(unit)
            .any(|caller| facts.structure.loop_around(caller.place.block).is_some());
    let counts_steps = |test: &Expr| {
        let mut counts = false;
        each_expression(test, &mut |part| {
            if let Some(path) = facts.path(part) {
                let mut grows = facts
                    .assigns_in_unit(unit)
                    .filter(|assign| {
                        facts.structure.is_inside(assign.place.block, window.rounds)
                            && facts.targets(assign.target, path)
                    })
                    .peekable();
                counts |= grows.peek().is_some()
                    && grows.all(|assign| assign.place.block == window.step.place.block);
            }
        });
        counts
    };
    runs_once
        && facts.structure.statements.iter().any(|(statement, place)| {
            matches!(statement, Stmt::Break(_))
                && facts.structure.loop_around(place.block) == Some(window.rounds)
                && facts
                    .structure
                    .conditions(place.block, window.rounds)
                    .iter()
                    .any(|(test, holds)| *holds && counts_steps(test))
        })
}

/// Whether `zero_grad()` is before the loop in what an epoch does.
fn zeroed_before(facts: &Facts<'_>, window: &Window<'_, '_>) -> bool {
    let outer = facts.structure.blocks[window.rounds].parent;
    facts
        .calls_in_unit(facts.structure.unit_of(window.rounds))
        .any(|call| {
            matches!(facts.method(call.node), Some((_, "zero_grad")))
                && call.place.order < window.step.place.order
                && Some(call.place.block) == outer
        })
}

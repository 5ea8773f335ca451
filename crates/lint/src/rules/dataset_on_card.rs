//! The whole dataset on the card before the loop.

use super::card_in_dataset::is_dataset;
use super::{Family, Report, Rule};
use crate::facts::structure::{Assign, BlockKind, UnitId};
use crate::facts::value::Kind;
use crate::facts::{Facts, each_expression};
use crate::finding::Severity;
use crate::python::{Expr, ExprCall, Stmt, span};

pub static RULE: Rule = Rule {
    name: "dataset-on-card",
    family: Family::Placement,
    severity: Severity::Warning,
    summary: "a whole dataset is moved to the card, but used batch by batch",
    docs: "\
## What it does
Finds data that is moved to the card as a whole before the training loop, and then goes into a
`TensorDataset` with a `DataLoader` or is sliced into batches inside the loop. Also a class whose
`__init__` moves all samples to the card, while its `__getitem__` or `__iter__` returns them in parts.

## Why it costs memory
Only one batch is needed at a time, but all of them stay on the card for the whole run: every sample
in the dataset takes memory from the model.

## Example
```python
data = torch.from_numpy(samples).to(device)
for start in range(0, len(data), 32):
    loss = model(data[start:start + 32]).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Use instead
```python
data = torch.from_numpy(samples)
for start in range(0, len(data), 32):
    loss = model(data[start:start + 32].to(device)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## When it is fine
For data that is small compared with the model: it saves a copy in every step. Not reported: data
that a function receives as an argument, that an object collects itself, that was computed on the
card or goes through the model as a whole, and placement that an option of the script decides.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    check_datasets(facts, report);
    check_tensor_datasets(facts, report);
    for assign in &facts.structure.assigns {
        let Expr::Call(moved) = assign.value else {
            continue;
        };
        if assign.operator.is_some() || !facts.moves_to_card(moved) || !is_data(facts, moved) {
            continue;
        }
        let Some(path) = facts.path(assign.target) else {
            continue;
        };
        let unit = facts.structure.unit_of(assign.place.block);
        let in_loop = facts.structure.loop_around(assign.place.block).is_some();
        if !in_loop && is_handed_out_in_parts(facts, unit, path) {
            report.add(
                span(assign.statement),
                format!("`{path}` holds every sample of the dataset on the card"),
                "leave them on the CPU and move each batch to the card in the loop",
            );
            continue;
        }
        if in_loop || path.contains(['.', '[']) || is_an_option(facts, unit, assign, path) {
            continue;
        }
        let how = if goes_into_a_loader(facts, unit, assign, path) {
            "is moved to the card as a whole, although the loader returns it batch by batch"
        } else if is_cut_into_batches(facts, unit, assign, path) {
            "is moved to the card as a whole, although the loop uses it batch by batch"
        } else {
            continue;
        };
        report.add(
            span(assign.statement),
            format!("`{path}` {how}"),
            "leave it on the CPU and move each batch to the card in the loop",
        );
    }
}

/// Whether an attribute that `__init__` makes is given out in parts: by the `__getitem__` of a dataset, or by an
/// `__iter__` that yields slices.
fn is_handed_out_in_parts(facts: &Facts<'_>, unit: UnitId, path: &str) -> bool {
    let found = &facts.structure.units[unit];
    let (Some(class), Some(name)) = (found.class, path.strip_prefix("self.")) else {
        return false;
    };
    if found.name != "__init__" || name.contains(['.', '[']) {
        return false;
    }
    let class_ = &facts.structure.classes[class];
    let cuts = |method: &str, is_batch: &dyn Fn(&Expr) -> bool| {
        class_.method(method).is_some_and(|unit| {
            let mut cut = false;
            for (statement, place) in &facts.structure.statements {
                if facts.structure.unit_of(place.block) == unit {
                    facts.each_expression_of_statement(statement, &mut |part| {
                        cut |= matches!(part, Expr::Subscript(subscript)
                            if facts.path(&subscript.value) == Some(path)
                                && is_batch(&subscript.slice));
                    });
                }
            }
            cut
        })
    };
    is_dataset(facts, class) && cuts("__getitem__", &|_| true)
        || cuts("__iter__", &|slice| matches!(slice, Expr::Slice(_)))
}

/// `self.data = [torch.load(path).cuda() for path in paths]` in the `__init__` of a dataset.
fn check_datasets(facts: &Facts<'_>, report: &mut Report<'_>) {
    for assign in &facts.structure.assigns {
        let Expr::ListComp(comprehension) = assign.value else {
            continue;
        };
        let unit = facts.structure.unit_of(assign.place.block);
        let found = &facts.structure.units[unit];
        let is_made_here =
            found.name == "__init__" && found.class.is_some_and(|class| is_dataset(facts, class));
        if let Some(path) = facts.path(assign.target)
            && path.starts_with("self.")
            && is_made_here
            && matches!(&*comprehension.elt, Expr::Call(moved) if facts.moves_to_card(moved))
        {
            report.add(
                span(assign.statement),
                format!("`{path}` holds every sample of the dataset on the card"),
                "leave them on the CPU and move each batch to the card in the loop",
            );
        }
    }
}

/// `TensorDataset(inputs.cuda(), targets.cuda())`.
fn check_tensor_datasets(facts: &Facts<'_>, report: &mut Report<'_>) {
    for call in &facts.structure.calls {
        if facts.structure.loop_around(call.place.block).is_some()
            || !makes_tensor_dataset(facts, call.node)
        {
            continue;
        }
        let moved = call.node.arguments.args.iter().find(|each| {
            matches!(each, Expr::Call(moved)
                if facts.moves_to_card(moved) && is_data(facts, moved))
        });
        if let Some(moved) = moved {
            report.add(
                span(moved),
                format!(
                    "`{}` is on the card as a whole, although the loader returns it batch by batch",
                    facts.text(moved)
                ),
                "leave it on the CPU and move each batch to the card in the loop",
            );
        }
    }
}

fn makes_tensor_dataset(facts: &Facts<'_>, call: &ExprCall) -> bool {
    facts
        .callee(call)
        .is_some_and(|name| name.starts_with("torch.utils.data") && name.ends_with("TensorDataset"))
}

/// Whether the other branch of an option leaves the data on the CPU: the user has the choice. (Whether
/// there is a card is not a choice.)
fn is_an_option(facts: &Facts<'_>, unit: UnitId, assign: &Assign<'_>, path: &str) -> bool {
    let is_about_card = |test: &Expr| {
        let mut found = false;
        each_expression(test, &mut |part| {
            found |= match part {
                Expr::Name(name) => name.id.as_str().contains("cuda"),
                Expr::Attribute(attribute) => attribute.attr.as_str().contains("cuda"),
                Expr::Call(call) => facts
                    .callee(call)
                    .is_some_and(|name| name.starts_with("torch.cuda.")),
                _ => false,
            };
        });
        found
    };
    let at = span(assign.statement).start;
    let is_chosen = facts
        .conditions_at(assign.place, at, facts.structure.units[unit].block)
        .iter()
        .any(|condition| !is_about_card(condition.test));
    is_chosen
        && facts.assigns_in_unit(unit).any(|other| {
            facts.are_exclusive(other.place.block, assign.place.block)
                && facts.path(other.target) == Some(path)
                && !facts.value(other.value).card.is_yes()
        })
}

/// Whether moved data comes from outside the computation: from a file, an array, a list. Data of a known
/// small size, or random data, is not a dataset.
fn is_data<'a>(facts: &Facts<'a>, moved: &'a ExprCall) -> bool {
    match (facts.callee(moved), &*moved.func) {
        // `torch.tensor(rows, device="cuda")`
        (Some(name), _) => is_read(facts, &name, moved),
        (None, Expr::Attribute(function)) => is_made_of_data(facts, &function.value, FAR),
        _ => false,
    }
}

/// How many names are followed back.
const FAR: usize = 6;

/// Back through methods and names to where something was read.
fn is_made_of_data<'a>(facts: &Facts<'a>, value: &'a Expr, far: usize) -> bool {
    let Some(far) = far.checked_sub(1) else {
        return false;
    };
    match value {
        Expr::Call(call) => match (facts.callee(call), &*call.func) {
            (Some(name), _) => is_read(facts, &name, call) || joins_what_is_loaded(&name, call),
            (None, Expr::Attribute(method)) => is_made_of_data(facts, &method.value, far),
            _ => false,
        },
        // A part of what was read: `data["images"]`.
        Expr::Subscript(part) => is_made_of_data(facts, &part.value, far),
        Expr::Name(_) => facts
            .structure
            .assigns
            .iter()
            .filter(|assign| {
                span(assign.statement).end <= span(value).start
                    && facts.path(assign.target) == facts.path(value)
            })
            .max_by_key(|assign| span(assign.statement).start)
            .is_some_and(|assign| is_made_of_data(facts, assign.value, far)),
        _ => false,
    }
}

/// `torch.stack([load(file) for file in files])`.
fn joins_what_is_loaded(name: &str, call: &ExprCall) -> bool {
    matches!(name, "torch.stack" | "torch.cat")
        && matches!(call.arguments.args.first(), Some(Expr::ListComp(comprehension))
            if matches!(&*comprehension.elt, Expr::Call(loaded)
                if matches!(&*loaded.func, Expr::Name(_))))
}

/// Whether a function of PyTorch makes a tensor of something that was read.
fn is_read<'a>(facts: &Facts<'a>, name: &str, call: &'a ExprCall) -> bool {
    let reads = matches!(
        name,
        "torch.from_numpy"
            | "torch.tensor"
            | "torch.as_tensor"
            | "torch.Tensor"
            | "torch.FloatTensor"
            | "torch.LongTensor"
            | "torch.load"
    );
    // A list in the script itself is short; numbers are sizes.
    let small = call.arguments.args.first().is_some_and(|first| {
        matches!(
            first,
            Expr::List(_) | Expr::NumberLiteral(_) | Expr::ListComp(_) | Expr::UnaryOp(_)
        )
    });
    let is_no_data_set = call
        .arguments
        .args
        .first()
        .is_some_and(|first| is_collected(facts, first) || is_toy(facts, first));
    reads && !small && !is_no_data_set
}

/// Data that an object collected itself, such as the moves since its last update.
fn is_collected(facts: &Facts<'_>, data: &Expr) -> bool {
    facts
        .path(data)
        .is_some_and(|path| path.starts_with("self."))
}

/// A dataset of a few hundred rows that scikit-learn ships or generates.
fn is_toy<'a>(facts: &Facts<'a>, data: &'a Expr) -> bool {
    facts.made_of(data).into_iter().any(|part| {
        facts.imports.qualified(part).is_some_and(|name| {
            name.strip_prefix("sklearn.datasets.")
                .is_some_and(|set| set.starts_with("load_") || set.starts_with("make_"))
        })
    })
}

/// `TensorDataset(data, ...)` that goes into a `DataLoader` and into training.
fn goes_into_a_loader(facts: &Facts<'_>, unit: UnitId, assign: &Assign<'_>, path: &str) -> bool {
    facts.units_that_see(unit, path).into_iter().any(|unit| {
        facts.calls_in_unit(unit).any(|call| {
            makes_tensor_dataset(facts, call.node)
                && span(call.node).start > span(assign.statement).start
                && call
                    .node
                    .arguments
                    .args
                    .iter()
                    .any(|each| facts.path(each) == Some(path) && facts.value(each).card.is_yes())
        })
    })
}

/// `data[start:end]` or `data[chosen]` in a loop that steps, with bounds made in the loop.
fn is_cut_into_batches(facts: &Facts<'_>, unit: UnitId, assign: &Assign<'_>, path: &str) -> bool {
    facts.structure.statements.iter().any(|(statement, place)| {
        if facts.structure.unit_of(place.block) != unit
            || span(*statement).start < span(assign.statement).end
            || matches!(
                statement,
                Stmt::For(_) | Stmt::While(_) | Stmt::If(_) | Stmt::With(_)
            )
        {
            return false;
        }
        let Some(steps) = facts.structure.loop_around(place.block) else {
            return false;
        };
        let trains = facts
            .calls_inside(steps)
            .any(|call| facts.is_backward(call.node));
        let mut cut = false;
        facts.each_expression_of_statement(statement, &mut |part| {
            if let Expr::Subscript(subscript) = part
                && facts.path(&subscript.value) == Some(path)
                && matches!(
                    facts.value(&subscript.value).kind,
                    Kind::Tensor | Kind::Unknown
                )
            {
                cut |= is_made_in_loop(facts, unit, steps, &subscript.slice);
            }
        });
        trains && cut
    })
}

fn is_made_in_loop(facts: &Facts<'_>, unit: UnitId, steps: usize, slice: &Expr) -> bool {
    let first = match slice {
        Expr::Tuple(tuple) => match tuple.elts.first() {
            Some(first) => first,
            None => return false,
        },
        other => other,
    };
    // Constant indices may slice a table of a few rows.
    if !matches!(first, Expr::Slice(_)) && !facts.value(first).is_tensor() {
        return false;
    }
    let mut made = false;
    each_expression(first, &mut |part| {
        if let Some(name) = facts.path(part) {
            made |= match facts.structure.blocks[steps].kind {
                BlockKind::For(node) => facts.targets(&node.target, name),
                _ => false,
            };
            made |= facts.assigns_in_unit(unit).any(|assign| {
                facts.structure.is_inside(assign.place.block, steps)
                    && facts.targets(assign.target, name)
            });
        }
    });
    made
}

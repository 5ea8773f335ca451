//! One optimizer step for several batches.
//!
//! If all batches have the same size, a few plain lines are exact: each loss is divided by the number of batches in its
//! window, and everything that belongs to a step waits for the end of the window. If the last batch may be smaller,
//! `ghostgpu.accumulate` weights batches by their samples.

use ghostgpu_lint::Edit;
use ghostgpu_lint::facts::each_expression_of;
use ghostgpu_lint::facts::reduction::Reduction;
use ghostgpu_lint::facts::structure::BlockId;
use ghostgpu_lint::python::{Expr, Stmt, StmtFor, span};
use ghostgpu_tricks::Request;

use super::option;
use crate::outcome::{Outcome, Written};
use crate::script::Script;
use crate::training_step::{Part, TrainingStep};

pub fn write(script: &Script<'_>, request: &Request) -> Outcome {
    let count = option(request, "steps");
    if script
        .calls_of(|name| name == "ghostgpu.accumulate")
        .next()
        .is_some()
        || !script.facts.windows().is_empty()
    {
        return Err("the loop accumulates gradients already".to_owned());
    }
    let steps = script.training_steps()?;
    let [step] = &*steps else {
        return Err("there is more than one backward pass".to_owned());
    };
    let (rounds, block) = script
        .loop_of(step.list)
        .ok_or("the backward pass is not directly in a `for` loop over batches")?;
    let plain = PlainLoop::of(script, step, rounds, block)?;
    match plain.batches {
        Batches::Equal { .. } => in_own_lines(script, &plain, count),
        Batches::Unequal { .. } => with_ghostgpu(script, &plain, count),
    }
}

/// A training loop that can step once for several batches.
struct PlainLoop<'a, 's> {
    step: &'s TrainingStep<'a>,
    rounds: &'a StmtFor,
    /// The parts of the step, in order, each with its index in the loop's body.
    parts: Vec<(usize, Part)>,
    optimizer: &'a str,
    batches: Batches<'a>,
}

/// What a loop iterates over.
enum Batches<'a> {
    /// Batches of one size; `length` is an expression for their number.
    Equal { length: String },
    /// The last one may be smaller.
    Unequal { loader: &'a str },
}

impl<'a, 's> PlainLoop<'a, 's> {
    fn of(
        script: &Script<'a>,
        step: &'s TrainingStep<'a>,
        rounds: &'a StmtFor,
        block: BlockId,
    ) -> Result<Self, String> {
        let list = step.list;
        if let Some(word) = leaves(list) {
            return Err(format!(
                "the loop has a `{word}`, and windows would not end"
            ));
        }
        if script.facts.reduction(block, step.backward.loss) == Reduction::Scaled {
            return Err("the loss is scaled by something else than its mean".to_owned());
        }
        let parts: Vec<(usize, Part)> = (0..list.len())
            .filter_map(|at| Some((at, script.part(&list[at])?)))
            .collect();
        let is = |wanted: Part| parts.iter().filter(move |(_, part)| *part == wanted);
        let optimizer = match &*is(Part::Step).collect::<Vec<_>>() {
            [(at, _)] if *at > step.at => script
                .stepped(&list[*at])
                .ok_or("the optimizer steps in an unusual way")?,
            [_] => return Err("the optimizer steps before the backward pass".to_owned()),
            [] => return Err("no optimizer steps beside the backward pass".to_owned()),
            _ => return Err("two optimizers step in this loop".to_owned()),
        };
        match is(Part::ZeroGrad).count() {
            1 => {}
            0 => return Err("`zero_grad()` does not stand beside the backward pass".to_owned()),
            _ => return Err("gradients are set to zero twice in this loop".to_owned()),
        }
        let before_backward =
            |(at, part): &&(usize, Part)| *at < step.at && *part != Part::ZeroGrad;
        if parts.iter().any(|it| before_backward(&it)) {
            return Err("what belongs to the step stands before the backward pass".to_owned());
        }
        let hidden = script.calls().iter().any(|call| {
            let at = span(call.node).start;
            span(rounds).contains(&at)
                && matches!(
                    script.facts.method(call.node),
                    Some((_, "step" | "zero_grad"))
                )
                && (script.facts.is_optimizer_step(call))
                && !parts
                    .iter()
                    .any(|(place, _)| span(&list[*place]).contains(&at))
        });
        if hidden {
            return Err("an optimizer also steps elsewhere in the loop".to_owned());
        }
        Ok(Self {
            batches: batches(script, rounds)?,
            step,
            rounds,
            parts,
            optimizer,
        })
    }
}

/// The `break` or `continue` of the loop itself, if it has one.
fn leaves(list: &[Stmt]) -> Option<&'static str> {
    list.iter().find_map(|statement| match statement {
        Stmt::Break(_) => Some("break"),
        Stmt::Continue(_) => Some("continue"),
        Stmt::Return(_) => Some("return"),
        Stmt::If(node) => leaves(&node.body).or_else(|| {
            node.elif_else_clauses
                .iter()
                .find_map(|clause| leaves(&clause.body))
        }),
        Stmt::With(node) => leaves(&node.body),
        Stmt::Try(node) => leaves(&node.body),
        _ => None,
    })
}

/// What a loop iterates over, seen through `enumerate`, `tqdm` and the like.
fn batches<'a>(script: &Script<'a>, rounds: &'a StmtFor) -> Result<Batches<'a>, String> {
    let unknown = "how many batches there are is not known before the loop".to_owned();
    if let Expr::Call(call) = &*rounds.iter
        && matches!(&*call.func, Expr::Name(name) if name.id == "range")
    {
        return match (&*call.arguments.args, &*rounds.target) {
            ([count], Expr::Name(_)) => Ok(Batches::Equal {
                length: tight(script, count),
            }),
            _ => Err("the loop does not count from zero".to_owned()),
        };
    }
    let mut over = &*rounds.iter;
    while let Expr::Call(call) = over {
        let name = &script.text[span(&*call.func)];
        let is_wrapper = matches!(
            name.rsplit('.').next(),
            Some("enumerate" | "tqdm" | "track" | "trange")
        );
        match call.arguments.args.first().filter(|_| is_wrapper) {
            Some(inner) => over = inner,
            None => return Err(unknown),
        }
    }
    let Some(loader) = script.facts.path(over) else {
        return Err(unknown);
    };
    if script.text.contains("IterableDataset") || script.text.contains("streaming=True") {
        return Err(unknown);
    }
    let is_loader = script.facts.iterates_loader(over);
    if !is_loader {
        return Err(unknown);
    }
    let made = script
        .facts
        .structure
        .assigns
        .iter()
        .find(|assign| script.facts.path(assign.target) == Some(loader));
    let drops_last = made.is_some_and(|assign| match assign.value {
        Expr::Call(call) => call
            .arguments
            .find_keyword("drop_last")
            .is_some_and(|keyword| &script.text[span(&keyword.value)] == "True"),
        _ => false,
    });
    Ok(match drops_last {
        true => Batches::Equal {
            length: format!("len({loader})"),
        },
        false => Batches::Unequal { loader },
    })
}

/// An expression as an operand, in parentheses if necessary.
fn tight(script: &Script<'_>, expression: &Expr) -> String {
    let text = &script.text[span(expression)];
    match expression {
        Expr::Name(_)
        | Expr::Attribute(_)
        | Expr::Subscript(_)
        | Expr::Call(_)
        | Expr::NumberLiteral(_) => text.to_owned(),
        _ => format!("({text})"),
    }
}

/// The name that counts batches from zero, and the edits that introduce it.
fn counter(script: &Script<'_>, rounds: &StmtFor) -> Result<(String, Vec<Edit>), String> {
    if let (Expr::Name(name), Expr::Call(call)) = (&*rounds.target, &*rounds.iter)
        && matches!(&*call.func, Expr::Name(function) if function.id == "range")
    {
        return Ok((name.id.to_string(), Vec::new()));
    }
    if let (Expr::Tuple(pair), Expr::Call(call)) = (&*rounds.target, &*rounds.iter)
        && matches!(&*call.func, Expr::Name(function) if function.id == "enumerate")
    {
        return match (&*pair.elts, call.arguments.len()) {
            ([Expr::Name(name), _], 1) => Ok((name.id.to_string(), Vec::new())),
            _ => Err("the loop does not count from zero".to_owned()),
        };
    }
    let name = script.fresh(&["batch_index", "micro_step"]);
    let (target, iterated) = (span(&*rounds.target), span(&*rounds.iter));
    let text = &script.text[target.clone()];
    let target_text = match &*rounds.target {
        Expr::Tuple(tuple) if !tuple.parenthesized => format!("{name}, ({text})"),
        _ => format!("{name}, {text}"),
    };
    Ok((
        name,
        vec![
            Edit::replace(target, target_text),
            Edit::insert(iterated.start, "enumerate("),
            Edit::insert(iterated.end, ")"),
        ],
    ))
}

/// Divided losses, and steps at the end of windows.
fn in_own_lines(script: &Script<'_>, plain: &PlainLoop<'_, '_>, count: &str) -> Outcome {
    let Batches::Equal { length } = &plain.batches else {
        return Err("batches differ in size".to_owned());
    };
    let (list, at) = (plain.step.list, plain.step.at);
    let (index, mut edits) = counter(script, plain.rounds)?;
    if is_rebound(script, list, &index) {
        return Err(format!("the loop changes `{index}` itself"));
    }
    for (place, part) in &plain.parts {
        if let (Stmt::Assign(node), Part::Clip) = (&list[*place], part)
            && let Some(name) = node.targets.first().and_then(|it| script.facts.path(it))
            && list.iter().enumerate().any(|(other, statement)| {
                !plain.parts.iter().any(|(part, _)| *part == other)
                    && script.facts.statement_mentions(statement, name)
            })
        {
            return Err(format!("`{name}` is read where there may be no step"));
        }
    }
    // A short last window is divided by its own batches.
    let window = format!("min({count}, {length} - {index} // {count} * {count})");
    let loss = span(plain.step.backward.loss);
    let known = length.parse::<u64>().ok().zip(count.parse::<u64>().ok());
    let all_are_full = known.is_some_and(|(length, count)| length % count == 0);
    let divided = match all_are_full {
        true => count.to_owned(),
        false => window,
    };
    let text = tight(script, plain.step.backward.loss);
    let is_receiver = plain.step.backward.scaler.is_none();
    edits.push(Edit::replace(
        loss,
        match is_receiver {
            true => format!("({text} / {divided})"),
            false => format!("{text} / {divided}"),
        },
    ));
    let ends = match all_are_full {
        true => format!("if ({index} + 1) % {count} == 0:"),
        false => format!("if ({index} + 1) % {count} == 0 or {index} + 1 == {length}:"),
    };
    for (first, last) in runs(&plain.parts, |place, part| {
        place > at || part != Part::ZeroGrad
    }) {
        edits.extend(script.wrapped(&list[first..=last], &ends)?);
    }
    for (first, last) in runs(&plain.parts, |place, part| {
        place < at && part == Part::ZeroGrad
    }) {
        let begins = format!("if {index} % {count} == 0:");
        edits.extend(script.wrapped(&list[first..=last], &begins)?);
    }
    Written::new(format!("{count} batches for each optimizer step"), edits)
}

fn is_rebound(script: &Script<'_>, list: &[Stmt], name: &str) -> bool {
    script.facts.structure.assigns.iter().any(|assign| {
        let at = span(assign.statement).start;
        script.facts.path(assign.target) == Some(name)
            && list.iter().any(|statement| span(statement).contains(&at))
    })
}

/// Ranges of consecutive parts that satisfy a condition.
fn runs(parts: &[(usize, Part)], wanted: impl Fn(usize, Part) -> bool) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for (place, part) in parts {
        if !wanted(*place, *part) {
            continue;
        }
        match found.last_mut() {
            Some((_, last)) if *last + 1 == *place => *last = *place,
            _ => found.push((*place, *place)),
        }
    }
    found
}

/// `with ghostgpu.accumulate(...)` around forward and backward, which does the rest itself.
fn with_ghostgpu(script: &Script<'_>, plain: &PlainLoop<'_, '_>, count: &str) -> Outcome {
    let Batches::Unequal { loader } = &plain.batches else {
        return Err("there is no loader".to_owned());
    };
    let (step, list) = (plain.step, plain.step.list);
    let (first, _) = script.forward_of(step)?;
    let model = list[first..step.at]
        .iter()
        .flat_map(|statement| script.calls_in(statement))
        .find_map(|call| script.facts.called_module(call.node))
        .ok_or("the model is called in another function")?;
    let samples = samples(script, plain)?;
    let mut options = format!("steps={count}, loader={loader}");
    let mut edits = Vec::new();
    for (place, part) in &plain.parts {
        let statement = &list[*place];
        if !matches!(statement, Stmt::Expr(_)) {
            return Err(
                "what belongs to the step depends on a condition, or is assigned".to_owned(),
            );
        }
        match part {
            Part::Clip => options.push_str(&format!(", max_norm={}", max_norm(script, statement)?)),
            Part::Scheduler => {
                let scheduler = script.stepped(statement);
                let scheduler = scheduler.ok_or("the scheduler steps in an unusual way")?;
                options.push_str(&format!(", scheduler={scheduler}"));
            }
            _ => {}
        }
        let is_inside = first <= *place && *place <= step.at;
        edits.extend(match is_inside && first == *place {
            true => return Err("the forward pass is not where it seems to be".to_owned()),
            false => script.without(statement)?,
        });
    }
    if let Some(scaler) = step.backward.scaler {
        options.push_str(&format!(", scaler={scaler}"));
    }
    let window = script.fresh(&["window", "accumulated"]);
    let header = format!(
        "with ghostgpu.accumulate({model}, {}, {options}) as {window}:",
        plain.optimizer
    );
    let loss = &script.text[span(step.backward.loss)];
    edits.push(Edit::replace(
        span(&list[step.at]),
        format!("{window}.backward({loss}, count={samples})"),
    ));
    let removed: Vec<std::ops::Range<usize>> =
        edits.iter().map(|edit| edit.range.clone()).collect();
    let wrapped = script.wrapped(&list[first..=step.at], &header)?;
    // Lines that are removed need no indentation.
    let is_gone = |edit: &Edit| {
        edit.range.is_empty()
            && removed
                .iter()
                .any(|it| it.start <= edit.range.start && edit.range.start < it.end)
            && !edit.text.contains("with ")
    };
    let mut all: Vec<Edit> = wrapped.into_iter().filter(|it| !is_gone(it)).collect();
    all.extend(edits);
    all.extend(script.import("ghostgpu"));
    Written::new(
        format!("{count} batches for each optimizer step, weighted by `ghostgpu.accumulate`"),
        all,
    )
}

/// The norm that gradients are clipped to.
fn max_norm<'a>(script: &Script<'a>, statement: &'a Stmt) -> Result<&'a str, String> {
    let unusual = || "gradients are clipped in an unusual way".to_owned();
    let Stmt::Expr(node) = statement else {
        return Err(unusual());
    };
    let call = node.value.as_call_expr().ok_or_else(unusual)?;
    let name = script.facts.callee(call);
    let is_norm = name.is_some_and(|it| it.ends_with("clip_grad_norm_"));
    let given = call.arguments.find_argument_value("max_norm", 1);
    match given.filter(|_| is_norm && call.arguments.len() == 2) {
        Some(norm) => Ok(&script.text[span(norm)]),
        None => Err(unusual()),
    }
}

/// An expression for the number of samples in a batch.
fn samples(script: &Script<'_>, plain: &PlainLoop<'_, '_>) -> Result<String, String> {
    let target = match (&*plain.rounds.target, &*plain.rounds.iter) {
        (Expr::Tuple(pair), Expr::Call(call)) if matches!(&*call.func, Expr::Name(name) if name.id == "enumerate") => {
            pair.elts.get(1).unwrap_or(&plain.rounds.target)
        }
        _ => &plain.rounds.target,
    };
    let unknown = "which tensor has the samples of a batch does not show".to_owned();
    match target {
        Expr::Tuple(names) => {
            let used = names.elts.iter().rev().find_map(|name| {
                let name = name.as_name_expr()?;
                (!name.id.starts_with('_')).then_some(&name.id)
            });
            used.map(|name| format!("len({name})")).ok_or(unknown)
        }
        Expr::Name(batch) => {
            let mut found = None;
            for statement in &plain.step.list[..plain.step.at] {
                each_expression_of(statement, &mut |part| {
                    if let Expr::Subscript(entry) = part
                        && matches!(&*entry.value, Expr::Name(name) if name.id == batch.id)
                        && matches!(
                            &*entry.slice,
                            Expr::StringLiteral(_) | Expr::NumberLiteral(_)
                        )
                        && found.is_none()
                    {
                        found = Some(format!("len({})", &script.text[span(part)]));
                    }
                });
                if let Stmt::Assign(node) = statement
                    && let (Expr::Name(value), [Expr::Tuple(names)]) =
                        (&*node.value, &*node.targets)
                    && value.id == batch.id
                    && let Some(Expr::Name(name)) = names.elts.last()
                {
                    found = Some(format!("len({})", name.id));
                }
            }
            found.ok_or(unknown)
        }
        _ => Err(unknown),
    }
}

//! Another form of an optimizer, or another optimizer in place of Adam.

use ghostgpu_lint::Edit;
use ghostgpu_lint::facts::each_expression;
use ghostgpu_lint::facts::value::Kind;
use ghostgpu_lint::python::{Expr, ExprCall, span};
use ghostgpu_tricks::Request;

use super::option;
use crate::outcome::{Outcome, Written};
use crate::script::Script;

/// Optimizers of PyTorch that have a fused form.
const FUSED: &[&str] = &["Adam", "AdamW", "SGD", "Adagrad"];

/// Arguments of Adam and AdamW that may come without a name, in their order.
const POSITIONS: &[&str] = &["params", "lr", "betas", "eps", "weight_decay", "amsgrad"];

fn made<'a>(script: &Script<'a>) -> Result<Vec<(&'a ExprCall, String)>, String> {
    let is_optimizer = |name: &str| {
        name.strip_prefix("torch.optim.").is_some_and(|class| {
            !class.starts_with("lr_scheduler.") && !class.starts_with("swa_utils.")
        })
    };
    let found: Vec<(&ExprCall, String)> = script
        .calls_of(is_optimizer)
        .filter(|(call, _)| script.facts.result(call.node).kind == Kind::Optimizer)
        .map(|(call, name)| (call.node, name.rsplit('.').next().unwrap_or("").to_owned()))
        .collect();
    match found.is_empty() {
        true => Err("no optimizer of torch.optim is made in this file".to_owned()),
        false => Ok(found),
    }
}

/// `fused=True`, `foreach=True`, or neither.
pub fn form(script: &Script<'_>, request: &Request) -> Outcome {
    let (name, value, other) = match option(request, "form") {
        "for-loop" => ("foreach", "False", "fused"),
        "foreach" => ("foreach", "True", "fused"),
        _ => ("fused", "True", "foreach"),
    };
    let mut edits = Vec::new();
    let mut named = Vec::new();
    for (call, class) in made(script)? {
        if name == "fused" && !FUSED.contains(&class.as_str()) {
            return Err(format!("{class} has no fused form"));
        }
        edits.extend(script.no_keyword(call, other));
        edits.extend(script.keyword(call, name, value)?);
        named.push(class);
    }
    Written::new(
        format!("`{name}={value}` for {}", named.join(" and ")),
        edits,
    )
}

/// Adafactor, or Adam with 8-bit state, in place of Adam and AdamW.
pub fn replace(script: &Script<'_>, request: &Request) -> Outcome {
    let is_adafactor = request.name == "adafactor";
    let kept: &[&str] = match is_adafactor {
        true => &["params", "lr", "weight_decay", "maximize"],
        false => &["params", "lr", "betas", "eps", "weight_decay"],
    };
    if let Some(there) = replaced_already(script, is_adafactor) {
        return there;
    }
    let mut edits = Vec::new();
    for (call, class) in made(script)? {
        if class != "Adam" && class != "AdamW" {
            return Err(format!("{class} is neither Adam nor AdamW"));
        }
        let refused = call.arguments.keywords.iter().find(|keyword| {
            let name = keyword.arg.as_ref().map(|it| it.as_str());
            !is_adafactor
                && matches!(name, Some("amsgrad" | "maximize" | "differentiable"))
                && &script.text[span(&keyword.value)] != "False"
        });
        if let Some(keyword) = refused {
            return Err(format!(
                "8-bit {class} has no `{}`",
                &script.text[span(keyword)]
            ));
        }
        let replacement = match is_adafactor {
            true => "torch.optim.Adafactor".to_owned(),
            false => format!("bitsandbytes.optim.{class}8bit"),
        };
        edits.push(Edit::replace(span(&*call.func), replacement));
        edits.push(Edit::replace(
            span(&call.arguments),
            arguments(script, call, kept)?,
        ));
    }
    edits.extend(script.import(match is_adafactor {
        true => "torch",
        false => "bitsandbytes",
    }));
    let what = match is_adafactor {
        true => "`torch.optim.Adafactor` in place of Adam",
        false => "Adam with 8-bit state, of bitsandbytes",
    };
    Written::new(what, edits)
}

fn replaced_already(script: &Script<'_>, is_adafactor: bool) -> Option<Outcome> {
    let wanted = |name: &str| match is_adafactor {
        true => name.ends_with(".Adafactor"),
        false => name.starts_with("bitsandbytes.") && name.ends_with("8bit"),
    };
    script.calls_of(wanted).next()?;
    Some(Written::new("the optimizer is that already", Vec::new()))
}

/// The arguments that the other optimizer knows, as they are written. Where all stay, so does their
/// formatting.
fn arguments(script: &Script<'_>, call: &ExprCall, kept: &[&str]) -> Result<String, String> {
    let text = |expression: &Expr| &script.text[span(expression)];
    let given = &call.arguments;
    let has_star = given.args.iter().any(Expr::is_starred_expr)
        || given.keywords.iter().any(|it| it.arg.is_none());
    if has_star {
        return Err("the optimizer's arguments are not all written out".to_owned());
    }
    for (expression, _) in given.args.iter().zip(POSITIONS).take(1) {
        let mut foreign = None;
        each_expression(expression, &mut |part| {
            if let Expr::Dict(group) = part {
                let keys = group.items.iter().filter_map(|item| item.key.as_ref());
                for key in keys.filter_map(|key| key.as_string_literal_expr()) {
                    let name = key.value.to_str();
                    if POSITIONS.contains(&name) && !kept.contains(&name) {
                        foreign = Some(name.to_owned());
                    }
                }
            }
        });
        if let Some(name) = foreign {
            return Err(format!("a group of parameters has its own `{name}`"));
        }
    }
    let is_kept = |name: &str| kept.contains(&name);
    let keywords = given.keywords.iter().filter_map(|keyword| {
        let name = keyword.arg.as_ref()?.as_str();
        Some((name, text(&keyword.value), span(keyword)))
    });
    let all_stay = given.args.len() <= 2 && keywords.clone().all(|(name, _, _)| is_kept(name));
    if all_stay {
        return Ok(script.text[span(given)].to_owned());
    }
    let positional = given.args.iter().zip(POSITIONS);
    let mut parts: Vec<String> = positional
        .filter(|(_, name)| is_kept(name))
        .map(|(value, name)| match *name {
            "params" | "lr" => text(value).to_owned(),
            name => format!("{name}={}", text(value)),
        })
        .collect();
    parts.extend(
        keywords
            .filter(|(name, _, _)| is_kept(name))
            .map(|(_, _, range)| script.text[range].to_owned()),
    );
    Ok(format!("({})", parts.join(", ")))
}

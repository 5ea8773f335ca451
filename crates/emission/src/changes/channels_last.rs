//! Models and images in channels_last order.

use ghostgpu_lint::Edit;
use ghostgpu_lint::python::{Expr, Stmt, span};

use crate::outcome::{Outcome, Written};
use crate::script::Script;

const ORDER: &str = "memory_format=torch.channels_last";

pub fn write(script: &Script<'_>) -> Outcome {
    let what = "model and images in channels_last order";
    if script.text.contains("channels_last") {
        return match script.text.contains(&format!(".to({ORDER})")) {
            true => Written::new(what, Vec::new()),
            false => Err("the script orders tensors itself".to_owned()),
        };
    }
    let has_images = script.text.contains("Conv2d")
        || script.facts.imports.uses("torchvision")
        || script.facts.imports.uses("timm");
    if !has_images {
        return Err("no two-dimensional convolutions were found in this file".to_owned());
    }
    let mut edits = script.import("torch");
    let mut models: Vec<&str> = Vec::new();
    for call in script.calls() {
        let Some(model) = script.facts.called_module(call.node) else {
            continue;
        };
        if script.is_inside_a_model(script.unit(call)) {
            continue;
        }
        let [images] = &*call.node.arguments.args else {
            return Err("a model gets something else than one batch of images".to_owned());
        };
        if !call.node.arguments.keywords.is_empty() {
            return Err("a model gets something else than one batch of images".to_owned());
        }
        let is_tight = matches!(
            images,
            Expr::Name(_) | Expr::Attribute(_) | Expr::Subscript(_) | Expr::Call(_)
        );
        let range = span(images);
        if is_tight {
            edits.push(Edit::insert(range.end, format!(".contiguous({ORDER})")));
        } else {
            edits.push(Edit::insert(range.start, "("));
            edits.push(Edit::insert(range.end, format!(").contiguous({ORDER})")));
        }
        let root = model.split('.').next().unwrap_or(model);
        let made = [model, root]
            .into_iter()
            .find(|path| made_at(script, path).is_some());
        if let Some(path) = made.filter(|path| !models.contains(path)) {
            models.push(path);
        }
    }
    for model in &models {
        let statement = made_at(script, model).ok_or("the model was not found")?;
        let line = format!("{model} = {model}.to({ORDER})");
        edits.push(script.line_after(statement, &line)?);
    }
    match models.is_empty() {
        true => Err("this file does not make the model that it calls".to_owned()),
        false => Written::new(what, edits),
    }
}

/// The last statement that creates a model or moves it to a device.
fn made_at<'a>(script: &Script<'a>, path: &str) -> Option<&'a Stmt> {
    let facts = &script.facts;
    let assigned = facts.structure.assigns.iter().filter(|assign| {
        facts.path(assign.target) == Some(path) && matches!(assign.value, Expr::Call(_))
    });
    let assigned: Vec<&'a Stmt> = assigned.map(|assign| assign.statement).collect();
    let moved = script.calls().iter().filter(|call| {
        matches!(facts.method(call.node), Some((receiver, "to" | "cuda"))
            if facts.path(receiver) == Some(path))
            && matches!(call.statement, Stmt::Expr(_))
    });
    let all = assigned
        .iter()
        .copied()
        .chain(moved.map(|call| call.statement));
    assigned.first()?;
    all.max_by_key(|statement| span(*statement).start)
}
